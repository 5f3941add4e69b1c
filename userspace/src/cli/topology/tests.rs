use super::*;
use crate::topology::tests::{Network, Node};

fn topology() -> Topology {
    let mut green = Network::user_defined("green", 4);
    green.ofport = -1;
    let mut node = Node::new(&[
        Network::default_network(),
        Network::user_defined("blue", 3),
        green,
    ]);
    node.secondary_localnet("office", "breth0", Some(7));
    node.bridge("br-up", "ens7", &[]);
    node.map("net-br-up", "br-up");
    node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
    node.topology()
}

#[test]
fn groups_and_what_was_left_out_are_shown_as_tables() {
    let mut out = Vec::new();
    print(&topology(), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn routers_of_other_chassis_are_one_line_each_chassis() {
    let skipped = |object: &str, reason| Skipped {
        object: object.into(),
        reason,
    };
    let elsewhere =
        |name: &str, chassis: &str| skipped(name, SkipReason::OtherChassis(chassis.into()));
    let lines = left_out(&[
        elsewhere("GR_node3", "node3"),
        elsewhere("GR_node2", "node2"),
        skipped("GR_blue", SkipReason::NoSystemId),
        elsewhere("GR_blue_node2", "node2"),
    ]);
    let lines = lines.iter().map(|[object, why]| format!("{object}: {why}"));
    assert_eq!(
        lines.collect::<Vec<_>>()[1..],
        [
            "2 routers: pinned to chassis node2",
            "1 router: pinned to chassis node3"
        ]
    );
}

#[test]
fn json_has_the_same_and_every_reason() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&topology()).unwrap());
}
