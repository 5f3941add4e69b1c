use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::openflow::parse::tests::any_flow;

const OURS: Cookie = Cookie(7);

fn flow(text: &str) -> Flow {
    text.parse().unwrap()
}

#[test]
fn equal_flows_ask_for_nothing() {
    let flows = [flow("cookie=7,priority=52,arp actions=NORMAL")];
    assert!(diff(OURS, &flows, &flows).is_empty());
}

#[test]
fn missing_changed_and_surplus_flows_are_told_apart() {
    let desired = [
        flow("cookie=7,priority=52,arp actions=output:2,NORMAL"),
        flow("cookie=7,priority=52,in_port=1,arp actions=NORMAL"),
    ];
    let installed = [
        flow("cookie=7,priority=52,arp actions=output:3,NORMAL"),
        flow("cookie=7,priority=53,arp actions=NORMAL"),
        flow("cookie=8,priority=54,arp actions=NORMAL"),
    ];
    let changes = diff(OURS, &desired, &installed);
    assert_eq!(changes.delete, [installed[1].clone()]);
    assert_eq!(changes.add, desired);
    assert_eq!(changes.foreign, []);
}

#[test]
fn a_flow_of_another_owner_is_neither_overwritten_nor_deleted() {
    let desired = [flow("cookie=7,priority=52,arp actions=NORMAL")];
    let installed = [flow("cookie=8,priority=52,arp actions=NORMAL")];
    let changes = diff(OURS, &desired, &installed);
    assert_eq!(changes.foreign, installed);
    assert!(changes.is_empty());
}

/// What a switch does with changes: strict deletions, then additions that replace.
fn carry_out(installed: &[Flow], changes: &FlowChanges) -> Vec<Flow> {
    let mut table: BTreeMap<FlowKey, Flow> = installed
        .iter()
        .map(|flow| (flow.key(), flow.clone()))
        .collect();
    for flow in &changes.delete {
        if table
            .get(&flow.key())
            .is_some_and(|there| there.cookie == flow.cookie)
        {
            table.remove(&flow.key());
        }
    }
    for flow in &changes.add {
        table.insert(flow.key(), flow.clone());
    }
    table.into_values().collect()
}

/// Flows that often meet: few keys, two owners.
fn colliding_flows() -> impl Strategy<Value = Vec<Flow>> {
    let near = any_flow().prop_map(|mut flow| {
        flow.cookie = Cookie(flow.cookie.0 % 2 + OURS.0);
        flow.table = 0;
        flow.priority %= 3;
        flow.matches = crate::openflow::Match::default();
        flow
    });
    proptest::collection::vec(prop_oneof![near, any_flow()], 0..12)
}

proptest! {
    #[test]
    fn changes_that_are_carried_out_leave_nothing_to_change(
        desired in colliding_flows(),
        installed in colliding_flows(),
    ) {
        let desired: Vec<Flow> = desired.into_iter().map(|flow| Flow { cookie: OURS, ..flow }).collect();
        let changes = diff(OURS, &desired, &installed);
        let after = carry_out(&installed, &changes);
        let again = diff(OURS, &desired, &after);
        prop_assert!(again.is_empty(), "{:?}", again);
        prop_assert_eq!(&again.foreign, &changes.foreign);

        let mut foreign: BTreeMap<FlowKey, &Flow> = BTreeMap::new();
        for flow in &installed {
            foreign.insert(flow.key(), flow);
        }
        foreign.retain(|_, flow| flow.cookie != OURS);
        for flow in foreign.values() {
            prop_assert!(after.contains(flow), "lost {flow}");
        }
    }
}
