use std::{collections::BTreeSet, sync::Arc};

use crate::{
    rows::{DatapathBinding, Rows, Table, tests as rows},
    statics::{Treatment, targets},
    topology::{
        Incumbents, build,
        tests::{Network, Node},
    },
};

/// The targets of these rows, without the prefix `rtoe-GR_`, in words.
fn treated(rows: &Rows, remembered: &[&str]) -> Vec<String> {
    let remembered: BTreeSet<Arc<str>> = remembered.iter().map(|name| (*name).into()).collect();
    let topology = build(rows, &Incumbents::new());
    let targets = targets(rows, &topology, &remembered).into_iter();
    targets
        .map(|target| {
            let known = rows
                .router_ports
                .iter()
                .find(|(_, row)| row.name == target.port);
            assert_eq!(target.port_row, known.map(|(uuid, _)| *uuid));
            let bridge = target.bridge.as_deref().unwrap_or("-");
            let name = target.port.trim_start_matches("rtoe-GR_").to_owned();
            format!("{name} {bridge} {:?}", target.treatment)
        })
        .collect()
}

fn two() -> [Network; 2] {
    [Network::default_network(), Network::user_defined("blue", 3)]
}

#[test]
fn followers_get_rows_and_the_default_networks_router_none() {
    let node = Node::with_two_followers(|_| {}, []);
    assert_eq!(
        treated(&node.rows(), &[]),
        [
            "blue_node-1 breth0 Follower",
            "green_node-1 breth0 Follower",
            "node-1 breth0 DefaultSource"
        ]
    );
}

#[test]
fn the_source_of_an_uplink_keeps_what_it_inherited() {
    let mut node = Node::new(&[]);
    node.bridge("brup", "eth1", &[]);
    for (name, ofport) in [("amber", 5), ("navy", 6)] {
        let mut network = Network::user_defined(name, ofport).on_uplink("brup");
        network.physical = name.to_owned();
        node.map(name, "brup");
        node.network(&network);
    }
    assert_eq!(
        treated(&node.rows(), &[]),
        [
            "amber_node-1 brup UplinkSource",
            "navy_node-1 brup Follower"
        ]
    );
}

#[test]
fn a_router_without_its_part_of_the_switch_is_held() {
    let [default, blue] = two();
    // No number yet, as while ovs-vswitchd restarts.
    let unnumbered = Node::new(&[
        default.clone(),
        Network {
            ofport: -1,
            ..blue.clone()
        },
    ]);
    assert_eq!(
        treated(&unnumbered.rows(), &[])[0],
        "blue_node-1 breth0 Held"
    );
    // The whole group is without.
    let restarting = Node::new(&[
        Network {
            ofport: -1,
            ..default.clone()
        },
        Network {
            ofport: -1,
            ..blue.clone()
        },
    ]);
    assert_eq!(
        treated(&restarting.rows(), &[]),
        ["blue_node-1 breth0 Held", "node-1 breth0 DefaultSource"]
    );
    // No mapping.
    let unmapped = Node::new(&[
        default.clone(),
        Network {
            physical: "other".to_owned(),
            ..blue.clone()
        },
    ]);
    assert_eq!(treated(&unmapped.rows(), &[])[0], "blue_node-1 - Held");
    // No patch port.
    let mut unpatched = Node::new(std::slice::from_ref(&default));
    let localnet = unpatched.localnet("breth0_blue_node-1", "physnet", 0);
    unpatched.external_side(&blue, "ext_blue_node-1", &[localnet]);
    assert_eq!(
        treated(&unpatched.rows(), &[])[0],
        "blue_node-1 breth0 Held"
    );
    // No uplink.
    let mut without = Node::default();
    without.map("physnet", "breth0");
    without.bridge("breth0", "eth0", &[("bridge-uplink", "eth9")]);
    for network in two() {
        without.network(&network);
    }
    assert_eq!(treated(&without.rows(), &[])[0], "blue_node-1 breth0 Held");
    // The default router's part is missing: its followers cannot help that.
    let defaultless = Node::new(&[
        Network {
            ofport: -1,
            ..default
        },
        blue,
    ]);
    assert_eq!(
        treated(&defaultless.rows(), &[])[0],
        "blue_node-1 breth0 Held"
    );
}

#[test]
fn a_router_without_a_datapath_is_held() {
    let mut rows = Node::new(&two()).rows();
    rows.port_bindings.clear();
    assert_eq!(treated(&rows, &[])[0], "blue_node-1 breth0 Held");
}

#[test]
fn a_router_that_was_made_again_has_no_datapath_until_northd_has_seen_that() {
    let mut rows = Node::new(&two()).rows();
    let router_of = |rows: &Rows, name: &str| {
        let mut routers = rows.routers.iter();
        *routers.find(|(_, row)| &*row.name == name).unwrap().0
    };
    let blue = router_of(&rows, "GR_blue_node-1");
    let port = "rtoe-GR_blue_node-1";
    let mut bindings = rows.port_bindings.values();
    let datapath = bindings.find(|it| &*it.logical_port == port).unwrap();
    let datapath = datapath.datapath;
    let made_for = |router| DatapathBinding {
        router: Some(router),
    };
    let has_datapath = |rows: &Rows| {
        let topology = build(rows, &Incumbents::new());
        let follower = &topology.groups[0].followers[0];
        follower.datapath.is_some()
    };
    rows.datapath_bindings.insert(datapath, made_for(blue));
    assert_eq!(treated(&rows, &[])[0], "blue_node-1 breth0 Follower");
    assert!(has_datapath(&rows));
    // Another router has the name now, and the southbound port is still the former one's.
    let row = rows.routers.remove(&blue).unwrap();
    let again = crate::rows::tests::uuid(0xb1e);
    rows.routers.insert(again, row);
    assert_eq!(treated(&rows, &[])[0], "blue_node-1 breth0 Recreated");
    assert!(!has_datapath(&rows));
    rows.datapath_bindings.insert(datapath, made_for(again));
    assert_eq!(treated(&rows, &[])[0], "blue_node-1 breth0 Follower");
    // Of a datapath that does not say whose it is nothing can be told.
    rows.datapath_bindings
        .insert(datapath, DatapathBinding { router: None });
    assert_eq!(treated(&rows, &[])[0], "blue_node-1 breth0 Follower");
}

#[test]
fn a_router_that_the_northbound_database_takes_out_is_leaving() {
    let [default, blue] = two();
    let other_vlan = Node::new(&[
        default.clone(),
        Network {
            vlan: 7,
            ..blue.clone()
        },
    ]);
    assert_eq!(
        treated(&other_vlan.rows(), &[])[0],
        "blue_node-1 breth0 Leaving"
    );
    let secondary = Network {
        role: "secondary".to_owned(),
        ..blue.clone()
    };
    let secondary = Node::new(&[default.clone(), secondary]);
    assert_eq!(
        treated(&secondary.rows(), &[])[0],
        "blue_node-1 breth0 Leaving"
    );
    let mut no_localnet = Node::new(std::slice::from_ref(&default));
    no_localnet.external_side(&blue, "ext_blue_node-1", &[]);
    assert_eq!(
        treated(&no_localnet.rows(), &[])[0],
        "blue_node-1 - Leaving"
    );
    let mut no_switch = Node::new(&[default, blue]).rows();
    no_switch
        .switches
        .retain(|_, switch| &*switch.name != "ext_blue_node-1");
    assert_eq!(treated(&no_switch, &[])[0], "blue_node-1 - Leaving");
}

#[test]
fn routers_of_other_chassis_are_no_targets_and_what_was_written_to_one_once_is_gone() {
    let [default, blue] = two();
    let node = Node::new(&[
        default,
        Network {
            chassis: "chassis-2".to_owned(),
            ..blue
        },
    ]);
    assert_eq!(treated(&node.rows(), &[]), ["node-1 breth0 DefaultSource"]);
    assert_eq!(
        treated(
            &node.rows(),
            &[
                "rtoe-GR_blue_node-1",
                "rtoe-GR_red_node-1",
                "rtoe-GR_node-1"
            ]
        ),
        [
            "blue_node-1 - Gone",
            "node-1 breth0 DefaultSource",
            "red_node-1 - Gone"
        ]
    );
}

#[test]
fn a_port_is_not_taken_for_gone_because_a_row_cannot_be_read_or_the_chassis_is_not_known() {
    let mut unreadable = Node::new(&[]).rows();
    let bad = rows::row(Table::LogicalRouter, &[("name", rows::number(7))]);
    unreadable.apply(Table::LogicalRouter, rows::uuid(9), Some(&bad));
    assert_eq!(treated(&unreadable, &["rtoe-GR_red"]), ["red - Held"]);
    let mut nameless = Node::new(&two()).rows();
    nameless.open_vswitch.clear();
    assert_eq!(
        treated(&nameless, &["rtoe-GR_blue_node-1", "rtoe-GR_red"]),
        ["blue_node-1 - Held", "red - Gone"]
    );
}

#[test]
fn only_a_port_that_leaves_or_is_gone_is_urgent() {
    use Treatment::{
        DefaultSource, Follower, Gone, Held, Leaving, Paused, Recreated, UplinkSource,
    };
    let all = [
        Follower,
        UplinkSource,
        DefaultSource,
        Held,
        Paused,
        Leaving,
        Recreated,
        Gone,
    ];
    let urgent: Vec<_> = all.into_iter().filter(|it| it.is_urgent()).collect();
    assert_eq!(urgent, [Leaving, Recreated, Gone]);
}
