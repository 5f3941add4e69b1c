use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Network, Node, node::BRIDGE_MAC};
use crate::topology::{BridgeGroup, Incumbents, Topology, build};

fn names(group: &BridgeGroup) -> (String, Vec<String>) {
    let followers = group.followers.iter().map(|it| it.name.to_string());
    (group.source.name.to_string(), followers.collect())
}

/// The only group of a topology from which nothing was left out.
fn only_group(topology: Topology) -> BridgeGroup {
    assert_eq!(topology.skipped, []);
    let [group] = topology.groups.try_into().unwrap();
    group
}

#[test]
fn the_default_router_is_the_source_and_primary_networks_follow() {
    let node = Node::new(&[
        Network::user_defined("cluster.udn.blue", 4),
        Network::default_network(),
        Network::user_defined("cluster.udn.amber", 3),
    ]);
    let group = only_group(node.topology());
    assert_eq!(
        names(&group),
        (
            "GR_node-1".to_owned(),
            vec![
                "GR_cluster.udn.amber_node-1".to_owned(),
                "GR_cluster.udn.blue_node-1".to_owned()
            ]
        )
    );
    assert_eq!(group.bridge_mac.to_string(), BRIDGE_MAC);
    assert_eq!(&*group.uplink.name, "eth0");
    assert_eq!(group.uplink.ofport.get(), 1);
    assert_eq!(&*group.source.external_port, "rtoe-GR_node-1");
    assert_eq!(group.source.ofport.get(), 2);
    assert_eq!(group.source.network, None);
    assert_eq!(
        group.followers[0].network.as_deref(),
        Some("cluster.udn.amber")
    );
    assert!(group.source.datapath.is_some());
    assert_eq!(
        group.source.mac_binding_age_threshold.default_seconds(),
        300
    );
    assert!(group.ipv4 && group.ipv6);
    assert_eq!(group.gateway_vlan, None);
    let addresses: Vec<_> = group
        .node_addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(addresses, ["172.18.0.3", "fd00::3"]);
}

/// A node with something of everything, the broken kinds included.
fn varied_node() -> Node {
    let mut node = Node::new(&[Network::default_network()]);
    for index in 0..6 {
        node.network(&Network::user_defined(
            &format!("net{index}"),
            10 + index % 5,
        ));
    }
    node.secondary_localnet("vlan2003", "breth0", Some(7));
    node.secondary_localnet("broken", "breth0", None);
    node.bridge("br-up", "ens7", &[]);
    node.map("net-br-up", "br-up");
    node.network(&Network::user_defined("delta", 5).on_uplink("br-up"));
    node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
    node.patch("breth0", "gone", crate::rows::tests::number(20));
    node
}

proptest! {
    #[test]
    fn rows_in_any_order_give_the_same_topology(
        rows in Just(varied_node().finished()).prop_shuffle(),
    ) {
        let mut store = crate::rows::Rows::default();
        for (table, identity, row) in &rows {
            store.apply(*table, *identity, Some(row));
        }
        prop_assert_eq!(build(&store, &Incumbents::new()), varied_node().topology());
    }

    #[test]
    fn any_part_of_the_rows_gives_a_topology_whose_ports_are_all_numbered_and_told_apart(
        rows in Just(varied_node().finished()).prop_shuffle(),
        kept in any::<proptest::sample::Index>(),
    ) {
        let mut store = crate::rows::Rows::default();
        for (table, identity, row) in rows.iter().take(kept.index(rows.len())) {
            store.apply(*table, *identity, Some(row));
        }
        for group in build(&store, &Incumbents::new()).groups {
            let followers = group.followers.iter().map(|it| it.ofport);
            let ingress = group.ingress_ports().map(|it| it.ofport);
            let all: Vec<_> = followers.chain(ingress).chain([group.source.ofport]).collect();
            let distinct: BTreeSet<_> = all.iter().collect();
            prop_assert_eq!(distinct.len(), all.len(), "{:?}", group);
        }
    }
}

#[test]
fn an_uplink_bridge_gets_a_group_of_its_own_with_a_designated_source() {
    let mut node = Node::new(&[Network::default_network(), Network::user_defined("blue", 3)]);
    node.bridge("br-up", "ens7", &[]);
    node.map("net-br-up", "br-up");
    node.network(&Network::user_defined("delta", 5).on_uplink("br-up"));
    node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
    let topology = node.topology();
    assert_eq!(topology.skipped, []);
    let bridges: Vec<_> = topology.groups.iter().map(|it| &*it.bridge).collect();
    assert_eq!(bridges, ["br-up", "breth0"]);
    assert_eq!(
        names(topology.group("br-up").unwrap()),
        (
            "GR_coral_node-1".to_owned(),
            vec!["GR_delta_node-1".to_owned()]
        )
    );
    let addresses = &topology.group("br-up").unwrap().node_addresses;
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["172.18.0.3", "fd00::3"], "no masquerade ones");
}

#[test]
fn a_router_that_joins_does_not_move_the_source_and_one_that_leaves_does() {
    let uplink = |networks: &[&str]| {
        let mut node = Node::new(&[]);
        node.bridge("br-up", "ens7", &[]);
        node.map("net-br-up", "br-up");
        for (index, name) in (3..).zip(networks) {
            node.network(&Network::user_defined(name, index).on_uplink("br-up"));
        }
        node.rows()
    };
    let source = |topology: &Topology| topology.groups[0].source.name.to_string();
    let first = build(&uplink(&["coral", "delta"]), &Incumbents::new());
    assert_eq!(source(&first), "GR_coral_node-1");
    let joined = build(&uplink(&["amber", "coral", "delta"]), &first.incumbents());
    assert_eq!(source(&joined), "GR_coral_node-1");
    let left = build(&uplink(&["amber", "delta"]), &joined.incumbents());
    assert_eq!(source(&left), "GR_amber_node-1");
}

#[test]
fn the_default_router_becomes_the_source_whoever_was_it_before() {
    let incumbents = Incumbents::from([("breth0".into(), "GR_blue_node-1".into())]);
    let node = Node::new(&[Network::user_defined("blue", 3), Network::default_network()]);
    let group = only_group(build(&node.rows(), &incumbents));
    assert_eq!(&*group.source.name, "GR_node-1");
}

#[test]
fn secondary_localnet_patch_ports_are_ingress_ports_of_the_default_bridge() {
    let mut node = Node::new(&[Network::default_network()]);
    node.secondary_localnet("vlan2003", "breth0", Some(9));
    node.secondary_localnet("vlan2001", "breth0", Some(8));
    let group = only_group(node.topology());
    let ingress: Vec<_> = group
        .ingress_ports()
        .map(|port| (&*port.name, port.ofport.get()))
        .collect();
    assert_eq!(
        ingress,
        [
            ("eth0", 1),
            ("patch-vlan2001_ovn_localnet_port-to-br-int", 8),
            ("patch-vlan2003_ovn_localnet_port-to-br-int", 9)
        ]
    );
}

#[test]
fn the_group_has_the_vlan_of_its_source() {
    let mut network = Network::default_network();
    network.vlan = 1024;
    let group = only_group(Node::new(&[network]).topology());
    assert_eq!(group.gateway_vlan, Some(1024));
}

#[test]
fn families_are_those_of_the_source() {
    for (addresses, ipv4, ipv6) in [
        (vec!["172.18.0.3/16"], true, false),
        (vec!["fd00::3/64"], false, true),
        (vec!["172.18.0.3/32", "fd00::3/128"], true, true),
    ] {
        let mut network = Network::default_network();
        network.addresses = addresses.iter().map(ToString::to_string).collect();
        let group = only_group(Node::new(&[network]).topology());
        assert_eq!((group.ipv4, group.ipv6), (ipv4, ipv6), "{addresses:?}");
        assert_eq!(group.node_addresses.len(), addresses.len());
    }
}

#[test]
fn a_named_uplink_goes_before_the_only_system_port_and_that_before_the_name_rule() {
    let uplink = |extra: &[(&str, &str)], ids: &[(&str, &str)]| {
        let mut node = Node::default();
        node.map("physnet", "breth0");
        node.bridge("breth0", "eth0", ids);
        for (port, kind) in extra {
            node.port("breth0", port, kind, crate::rows::tests::number(11), &[]);
        }
        node.network(&Network::default_network());
        only_group(node.topology()).uplink.name.to_string()
    };
    assert_eq!(uplink(&[], &[]), "eth0");
    assert_eq!(uplink(&[("ens9", "")], &[]), "eth0", "named after");
    assert_eq!(
        uplink(&[("ens9", "")], &[("bridge-uplink", "ens9")]),
        "ens9"
    );
    assert_eq!(uplink(&[("vxlan0", "vxlan")], &[]), "eth0");
}

#[test]
fn a_bridge_whose_default_router_is_left_out_is_not_steered_at_another_one() {
    let mut default = Network::default_network();
    default.ofport = -1;
    let mut node = Node::new(&[]);
    node.network(&default);
    node.network(&Network::user_defined("blue", 3));
    let topology = node.topology();
    assert_eq!(topology.groups, []);
    let said: Vec<String> = topology.skipped.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    assert!(said.contains("without it nothing is steered"), "{said}");
}
