use std::fmt::Write as _;

use super::*;
use crate::{
    openflow::{PortDescription, unixctl::FdbEntry, unixctl::FdbPort},
    topology::tests::{Network, Node},
};

fn on() -> Gates {
    Gates::new(true, true).unwrap()
}

/// The group of `breth0` with two followers (3 and 4), and with changes to it.
fn group(change: impl Fn(&mut Network), secondary: &[i64]) -> BridgeGroup {
    let mut default = Network::default_network();
    change(&mut default);
    let mut node = Node::new(&[default.clone()]);
    for (name, ofport) in [("blue", 3), ("green", 4)] {
        let mut network = Network::user_defined(name, ofport);
        network.vlan = default.vlan;
        node.network(&network);
    }
    for ofport in secondary {
        node.secondary_localnet(&format!("vlan{ofport}"), "breth0", Some(*ofport));
    }
    node.topology().group("breth0").unwrap().clone()
}

fn render(plan: &BridgePlan) -> String {
    let mut text = format!("# bridge {}\n", plan.bridge);
    for flow in &plan.flows {
        writeln!(text, "{flow}").unwrap();
    }
    writeln!(
        text,
        "# no-flood {:?}, flood {:?}",
        plan.no_flood, plan.flood
    )
    .unwrap();
    match &plan.static_fdb {
        Some(fdb) => writeln!(
            text,
            "# fdb/add {} {} {} {}",
            plan.bridge, fdb.port, fdb.vlan, fdb.mac
        ),
        None => writeln!(text, "# no static entry"),
    }
    .unwrap();
    text
}

#[test]
fn the_default_group_in_every_case_of_the_design() {
    insta::assert_snapshot!(
        "dual_stack",
        render(&plan(&group(|_| {}, &[]), on(), Install::Overlay))
    );
    insta::assert_snapshot!(
        "gateway_vlan",
        render(&plan(
            &group(|network| network.vlan = 1024, &[]),
            on(),
            Install::Overlay
        ))
    );
    insta::assert_snapshot!(
        "secondary_localnet",
        render(&plan(&group(|_| {}, &[7, 8]), on(), Install::Overlay))
    );
    let only = |address: &'static str| {
        group(
            move |network| network.addresses = vec![address.to_owned()],
            &[],
        )
    };
    insta::assert_snapshot!(
        "ipv4_only",
        render(&plan(&only("172.18.0.3/16"), on(), Install::Overlay))
    );
    insta::assert_snapshot!(
        "ipv6_only",
        render(&plan(&only("fd00::3/64"), on(), Install::Overlay))
    );
    insta::assert_snapshot!(
        "gate_off",
        render(&plan(
            &group(|_| {}, &[7]),
            Gates::default(),
            Install::Overlay
        ))
    );
}

#[test]
fn an_uplink_group_in_every_case_of_the_design() {
    let mut node = Node::new(&[]);
    node.bridge("br-up", "ens7", &[]);
    node.map("net-br-up", "br-up");
    node.network(&Network::user_defined("delta", 5).on_uplink("br-up"));
    node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
    let topology = node.topology();
    let group = topology.group("br-up").unwrap();
    insta::assert_snapshot!("uplink", render(&plan(group, on(), Install::Overlay)));
}

#[test]
fn the_second_gate_needs_the_first() {
    assert_eq!(
        Gates::new(false, true),
        Err(GateError::NeedsNetworkSegmentation)
    );
    assert!(Gates::new(true, true).unwrap().steering());
    assert!(!Gates::new(true, false).unwrap().steering());
    assert!(!Gates::new(false, false).unwrap().steering());
}

fn installed(flows: &[Flow]) -> Vec<InstalledFlow> {
    let text: String = flows.iter().map(|flow| format!("{flow}\n")).collect();
    crate::openflow::parse_dump(&text).unwrap()
}

#[test]
fn a_plan_that_is_carried_out_asks_for_nothing_more() {
    let plan = plan(&group(|_| {}, &[7]), on(), Install::Overlay);
    assert_eq!(diff(&plan.flows, &[]).add.len(), 12);
    let changes = diff(&plan.flows, &installed(&plan.flows));
    assert_eq!(changes, FlowChanges::default());
}

#[test]
fn with_the_gate_off_our_flows_go_and_those_of_others_stay() {
    let on = plan(&group(|_| {}, &[]), on(), Install::Overlay);
    let mut there = installed(&on.flows);
    let foreign =
        "cookie=0xdeff105, priority=10, table=0, dl_dst=02:42:ac:12:00:03, actions=NORMAL";
    there.extend(crate::openflow::parse_dump(foreign).unwrap());
    let off = plan(&group(|_| {}, &[]), Gates::default(), Install::Overlay);
    let changes = diff(&off.flows, &there);
    assert_eq!(changes.delete.len(), 6);
    assert!(changes.delete.iter().all(|flow| flow.cookie == COOKIE));
    assert_eq!(changes.add, []);
}

#[test]
fn only_flags_that_differ_are_written_and_other_ports_are_left_alone() {
    let plan = plan(&group(|_| {}, &[7]), on(), Install::Overlay);
    let port = |number: i64, no_flood| PortDescription {
        ofport: OfPort::from_column(Some(number)).unwrap(),
        name: String::new(),
        no_flood,
    };
    let ofport = |number: i64| OfPort::from_column(Some(number)).unwrap();
    let changes = port_changes(
        &plan,
        &[port(1, true), port(2, true), port(3, false), port(7, true)],
    );
    assert_eq!(
        changes,
        PortChanges {
            no_flood: [(ofport(2), false), (ofport(3), true)].into(),
            missing: vec![ofport(4)],
        }
    );
    let settled = port_changes(&plan, &[port(2, false), port(3, true), port(4, true)]);
    assert_eq!(settled, PortChanges::default());
}

#[test]
fn only_a_static_entry_to_the_host_counts() {
    let plan = plan(
        &group(|network| network.vlan = 5, &[]),
        on(),
        Install::Overlay,
    );
    let entry = |port, vlan, is_static| FdbEntry {
        port,
        vlan,
        mac: "02:42:ac:12:00:03".parse().unwrap(),
        is_static,
    };
    let phys = FdbPort::Number(OfPort::from_column(Some(1)).unwrap());
    for wrong in [
        entry(FdbPort::Local, 5, false),
        entry(FdbPort::Local, 0, true),
        entry(phys, 5, true),
    ] {
        assert!(plan.missing_fdb(&[wrong]).is_some());
    }
    assert!(plan.missing_fdb(&[]).is_some());
    assert_eq!(plan.missing_fdb(&[entry(FdbPort::Local, 5, true)]), None);
}
