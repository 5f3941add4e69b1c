use super::*;
use crate::audit::{FanOut, TrafficKind};

/// Today's flows, as far as ARP and NDP get to them, in either order of outputs.
fn legacy(vlan: &str, newer: bool) -> String {
    let mac = BRIDGE_MAC;
    let (broadcast, flood) = if newer {
        ("NORMAL,output:3,output:4", "FLOOD,output:3,output:4")
    } else {
        (
            "output:2,output:3,output:4,NORMAL",
            "output:3,output:4,FLOOD",
        )
    };
    let mut flows = vec![
        format!("priority=12, {vlan}arp, arp_op=1, arp_tpa=172.18.0.3, actions=output:2,NORMAL"),
        format!("priority=12, {vlan}icmp6, icmpv6_type=135, nd_target=fd00::3, actions=output:2,NORMAL"),
        format!("priority=11, in_port=1, {vlan}dl_dst=ff:ff:ff:ff:ff:ff, arp, actions={broadcast}"),
        format!("priority=11, in_port=1, {vlan}dl_dst=33:33:00:00:00:01, icmp6, icmpv6_type=136, actions={broadcast}"),
        format!("priority=10, {vlan}dl_dst={mac}, actions=output:2,output:3,output:4,NORMAL"),
        format!("table=1, priority=14, icmp6, icmpv6_type=134, actions={flood}"),
        format!("table=1, priority=14, icmp6, icmpv6_type=136, actions={flood}"),
        format!("priority=50, ip, dl_dst={mac}, actions=ct(table=1,zone=64000,nat)"),
        format!("priority=50, ipv6, dl_dst={mac}, actions=ct(table=1,zone=64000,nat)"),
        "priority=700, in_port=2, icmp, actions=drop".to_owned(),
        "priority=500, in_port=2, ip, nw_src=172.18.0.3, nw_dst=169.254.0.2, actions=ct(commit,table=4,zone=64001,nat(dst=172.18.0.3))".to_owned(),
        "priority=205, in_port=1, udp, dl_dst=02:42:ac:12:00:03, tp_dst=6081, actions=LOCAL".to_owned(),
        "table=1, priority=13, in_port=1, udp, tp_dst=3784, actions=output:2,LOCAL".to_owned(),
        format!("table=1, priority=10, {vlan}dl_dst={mac}, actions=LOCAL"),
        "table=1, priority=0, actions=NORMAL".to_owned(),
    ];
    for port in [2, 3, 4] {
        flows.push(format!(
            "priority=100, in_port={port}, ip, actions=ct(commit,zone=64000),output:1"
        ));
        flows.push(format!(
            "table=1, priority=100, ip, ct_state=+est+trk, ct_mark={port}, actions=output:{port}"
        ));
        flows.push(format!(
            "priority=10, in_port={port}, dl_src={mac}, actions=NORMAL"
        ));
        flows.push(format!("priority=9, in_port={port}, actions=drop"));
    }
    flows.join("\n")
}

/// Today's flows and the catch-all, with what the agent adds to them.
fn beside_a_manager(
    change: impl Fn(&mut Network),
    secondary: &[u16],
    vlan: &str,
    newer: bool,
) -> Bridge {
    let mut bridge = Bridge::with(change, secondary);
    let overlay = bridge.overlay();
    bridge.observed.flows.clear();
    bridge.install(&legacy(vlan, newer));
    bridge.install("priority=0, actions=NORMAL");
    bridge.install(&overlay.join(
        "
",
    ));
    bridge
}

fn change_matches(bridge: &mut Bridge, change: impl Fn(&mut crate::openflow::Match)) {
    for installed in &mut bridge.observed.flows {
        if installed.flow.cookie == crate::plan::COOKIE && installed.flow.priority != 52 {
            change(&mut installed.flow.matches);
        }
    }
}

fn unsteered() -> Bridge {
    let mut bridge = Bridge::steered();
    bridge.observed.flows.clear();
    bridge.install("priority=0, actions=NORMAL");
    bridge
}

fn fan_out(bridge: &Bridge, table: u8, priority: u16) -> FanOut {
    let found = bridge
        .findings()
        .into_iter()
        .find_map(|finding| match finding {
            Finding::FanOut(it) if (it.flow.table, it.flow.priority) == (table, priority) => {
                Some(it)
            }
            _ => None,
        });
    found.unwrap()
}

#[test]
fn todays_flows_are_one_finding_not_steered_and_their_fan_out() {
    for newer in [true, false] {
        let mut bridge = unsteered();
        bridge.install(&legacy("", newer));
        let findings = bridge.findings();
        assert_eq!(findings.first(), Some(&Finding::NotSteered));
        assert_eq!(findings.len(), 6, "{:#?}", bridge.texts());
        assert_eq!(
            bridge.fan_outs(),
            [(0, 11), (0, 11), (0, 10), (1, 14), (1, 14)]
        );
        let unicast = fan_out(&bridge, 0, 10);
        assert_eq!((unicast.outputs, unicast.routers), (3, 3));
        // NDP to the shared address goes to conntrack first.
        assert_eq!(unicast.traffic, [TrafficKind::UnicastArp].into());
        assert_eq!(unicast.in_ports, ["eth0".into()].into());
        let advertised = fan_out(&bridge, 1, 14);
        assert_eq!((advertised.outputs, advertised.routers), (2, 3));
    }
}

#[test]
fn steering_flows_alone_leave_the_fan_out_of_broadcast_and_multicast() {
    let mut bridge = Bridge::steered();
    bridge.keep_steering();
    bridge.install(&legacy("", true));
    bridge.install("priority=0, actions=NORMAL");
    assert_eq!(
        bridge.fan_outs(),
        [(0, 11), (0, 11)],
        "{:#?}",
        bridge.texts()
    );
    let traffic: Vec<_> = bridge
        .findings()
        .into_iter()
        .filter_map(|finding| match finding {
            Finding::FanOut(it) => Some(it.traffic.into_iter().collect::<Vec<_>>()),
            _ => None,
        })
        .collect();
    assert_eq!(
        traffic,
        [
            vec![TrafficKind::MulticastNa, TrafficKind::OtherMulticast],
            vec![TrafficKind::BroadcastArp, TrafficKind::OtherMulticast]
        ]
    );
}

#[test]
fn the_overlay_shadows_all_of_todays_fan_out() {
    for newer in [true, false] {
        assert_eq!(beside_a_manager(|_| {}, &[], "", newer).texts(), [""; 0]);
        let tagged = beside_a_manager(|it| it.vlan = 5, &[7], "dl_vlan=5, ", newer);
        assert_eq!(tagged.texts(), [""; 0]);
    }
}

#[test]
fn flows_for_another_vlan_do_not_shadow() {
    let mut bridge = beside_a_manager(|it| it.vlan = 5, &[], "dl_vlan=5, ", true);
    change_matches(&mut bridge, |matches| matches.dl_vlan = Some(6));
    assert_eq!(bridge.fan_outs(), [(0, 11), (0, 11)]);
    // Without a gateway VLAN a tagged frame is steered like any other: one VLAN is not enough.
    let mut bridge = beside_a_manager(|_| {}, &[], "", true);
    change_matches(&mut bridge, |matches| matches.dl_vlan = Some(5));
    assert_eq!(bridge.fan_outs(), [(0, 11), (0, 11)]);
}

#[test]
fn a_second_ingress_port_needs_flows_of_its_own() {
    let mut bridge = beside_a_manager(|_| {}, &[7], "", true);
    assert_eq!(bridge.texts(), [""; 0]);
    let secondary = Some(ofport(7).into());
    bridge
        .observed
        .flows
        .retain(|it| it.flow.matches.in_port != secondary);
    assert_eq!(bridge.fan_outs(), [(0, 10), (1, 14), (1, 14)]);
    let in_ports = fan_out(&bridge, 0, 10).in_ports;
    assert_eq!(
        in_ports,
        ["patch-net7_ovn_localnet_port-to-br-int".into()].into()
    );
}

#[test]
fn a_steering_flow_below_conntrack_does_not_shadow_what_is_behind_it() {
    let mut bridge = unsteered();
    bridge.install(&legacy("", true));
    let steering = bridge.plan.flows.iter();
    let steering = steering.filter(|flow| crate::plan::is_steering(flow));
    let low = steering.map(|flow| {
        let mut flow = flow.clone();
        flow.priority = 49;
        flow.to_string()
    });
    let low: Vec<String> = low.collect();
    bridge.install(&low.join("\n"));
    // ARP is taken above priority 10, NDP goes to conntrack at 50.
    assert_eq!(bridge.fan_outs(), [(0, 11), (0, 11), (1, 14), (1, 14)]);
}

#[test]
fn the_bypass_for_a_service_address_is_above_steering_and_counts_every_port() {
    let mut bridge = Bridge::steered();
    bridge.install(
        "cookie=0xabc, priority=110, in_port=1, arp, arp_op=1, arp_tpa=5.5.5.5, actions=LOCAL,output:2,output:3,output:4",
    );
    bridge.install(
        "cookie=0xabc, priority=110, in_port=1, icmp6, icmp_type=135, icmp_code=0, nd_target=fd05::5, actions=LOCAL,output:3,output:4",
    );
    assert_eq!(bridge.fan_outs(), [(0, 110), (0, 110)]);
    let [arp, ns] = bridge.findings().try_into().unwrap();
    let (Finding::FanOut(arp), Finding::FanOut(ns)) = (arp, ns) else {
        panic!("{:#?}", bridge.texts())
    };
    assert_eq!((arp.outputs, arp.routers), (4, 3));
    assert_eq!(
        arp.traffic,
        [
            TrafficKind::UnicastArp,
            TrafficKind::BroadcastArp,
            TrafficKind::OtherMulticast
        ]
        .into()
    );
    assert_eq!((ns.outputs, ns.routers), (3, 2));
}

#[test]
fn only_a_flow_that_takes_all_of_the_traffic_shadows() {
    let fan_out =
        "priority=30, in_port=1, dl_dst=ff:ff:ff:ff:ff:ff, arp, actions=output:3,output:4";
    for (above, shadows) in [
        ("priority=31, arp, actions=NORMAL", true),
        ("priority=31, in_port=1, actions=NORMAL", true),
        (
            "priority=31, dl_dst=01:00:00:00:00:00/01:00:00:00:00:00, actions=NORMAL",
            true,
        ),
        ("priority=31, actions=drop", true),
        ("priority=30, arp, actions=NORMAL", false),
        ("priority=31, in_port=2, arp, actions=NORMAL", false),
        ("priority=31, arp, arp_op=1, actions=NORMAL", false),
        (
            "priority=31, arp, arp_spa=172.18.0.0/16, actions=NORMAL",
            false,
        ),
        ("priority=31, arp, dl_vlan=5, actions=NORMAL", false),
        ("priority=31, arp, pkt_mark=1, actions=NORMAL", false),
        ("priority=31, ipv6, actions=NORMAL", false),
        ("table=1, priority=31, arp, actions=NORMAL", false),
    ] {
        let mut bridge = Bridge::steered();
        bridge.install(fan_out);
        bridge.install(above);
        let expected = if shadows { vec![] } else { vec![(0, 30)] };
        assert_eq!(bridge.fan_outs(), expected, "below {above}");
    }
}

#[test]
fn flows_that_neighbour_and_multicast_traffic_cannot_take_are_no_fan_out() {
    for flow in [
        "priority=60, in_port=1, tcp, tp_dst=80, actions=output:3,output:4",
        "priority=60, in_port=1, ip, dl_dst=02:42:ac:12:00:03, actions=output:3,output:4",
        "priority=60, in_port=1, dl_type=0x88cc, dl_dst=02:42:ac:12:00:03, actions=output:3,output:4",
        "priority=60, dl_dst=02:42:ac:12:00:99, actions=output:3,output:4",
        "table=9, priority=60, actions=output:3,output:4",
        "priority=60, in_port=1, arp, actions=output:2,LOCAL",
        "priority=60, in_port=3, dl_dst=02:42:ac:12:00:03, arp, actions=output:2,output:4",
    ] {
        let mut bridge = Bridge::steered();
        bridge.install(flow);
        assert_eq!(bridge.fan_outs(), [], "{flow}");
    }
}

/// `ct(table=N)` as the switch reports it: an action of Nicira's extension, in hex.
fn conntrack(table: u8) -> String {
    let (flags, zone_source, zone) = ("0001", "00000000", "0000");
    format!("action(65535,0x23200023{flags}{zone_source}{zone}{table:02x}0000000000)")
}

#[test]
fn frames_are_followed_into_further_tables() {
    let leads = |actions: &str| {
        let mut bridge = Bridge::steered();
        bridge.install("table=9, priority=60, arp, actions=output:3,output:4");
        bridge.install(&format!("priority=60, in_port=1, arp, actions={actions}"));
        bridge.fan_outs() == [(9, 60)]
    };
    for actions in [
        "ct(commit,table=9,zone=1)",
        "resubmit(,9)",
        "resubmit(1,9)",
        "goto_table:9",
        "action(65535,0x2320000efff809000000)",
        &conntrack(9),
        // Not understood: so anywhere.
        "frobnicate(9)",
        "action(65535,0x2320007f0000)",
        "action(65535,0x1)",
    ] {
        assert!(leads(actions), "{actions}");
    }
    for actions in [
        "ct(commit,zone=1,exec(load:1->NXM_NX_CT_MARK[])),NORMAL",
        "resubmit(,8)",
        "goto_table:8",
        "strip_vlan,output:2",
        "action(65535,0x2320000efff808000000)",
        &conntrack(8),
        &conntrack(0xff),
        "drop",
    ] {
        assert!(!leads(actions), "{actions}");
    }
}

#[test]
fn flooded_frames_of_a_router_count_where_a_flow_names_its_port() {
    let mut bridge = Bridge::steered();
    bridge.install(
        "priority=60, in_port=4, arp, dl_dst=ff:ff:ff:ff:ff:ff, actions=output:3,NORMAL,output:4",
    );
    let found = fan_out(&bridge, 0, 60);
    // The source by the flood, one follower by number, the sender not at all.
    assert_eq!((found.outputs, found.routers), (2, 2));
    assert_eq!(found.traffic, [TrafficKind::BroadcastArp].into());
}

#[test]
fn a_flow_that_outputs_to_all_ports_fans_out_whatever_the_flags_say() {
    let mut bridge = Bridge::steered();
    bridge.install("priority=200, arp, actions=ALL");
    let found = fan_out(&bridge, 0, 200);
    assert_eq!((found.outputs, found.routers), (3, 3));
}
