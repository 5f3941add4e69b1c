use super::*;
use crate::{
    audit::{Lookups, TrafficKind},
    plan::SteeringMark,
};

#[test]
fn a_bridge_that_is_as_planned_has_no_finding() {
    assert_eq!(Bridge::steered().texts(), [""; 0]);
    assert_eq!(Bridge::with(|it| it.vlan = 5, &[7, 8]).texts(), [""; 0]);
    assert!(Bridge::steered().audit().steered);
}

#[test]
fn a_manager_that_ships_the_design_itself_is_no_finding() {
    let mut bridge = Bridge::steered();
    for installed in &mut bridge.observed.flows {
        installed.flow.cookie = crate::openflow::Cookie(0xdeff105);
    }
    assert_eq!(bridge.texts(), [""; 0]);
}

#[test]
fn by_mark_the_flows_for_marked_frames_and_those_below_them_are_wanted() {
    let mut bridge = Bridge::with(|_| {}, &[7]);
    let plan = bridge.plan.clone();
    bridge.plan = plan.by_mark(&bridge.group, SteeringMark::DEFAULT);
    // Steered by headers so far: the mark's flow and those one priority lower are missing.
    let missing = |bridge: &Bridge, what: &str| {
        let texts = bridge.texts();
        let texts = texts.iter().filter(|text| text.contains(what));
        texts.filter(|text| text.contains("missing")).count()
    };
    assert_eq!(missing(&bridge, "pkt_mark=0x6e730034"), 1);
    assert_eq!(missing(&bridge, "priority=51"), 4);
    let flows: Vec<String> = bridge.plan.flows.iter().map(ToString::to_string).collect();
    bridge.observed.flows.clear();
    bridge.install(&flows.join("\n"));
    assert_eq!(bridge.texts(), [""; 0]);
    assert!(bridge.audit().steered);
}

#[test]
fn each_missing_flow_is_named() {
    let mut bridge = Bridge::with(|_| {}, &[7]);
    let is_advertisement =
        |it: &crate::openflow::InstalledFlow| it.flow.matches.icmpv6_type == Some(136);
    bridge.observed.flows.retain(|it| !is_advertisement(it));
    insta::assert_snapshot!(bridge.texts().join("\n"));
}

#[test]
fn a_steering_flow_that_outputs_elsewhere_is_the_wrong_source() {
    let mut bridge = Bridge::steered();
    bridge.observed.flows.remove(0);
    bridge.install(&format!(
        "cookie=0x1, priority=52, in_port=1, arp, dl_dst={BRIDGE_MAC}, actions=output:4,NORMAL"
    ));
    let findings = bridge.findings();
    let [
        Finding::WrongSource {
            outputs, source, ..
        },
    ] = findings.as_slice()
    else {
        panic!("{:#?}", bridge.texts())
    };
    assert_eq!(**source, *"patch-breth0_node-1-to-br-int");
    assert_eq!(
        *outputs,
        [
            "patch-breth0_green_node-1-to-br-int".into(),
            "NORMAL".into()
        ]
    );
}

#[test]
fn a_steering_flow_that_lost_its_normal_is_found() {
    let mut bridge = Bridge::steered();
    bridge.observed.flows[0].flow.actions.pop();
    assert!(matches!(
        bridge.findings()[..],
        [Finding::WrongSource { .. }]
    ));
}

#[test]
fn a_steering_flow_of_a_port_that_has_gone_is_stray_where_it_is_ours() {
    let gone = "priority=52, table=0, in_port=9, arp, actions=output:2,NORMAL";
    let mut bridge = Bridge::steered();
    bridge.install(&format!("cookie=0x1, {gone}"));
    assert_eq!(bridge.texts(), [""; 0]);
    let mut bridge = Bridge::steered();
    bridge.install(&format!("cookie={}, {gone}", crate::plan::COOKIE));
    assert!(matches!(bridge.findings()[..], [Finding::StrayFlow { .. }]));
}

#[test]
fn no_flood_is_wanted_on_followers_and_on_nobody_else() {
    let mut bridge = Bridge::with(|_| {}, &[7]);
    for port in &mut bridge.observed.ports {
        port.no_flood = !port.no_flood;
    }
    bridge
        .observed
        .ports
        .retain(|port| port.ofport != ofport(4));
    insta::assert_snapshot!(bridge.texts().join("\n"));
}

#[test]
fn one_static_entry_leads_to_the_host_in_the_groups_vlan() {
    let entry = |port, vlan, is_static| FdbEntry {
        port,
        vlan,
        mac: BRIDGE_MAC.parse().unwrap(),
        is_static,
    };
    let mut bridge = Bridge::with(|it| it.vlan = 5, &[]);
    for missing in [
        entry(FdbPort::Local, 5, false),
        entry(FdbPort::Local, 0, true),
    ] {
        bridge.observed.fdb = vec![missing];
        assert!(matches!(
            bridge.findings()[..],
            [Finding::FdbMissing { vlan: 5, .. }]
        ));
    }
    bridge.observed.fdb = vec![entry(FdbPort::Number(ofport(1)), 5, true)];
    assert_eq!(
        bridge.texts(),
        ["the static entry 02:42:ac:12:00:03 in VLAN 5 leads to eth0, not to breth0"]
    );
    bridge.observed.fdb = vec![entry(FdbPort::Other, 5, true)];
    assert!(matches!(
        bridge.findings()[..],
        [Finding::FdbElsewhere { .. }]
    ));
}

#[test]
fn a_router_with_another_address_than_the_bridge_is_found_steered_or_not() {
    let mut bridge = Bridge::steered();
    bridge.group.followers[1].external_mac = "02:42:ac:12:00:99".parse().ok();
    assert_eq!(
        bridge.texts(),
        [
            "rtoe-GR_green_node-1 of GR_green_node-1 has the address 02:42:ac:12:00:99, the bridge \
          02:42:ac:12:00:03"
        ]
    );
    bridge.observed.flows.clear();
    assert_eq!(bridge.findings().len(), 2);
}

#[test]
fn a_bridge_without_a_steering_flow_is_one_finding() {
    let mut bridge = Bridge::steered();
    bridge.observed.flows.clear();
    bridge.observed.fdb.clear();
    bridge.observed.ports.clear();
    assert_eq!(bridge.findings(), [Finding::NotSteered]);
    assert!(!bridge.audit().steered);
}

#[test]
fn a_frame_over_the_limit_is_a_finding() {
    let bridge = Bridge::steered();
    let lookups = Lookups {
        frame: TrafficKind::UnicastArp,
        lookups: 4097,
        over_limit: true,
        routers: 81,
        source: true,
    };
    let audit = audit(&bridge.group, &bridge.plan, &bridge.observed, vec![lookups]);
    assert!(matches!(
        audit.findings[..],
        [Finding::LookupLimit { lookups: 4097, .. }]
    ));
}

fn measured(frame: TrafficKind, routers: usize, source: bool) -> Lookups {
    Lookups {
        frame,
        lookups: 51,
        over_limit: false,
        routers,
        source,
    }
}

#[test]
fn a_measured_frame_that_does_not_reach_the_source_alone_is_a_finding_whatever_the_flows_say() {
    let bridge = Bridge::steered();
    let lookups = vec![
        measured(TrafficKind::UnicastArp, 0, false),
        measured(TrafficKind::BroadcastArp, 1, true),
        measured(TrafficKind::UnicastNa, 3, true),
        measured(TrafficKind::MulticastNa, 1, false),
    ];
    let audit = audit(&bridge.group, &bridge.plan, &bridge.observed, lookups);
    let wrong = |frame, source, followers| Finding::WrongReceivers {
        frame,
        source,
        followers,
    };
    assert_eq!(
        audit.findings,
        [
            wrong(TrafficKind::UnicastArp, false, 0),
            wrong(TrafficKind::UnicastNa, true, 2),
            wrong(TrafficKind::MulticastNa, false, 1),
        ]
    );
}

#[test]
fn a_measured_frame_is_no_finding_of_its_own_where_another_one_says_why() {
    let mut bridge = Bridge::steered();
    bridge.install("priority=200, arp, actions=output:3,output:4");
    let lookups = vec![measured(TrafficKind::UnicastArp, 2, false)];
    let with_fan_out = audit(
        &bridge.group,
        &bridge.plan,
        &bridge.observed,
        lookups.clone(),
    );
    assert!(matches!(with_fan_out.findings[..], [Finding::FanOut(_)]));
    bridge.observed.flows.clear();
    let unsteered = audit(&bridge.group, &bridge.plan, &bridge.observed, lookups);
    assert_eq!(unsteered.findings, [Finding::NotSteered]);
}

#[test]
fn a_steering_flow_under_one_that_takes_all_of_its_frames_is_a_finding() {
    let mut bridge = Bridge::steered();
    bridge.install("priority=200, icmp6, icmp_type=135, actions=drop");
    // Some of the frames only: what is left is steered.
    bridge.install("priority=110, arp, arp_tpa=10.0.0.1, arp_op=1, actions=drop");
    bridge.install("priority=110, icmp6, icmp_type=134, dl_vlan=9, actions=drop");
    let findings = bridge.findings();
    let [Finding::Shadowed { flow, by }] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!((flow.matches.icmpv6_type, by.priority), (Some(135), 200));
}

#[test]
fn a_bridge_that_was_left_out_is_a_finding_and_not_silence() {
    let mut node = Node::new(&[Network::default_network()]);
    node.map("net-br-up", "br-up");
    node.bridge("br-up", "eth1", &[("bridge-uplink", "gone")]);
    node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
    let audits = crate::audit::left_out(&node.topology(), &node.rows());
    let [audit] = &audits[..] else {
        panic!("{audits:?}");
    };
    assert_eq!((&*audit.bridge, audit.steered), ("br-up", false));
    assert_eq!(
        audit.findings[0].to_string(),
        "left out: external_ids:bridge-uplink names gone, which is no port of it"
    );
    let whole = Node::new(&[Network::default_network()]);
    assert_eq!(crate::audit::left_out(&whole.topology(), &whole.rows()), []);
}
