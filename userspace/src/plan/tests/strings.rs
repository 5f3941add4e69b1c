//! The exact strings of the two design documents, with the names of ports filled in.

use super::*;

const DEFAULT_PATCH: u16 = 2;
const UDN_PATCHES: [u16; 2] = [3, 4];
const UPLINK: u16 = 1;

/// OVN-Kubernetes, "External Bridge (breth0) OpenFlow Design": today's flows.
const BRETH0: [&str; 10] = [
    "priority=10, table=0, dl_dst=<bridgeMAC>, actions=output:<patch-default>,output:<patch-udn1>,...,NORMAL",
    "priority=10, table=0, in_port=<patch-X>, dl_src=<bridgeMAC>, actions=output:NORMAL",
    "priority=9,  table=0, in_port=<patch-X>, actions=drop",
    "priority=12, table=0, arp, arp_op=1, arp_tpa=172.18.0.3, actions=output:<default-patch>,NORMAL",
    "priority=12, table=0, icmp6, icmpv6_type=135, nd_target=fd00::3, actions=output:<default-patch>,NORMAL",
    "priority=11, table=0, in_port=<phys>, dl_dst=ff:ff:ff:ff:ff:ff, arp, actions=NORMAL,output:<udn1-patch>,...",
    "priority=11, table=0, in_port=<phys>, dl_dst=33:33:00:00:00:01, icmp6, icmpv6_type=136, actions=NORMAL,output:<udn1-patch>,...",
    "priority=0, table=0, actions=NORMAL",
    "priority=14, table=1, icmp6, icmpv6_type=134, actions=FLOOD,output:<udn1-patch>,output:<udn2-patch>,...",
    "priority=14, table=1, icmp6, icmpv6_type=136, actions=FLOOD,output:<udn1-patch>,output:<udn2-patch>,...",
];

/// OKEP-6691, scenarios 1 to 3 and "IPv6 NDP": priority, match and actions with the gate on. Its
/// text names the NDP messages by their types: the match is that of ARP with `icmp6` in its place.
const OKEP: [(u16, &str, &str); 6] = [
    (
        52,
        "in_port=<ext-ingress>, dl_dst=<bridgeMAC>, arp",
        "output:<default-patch>,NORMAL",
    ),
    (
        52,
        "in_port=<ext-ingress>, dl_dst=<bridgeMAC>, icmp6, icmpv6_type=136",
        "output:<default-patch>,NORMAL",
    ),
    (
        52,
        "in_port=<ext-ingress>, dl_dst=<bridgeMAC>, icmp6, icmpv6_type=134",
        "output:<default-patch>,NORMAL",
    ),
    (
        52,
        "in_port=<ext-ingress>, dl_dst=<bridgeMAC>, icmp6, icmpv6_type=135",
        "output:<default-patch>,NORMAL",
    ),
    (10, "in_port=<patch-X>, dl_src=<bridgeMAC>", "output:NORMAL"),
    (0, "", "NORMAL"),
];

/// One string, for one of the ports that `<patch-X>` and `<ext-ingress>` stand for, as we render
/// it: no doubled spaces, and `NORMAL` for `output:NORMAL`, which is the same action.
fn fill_in(template: &str, group: &BridgeGroup, any: u16) -> String {
    let [udn1, udn2] = UDN_PATCHES.map(|port| port.to_string());
    let default = DEFAULT_PATCH.to_string();
    let list = format!("{udn1},output:{udn2}");
    let (mac, any) = (group.bridge_mac.to_string(), any.to_string());
    let text = [
        ("<udn1-patch>,output:<udn2-patch>,...", list.as_str()),
        ("<udn1-patch>,...", &list),
        ("<patch-udn1>,...", &list),
        ("<patch-default>", &default),
        ("<default-patch>", &default),
        ("<patch-X>", &any),
        ("<ext-ingress>", &any),
        ("<phys>", &UPLINK.to_string()),
        ("<bridgeMAC>", &mac),
        ("output:NORMAL", "NORMAL"),
        (",  ", ", "),
    ]
    .iter()
    .fold(template.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    });
    assert!(
        !text.contains(['<', '>']) && !text.contains("..."),
        "{text}"
    );
    format!("cookie={COOKIE}, {text}")
}

fn lines(plan: &BridgePlan) -> BTreeSet<String> {
    plan.flows.iter().map(ToString::to_string).collect()
}

#[test]
fn todays_flows_are_those_of_the_bridge_design_and_no_others() {
    let group = group(|_| {}, &[]);
    let patches = std::iter::once(DEFAULT_PATCH).chain(UDN_PATCHES);
    let designed: BTreeSet<String> = patches
        .flat_map(|any| BRETH0.map(|template| fill_in(template, &group, any)))
        .collect();
    assert_eq!(designed.len(), BRETH0.len() + 2 * UDN_PATCHES.len());
    let plan = plan(&group, Gates::default(), Install::Complete);
    assert_eq!(lines(&plan), designed);
}

#[test]
fn the_flows_with_the_gate_on_are_those_of_the_okep() {
    let group = group(|_| {}, &[7, 8]);
    let patches = || std::iter::once(DEFAULT_PATCH).chain(UDN_PATCHES);
    let ingress = [UPLINK, 7, 8];
    let mut designed = BTreeSet::new();
    for (priority, matches, actions) in OKEP {
        let comma = if matches.is_empty() { "" } else { ", " };
        let template = format!("priority={priority}, table=0{comma}{matches}, actions={actions}");
        let ports: Vec<u16> = if matches.contains("<ext-ingress>") {
            ingress.to_vec()
        } else {
            patches().collect()
        };
        designed.extend(ports.iter().map(|any| fill_in(&template, &group, *any)));
    }
    // The companion of egress validation, which the OKEP leaves to the bridge design.
    designed.extend(patches().map(|any| fill_in(BRETH0[2], &group, any)));
    assert_eq!(
        designed.len(),
        4 * ingress.len() + 2 * patches().count() + 1
    );
    assert_eq!(lines(&plan(&group, on(), Install::Complete)), designed);
    let overlay = lines(&plan(&group, on(), Install::Overlay));
    let steering = |it: &&String| it.contains("priority=52,");
    let designed: BTreeSet<&String> = designed.iter().filter(steering).collect();
    assert_eq!(
        overlay.iter().filter(steering).collect::<BTreeSet<_>>(),
        designed
    );
}
