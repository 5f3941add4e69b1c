use super::*;

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
    let lookups = crate::audit::Lookups {
        frame: crate::audit::TrafficKind::UnicastArp,
        lookups: 4097,
        over_limit: true,
        routers: 81,
    };
    let audit = audit(&bridge.group, &bridge.plan, &bridge.observed, vec![lookups]);
    assert!(matches!(
        audit.findings[..],
        [Finding::LookupLimit { lookups: 4097, .. }]
    ));
}
