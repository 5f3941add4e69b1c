use super::{Network, Node};
use crate::{
    ovsdb::Datum,
    rows::{
        Table,
        tests::{map, number, text},
    },
    topology::Topology,
};

fn skipped(topology: &Topology) -> Vec<String> {
    topology.skipped.iter().map(ToString::to_string).collect()
}

/// A node with a good default network, to which something odd is added: the good part must stay,
/// and the odd one must be named.
fn with(odd: impl Fn(&mut Node)) -> Vec<String> {
    let mut node = Node::new(&[Network::default_network(), Network::user_defined("good", 3)]);
    odd(&mut node);
    let topology = node.topology();
    let group = topology.group("breth0").unwrap();
    assert_eq!(&*group.source.name, "GR_node-1");
    assert_eq!(group.followers.len(), 1, "{:?}", group.followers);
    skipped(&topology)
}

#[test]
fn a_router_of_another_chassis_is_none_of_ours() {
    let mut network = Network::user_defined("blue", 4);
    network.chassis = "chassis-2".to_owned();
    assert_eq!(
        with(|node| node.network(&network))[0],
        "GR_blue_node-1: it is pinned to chassis chassis-2"
    );
}

#[test]
fn a_secondary_networks_router_is_no_follower() {
    let mut network = Network::user_defined("blue", 4);
    network.role = "secondary".to_owned();
    assert_eq!(
        with(|node| node.network(&network))[0],
        "GR_blue_node-1: its network has the role \"secondary\", and only primary ones have a \
         gateway of their own"
    );
}

#[test]
fn a_router_that_is_no_gateway_router_is_passed_by() {
    let other = |name: &'static str, options: &'static [(&str, &str)]| {
        with(move |node| {
            node.add(
                Table::LogicalRouter,
                &[("name", text(name)), ("options", map(options))],
            );
        })
    };
    assert_eq!(other("ovn_cluster_router", &[]), [""; 0]);
    assert_eq!(
        other("some_router", &[("chassis", "chassis-1")]),
        ["some_router: it is on this chassis and its name does not begin with GR_"]
    );
    assert_eq!(
        other("GR_x", &[("chassis", "chassis-1")]),
        ["GR_x: it has no external port rtoe-GR_x"]
    );
}

#[test]
fn a_router_on_an_odd_external_switch_is_left_out() {
    let network = Network::user_defined("blue", 4);
    assert_eq!(
        with(|node| node.external_side(&network, "ext_blue", &[])),
        ["GR_blue_node-1: its external switch ext_blue has no localnet port"]
    );
    assert_eq!(
        with(|node| {
            let localnets = [
                node.localnet("one", "physnet", 0),
                node.localnet("two", "physnet", 0),
            ];
            node.external_side(&network, "ext_blue", &localnets);
        }),
        [
            "GR_blue_node-1: its external switch ext_blue has 2 localnet ports, and it is not \
             known which is meant"
        ]
    );
    assert_eq!(
        with(|node| {
            let localnet = node.localnet("one", "elsewhere", 0);
            node.external_side(&network, "ext_blue", &[localnet]);
        }),
        ["GR_blue_node-1: ovn-bridge-mappings has no bridge for the physical network elsewhere"]
    );
    assert_eq!(
        with(|node| {
            node.map("elsewhere", "br-none");
            let localnet = node.localnet("one", "elsewhere", 0);
            node.external_side(&network, "ext_blue", &[localnet]);
        }),
        ["GR_blue_node-1: the bridge br-none of ovn-bridge-mappings does not exist"]
    );
}

#[test]
fn a_router_without_a_usable_patch_port_is_left_out() {
    let network = Network::user_defined("blue", 4);
    let half_built = |ofports: &[Datum]| {
        with(|node| {
            let localnet = node.localnet("one", "physnet", 0);
            node.external_side(&network, "ext_blue", &[localnet]);
            for ofport in ofports {
                node.patch("breth0", "one", ofport.clone());
            }
        })
    };
    assert_eq!(
        half_built(&[]),
        ["GR_blue_node-1: bridge breth0 has no patch port for the localnet port one"]
    );
    for ofport in [Datum::Set(Vec::new()), number(-1)] {
        assert_eq!(
            half_built(&[ofport]),
            ["GR_blue_node-1: port patch-one-to-br-int has no OpenFlow number (yet)"]
        );
    }
}

#[test]
fn two_ports_for_one_localnet_port_are_refused() {
    let network = Network::user_defined("blue", 4);
    assert_eq!(
        with(|node| {
            let localnet = node.localnet("one", "physnet", 0);
            node.external_side(&network, "ext_blue", &[localnet]);
            for name in ["first", "second"] {
                let ids = [("ovn-localnet-port", "one")];
                node.port("breth0", name, "patch", number(4), &ids);
            }
        }),
        ["GR_blue_node-1: bridge breth0 has 2 ports for the localnet port one"]
    );
}

#[test]
fn routers_that_share_an_external_switch_do_not_both_follow() {
    let first = Network::user_defined("aqua", 4);
    let mut second = Network::user_defined("blue", 4);
    second.ofport = 5;
    let mut node = Node::new(&[Network::default_network()]);
    let localnet = node.localnet("one", "physnet", 0);
    node.external_side(&first, "ext_one", &[localnet]);
    node.external_side(&second, "ext_two", &[localnet]);
    node.patch("breth0", "one", number(4));
    let topology = node.topology();
    assert_eq!(topology.groups[0].followers.len(), 1);
    assert_eq!(
        skipped(&topology),
        ["GR_blue_node-1: router GR_aqua_node-1 uses the same patch port"]
    );
}

#[test]
fn a_patch_port_that_leads_nowhere_is_named() {
    assert_eq!(
        with(|node| node.patch("breth0", "gone", number(9))),
        [
            "patch-gone-to-br-int: it is the patch port of gone, which belongs to no gateway \
             router and no secondary localnet network"
        ]
    );
    assert_eq!(
        with(|node| node.secondary_localnet("vlan7", "breth0", None)),
        ["patch-vlan7_ovn_localnet_port-to-br-int: port \
             patch-vlan7_ovn_localnet_port-to-br-int has no OpenFlow number (yet)"]
    );
}

#[test]
fn a_secondary_localnet_network_on_an_uplink_bridge_is_no_ingress() {
    let found = with(|node| {
        node.bridge("br-up", "ens7", &[]);
        node.map("net-br-up", "br-up");
        node.network(&Network::user_defined("coral", 6).on_uplink("br-up"));
        node.secondary_localnet("vlan7", "br-up", Some(8));
    });
    assert_eq!(
        found,
        [
            "patch-vlan7_ovn_localnet_port-to-br-int: it is of a secondary localnet network, and \
             bridge br-up is not the default network's"
        ]
    );
}

#[test]
fn a_follower_in_another_vlan_is_in_another_segment() {
    let mut network = Network::user_defined("blue", 4);
    network.vlan = 7;
    assert_eq!(
        with(|node| node.network(&network)),
        ["GR_blue_node-1: it is in VLAN 7, and its bridge's source in no VLAN"]
    );
}

#[test]
fn an_address_that_cannot_be_read_does_not_take_the_others_with_it() {
    let mut network = Network::default_network();
    network.addresses = vec!["172.18.0.3/16".to_owned(), "172.18.0.300/16".to_owned()];
    let topology = Node::new(&[network]).topology();
    assert_eq!(topology.groups[0].node_addresses.len(), 1);
    assert_eq!(
        skipped(&topology),
        ["rtoe-GR_node-1: it has the address \"172.18.0.300/16\", which cannot be read"]
    );
}

#[test]
fn a_mapping_that_is_none_does_not_take_the_others_with_it() {
    assert_eq!(
        with(|node| {
            node.map("", "br-x");
            node.map("physnet", "br-second");
        }),
        ["ovn-bridge-mappings: \":br-x\" in ovn-bridge-mappings is not network:bridge"]
    );
}

#[test]
fn a_bridge_without_an_uplink_or_with_too_many_has_no_group() {
    let bridge = |ports: &[(&str, &str)], ids: &[(&str, &str)]| {
        let mut node = Node::default();
        node.map("physnet", "breth0");
        node.bridge("breth0", "not-system", ids);
        for (table, _, row) in &mut node.rows {
            if *table == Table::Interface && row.string("name").unwrap().as_ref() == "not-system" {
                let columns = [("name", text("not-system")), ("type", text("vxlan"))];
                *row = crate::rows::tests::row(Table::Interface, &columns);
            }
        }
        for (name, kind) in ports {
            node.port("breth0", name, kind, number(11), &[]);
        }
        node.network(&Network::default_network());
        let topology = node.topology();
        assert_eq!(topology.groups, []);
        skipped(&topology)
    };
    assert_eq!(
        bridge(&[], &[]),
        [
            "breth0: it has no uplink: name one in external_ids:bridge-uplink, or add one port of \
             type system"
        ]
    );
    assert_eq!(
        bridge(&[("ens8", ""), ("ens7", "system")], &[]),
        ["breth0: its uplink is one of ens7, ens8: name it in external_ids:bridge-uplink"]
    );
    assert_eq!(
        bridge(&[("ens8", "")], &[("bridge-uplink", "ens9")]),
        ["breth0: external_ids:bridge-uplink names ens9, which is no port of it"]
    );
    for (name, kind) in [("patch-to-int", "patch"), ("breth0", "internal")] {
        let reasons = bridge(&[(name, kind)], &[("bridge-uplink", name)]);
        let reason = format!("breth0: external_ids:bridge-uplink names {name}, which is a patch");
        assert!(
            matches!(&reasons[..], [only] if only.starts_with(&reason)),
            "{reasons:?}"
        );
    }
}

#[test]
fn a_node_without_a_chassis_name_has_no_groups() {
    let topology = crate::topology::build(
        &crate::rows::Rows::default(),
        &crate::topology::Incumbents::new(),
    );
    assert_eq!(topology.groups, []);
    assert_eq!(
        skipped(&topology),
        [
            "Open_vSwitch: external_ids:system-id is not set: ovn-controller has no chassis name \
             here"
        ]
    );
}
