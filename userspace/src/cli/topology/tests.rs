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
fn json_has_the_same_and_every_reason() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&topology()).unwrap());
}
