mod dpu;
mod golden;
mod proptests;
mod strings;

use super::*;
use crate::{
    openflow::{PortDescription, unixctl::FdbEntry, unixctl::FdbPort},
    topology::tests::{Network, Node},
};

pub(super) fn on() -> Gates {
    Gates::new(true, true).unwrap()
}

/// The group of `breth0` with two followers (3 and 4), and with changes to it.
pub(super) fn group(change: impl Fn(&mut Network), secondary: &[i64]) -> BridgeGroup {
    let node = Node::with_two_followers(change, secondary.iter().copied());
    node.topology().group("breth0").unwrap().clone()
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

#[test]
fn a_set_of_flows_is_told_by_its_word_alone() {
    assert_eq!(Install::default(), Install::Overlay);
    for install in [Install::Overlay, Install::Complete] {
        assert_eq!(install.to_string().parse(), Ok(install));
        let word = serde_json::to_string(&install).unwrap();
        assert_eq!(word, format!("\"{install}\""));
        assert_eq!(serde_json::from_str::<Install>(&word).unwrap(), install);
    }
    let error = "Overlay".parse::<Install>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"Overlay\" is no set of flows: overlay or complete is wanted"
    );
}

/// One line a flow, as `ovs-ofctl dump-flows` prints them.
fn dump(lines: &[&str]) -> Vec<InstalledFlow> {
    crate::openflow::parse_dump(&lines.join("\n")).unwrap()
}

#[test]
fn a_bridge_with_flows_of_ovn_kubernetes_has_a_manager() {
    let ours = format!("cookie={COOKIE}, priority=13, arp, actions=NORMAL");
    let service = "cookie=0x9f2c61d7a3e0b845, priority=110, tcp, actions=output:2";
    let catch_all = "priority=0, actions=NORMAL";
    assert_eq!(manager_flows(&dump(&[&ours, service, catch_all])), None);
    let managed = manager_flows(&dump(&[
        &ours,
        "cookie=0x304, priority=700, in_port=2, icmp, actions=drop",
        "cookie=0xdeff105, priority=10, in_port=2, actions=NORMAL",
        "cookie=0xdeff105, priority=9, in_port=2, actions=drop",
        "cookie=0xe745ecf105, table=6, priority=110, tcp, actions=output:2",
    ]))
    .unwrap();
    assert_eq!(
        managed.to_string(),
        "1 flow with cookie 0xe745ecf105, 2 with 0xdeff105, 1 with 0x304"
    );
}

#[test]
fn another_program_with_the_gate_is_known_by_flows_in_the_place_of_ours() {
    let wanted = plan(&group(|_| {}, &[]), on(), Install::Overlay);
    let mut there = installed(&wanted.flows);
    let fan_out =
        "cookie=0xdeff105, priority=10, dl_dst=02:42:ac:12:00:03, actions=output:2,NORMAL";
    there.extend(dump(&[fan_out, "priority=0, actions=NORMAL"]));
    assert_eq!(foreign_gate(&wanted, &there), Vec::<String>::new());
    there[2].flow.cookie = Cookie(0xdef_f105);
    assert_eq!(
        foreign_gate(&wanted, &there),
        [
            "cookie=0xdeff105, priority=52, table=0, in_port=1, dl_dst=02:42:ac:12:00:03, icmp6, \
          icmpv6_type=136, actions=output:2,NORMAL"
        ]
    );
}

#[test]
fn the_catch_all_of_another_serves_as_well_as_ours() {
    let wanted = plan(&group(|_| {}, &[]), on(), Install::Complete);
    let count = wanted.flows.len();
    let changes = diff(&wanted.flows, &dump(&["priority=0, actions=NORMAL"]));
    assert_eq!((changes.add.len(), changes.foreign.len()), (count - 1, 0));
    let drops = dump(&["priority=0, actions=drop"]);
    assert_eq!(diff(&wanted.flows, &drops).foreign.len(), 1);
    assert_eq!(foreign_gate(&wanted, &drops).len(), 1);
}
