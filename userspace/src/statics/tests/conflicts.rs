//! From objects to what followers need.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use super::{Bench, MAC_A, MAC_B};
use crate::{
    ids::Mac,
    nodes::{Gateway, GatewayMode, Inventory, Node, Problem, UplinkState},
    statics::{
        BridgeBindings, Masquerade, OwnNode, Settings, Wanted, WantedBindings, Warning, targets,
        wanted,
    },
    topology::tests::{Network, Node as Rows},
};

fn ips<T: FromIterator<IpAddr>>(texts: &[&str]) -> T {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn node(addresses: &[&str], mac: Result<Mac, Problem>) -> Node {
    Node {
        chassis: None,
        internal_ips: ips(addresses),
        gateway: mac.map(|mac| Gateway {
            mac,
            networks: Vec::new(),
            mode: GatewayMode::Shared,
        }),
        dpu_host: None,
        problems: Vec::new(),
    }
}

fn uplink(uplink: &str, node: &str, bridge: &str, address: &str, mac: Mac) -> UplinkState {
    UplinkState {
        uplink: uplink.into(),
        node: node.into(),
        bridge: Some(bridge.into()),
        mac: Ok(mac),
        addresses: vec![address.parse().unwrap()],
        problems: Vec::new(),
    }
}

/// This node and others.
fn inventory(others: impl IntoIterator<Item = (&'static str, Node)>) -> Inventory {
    let own = Node {
        chassis: Some("chassis-1".into()),
        ..node(&["172.18.0.3", "fd00::3"], Ok(MAC_A))
    };
    let others = others
        .into_iter()
        .map(|(name, node)| (Arc::from(name), node));
    Inventory {
        nodes: others.chain([("node-1".into(), own)]).collect(),
        ..Inventory::default()
    }
}

fn plan_on(rows: &Rows, inventory: &Inventory) -> WantedBindings {
    let own = OwnNode {
        name: None,
        masquerade: &Masquerade::default(),
    };
    wanted(Some(inventory), &rows.rows(), &rows.topology(), own).unwrap()
}

fn plan(inventory: &Inventory) -> (BridgeBindings, BTreeSet<Warning>) {
    let mut wanted = plan_on(&Rows::with_two_followers(|_| {}, []), inventory);
    (wanted.bridges.remove("breth0").unwrap(), wanted.warnings)
}

fn text(bindings: &BridgeBindings) -> Vec<String> {
    let bindings = bindings.bindings.iter();
    let text = bindings.map(|(ip, wanted)| match wanted {
        Wanted::Binding(mac) => format!("{ip} {mac}"),
        Wanted::Keep => format!("{ip} keep"),
    });
    text.collect()
}

#[test]
fn other_nodes_addresses_on_the_nodes_own_subnets_are_bound_to_their_macs() {
    let (bindings, warnings) = plan(&inventory([
        ("node-2", node(&["172.18.0.4", "fd00::4"], Ok(MAC_A))),
        (
            "node-3",
            node(
                &["172.18.0.5", "10.0.0.5", "fd01::5", "172.19.0.5"],
                Ok(MAC_B),
            ),
        ),
    ]));
    let wanted = [
        "172.18.0.4 02:00:00:00:00:0a",
        "172.18.0.5 02:00:00:00:00:0b",
        "fd00::4 02:00:00:00:00:0a",
    ];
    assert_eq!(text(&bindings), wanted);
    assert_eq!(bindings.rows(), 3);
    assert_eq!(warnings, BTreeSet::new());
    let mirrored_never = [
        "10.0.0.5",
        "172.18.0.3",
        "172.18.0.4",
        "172.18.0.5",
        "172.19.0.5",
        "fd00::3",
        "fd00::4",
        "fd01::5",
    ];
    assert!(bindings.node_ips.is_superset(&ips(&mirrored_never)));
}

#[test]
fn a_group_of_one_family_binds_addresses_of_that_family_alone() {
    let only_v4 = |network: &mut Network| network.addresses = vec!["172.18.0.3/16".to_owned()];
    let rows = Rows::with_two_followers(only_v4, []);
    let inventory = inventory([("node-2", node(&["172.18.0.4", "fd00::4"], Ok(MAC_A)))]);
    let wanted = plan_on(&rows, &inventory);
    assert_eq!(
        text(&wanted.bridges["breth0"]),
        ["172.18.0.4 02:00:00:00:00:0a"]
    );
}

#[test]
fn one_node_that_cannot_be_told_is_named_and_the_others_proceed() {
    let missing = Problem::Missing("k8s.ovn.org/l3-gateway-config");
    let unusable = Problem::UnusableMac(Mac::BROADCAST);
    let (bindings, warnings) = plan(&inventory([
        ("node-2", node(&["172.18.0.4"], Err(missing.clone()))),
        ("node-3", node(&["172.18.0.5"], Err(unusable.clone()))),
        ("node-4", node(&["172.18.0.6"], Ok(MAC_A))),
    ]));
    assert_eq!(
        text(&bindings),
        [
            "172.18.0.4 keep",
            "172.18.0.5 keep",
            "172.18.0.6 02:00:00:00:00:0a"
        ]
    );
    assert_eq!(
        bindings.untold().collect::<Vec<_>>(),
        ips::<Vec<_>>(&["172.18.0.4", "172.18.0.5"])
    );
    let untold = |node: &str, problem| Warning::NodeUntold {
        node: node.into(),
        problem,
    };
    assert_eq!(
        warnings,
        BTreeSet::from([untold("node-2", missing), untold("node-3", unusable)])
    );
    let kinds: Vec<_> = warnings.iter().map(Warning::kind).collect();
    assert_eq!(kinds, ["node_untold"; 2]);
}

#[test]
fn two_nodes_with_one_address_and_two_macs_change_nothing_about_it() {
    let (bindings, warnings) = plan(&inventory([
        ("node-2", node(&["172.18.0.4", "172.18.0.5"], Ok(MAC_A))),
        ("node-3", node(&["172.18.0.4"], Ok(MAC_B))),
        ("node-4", node(&["172.18.0.5"], Ok(MAC_A))),
    ]));
    assert_eq!(
        text(&bindings),
        ["172.18.0.4 keep", "172.18.0.5 02:00:00:00:00:0a"]
    );
    let conflict = warnings.first().unwrap().to_string();
    assert_eq!(
        conflict,
        "172.18.0.4 is claimed by node-2, node-3, who differ about its MAC: what there is stays"
    );
}

#[test]
fn an_address_that_is_this_nodes_is_never_bound_whoever_claims_it() {
    let (bindings, _) = plan(&inventory([(
        "node-2",
        node(&["172.18.0.3", "fd00::3"], Ok(MAC_B)),
    )]));
    assert_eq!(text(&bindings), Vec::<String>::new());
}

#[test]
fn a_node_without_a_gateway_is_a_neighbour_as_any_other() {
    let disabled = node(&["172.18.0.4"], Err(Problem::GatewayDisabled));
    let (bindings, warnings) = plan(&inventory([("node-2", disabled)]));
    assert_eq!(text(&bindings), Vec::<String>::new());
    assert!(!bindings.node_ips.contains(&"172.18.0.4".parse().unwrap()));
    assert_eq!(warnings, BTreeSet::new());
}

#[test]
fn a_node_in_the_masquerade_subnet_is_named_and_not_bound() {
    let inside = node(&["169.254.0.9", "172.18.0.4"], Ok(MAC_A));
    let wide = |network: &mut Network| network.addresses.push("169.254.0.1/17".to_owned());
    let wanted = plan_on(
        &Rows::with_two_followers(wide, []),
        &inventory([("node-2", inside)]),
    );
    assert_eq!(
        text(&wanted.bridges["breth0"]),
        ["172.18.0.4 02:00:00:00:00:0a"]
    );
    assert_eq!(wanted.warnings.first().unwrap().kind(), "in_masquerade");
}

#[test]
fn nodes_that_were_not_read_are_not_nodes_that_are_gone() {
    let rows = Rows::with_two_followers(|_| {}, []);
    let own = OwnNode {
        name: None,
        masquerade: &Masquerade::default(),
    };
    let plan =
        |inventory: Option<&Inventory>| wanted(inventory, &rows.rows(), &rows.topology(), own);
    assert_eq!(plan(None), None);
    assert_eq!(plan(Some(&Inventory::default())), None);
}

#[test]
fn addresses_that_cannot_be_read_keep_the_rows_that_may_be_theirs() {
    let mut broken = node(&[], Ok(MAC_A));
    let unreadable = Problem::Unreadable {
        what: "status.addresses",
        problem: "x".to_owned(),
    };
    broken.problems.push(unreadable);
    let (bindings, warnings) = plan(&inventory([("node-2", broken)]));
    assert!(bindings.keep_unlisted);
    assert_eq!(warnings.first().unwrap().kind(), "node_problem");
    let (bindings, _) = plan(&inventory([("node-2", node(&[], Ok(MAC_A)))]));
    assert!(!bindings.keep_unlisted);
}

#[test]
fn this_node_is_the_one_on_its_chassis_else_the_one_of_its_name() {
    let rows = Rows::with_two_followers(|_| {}, []);
    let mut unmarked = inventory([("node-2", node(&["172.18.0.4"], Ok(MAC_B)))]);
    for node in unmarked.nodes.values_mut() {
        node.chassis = None;
        node.internal_ips.insert("172.18.0.77".parse().unwrap());
    }
    let masquerade = Masquerade::default();
    let plan = |inventory: &Inventory, name| {
        let own = OwnNode {
            name,
            masquerade: &masquerade,
        };
        wanted(Some(inventory), &rows.rows(), &rows.topology(), own).unwrap()
    };
    let named = plan(&unmarked, Some("node-1"));
    // What this node claims besides its routers' addresses is contested, and not taken from the other.
    assert_eq!(
        text(&named.bridges["breth0"]),
        ["172.18.0.4 02:00:00:00:00:0b", "172.18.0.77 keep"]
    );
    let kinds = named.warnings.iter().map(Warning::kind);
    assert_eq!(kinds.collect::<Vec<_>>(), ["conflict"]);
    let unknown = plan(&unmarked, Some("node-9"));
    assert!(unknown.warnings.contains(&Warning::OwnNodeUnknown));
    // Its addresses on the bridge are known from the routers all the same.
    let bound = text(&unknown.bridges["breth0"]);
    assert!(
        !bound.iter().any(|it| it.starts_with("172.18.0.3 ")),
        "{bound:?}"
    );
    // The chassis goes before a name that is another's.
    let marked = inventory([("node-2", node(&["172.18.0.4"], Ok(MAC_B)))]);
    let chassis = plan(&marked, Some("node-2"));
    assert_eq!(
        text(&chassis.bridges["breth0"]),
        ["172.18.0.4 02:00:00:00:00:0b"]
    );
}

fn uplink_rows() -> Rows {
    let mut rows = Rows::with_two_followers(|_| {}, []);
    rows.bridge("brup", "eth1", &[]);
    for (name, ofport) in [("amber", 5), ("navy", 6)] {
        let mut network = Network::user_defined(name, ofport).on_uplink("brup");
        network.physical = name.to_owned();
        network.addresses = vec!["10.9.0.3/24".to_owned(), "169.254.0.12/32".to_owned()];
        rows.network(&network);
        rows.map(name, "brup");
    }
    rows
}

#[test]
fn an_uplinks_addresses_come_from_the_states_of_the_uplink_that_the_bridge_is() {
    let mut inventory = inventory([("node-2", node(&["172.18.0.4"], Ok(MAC_A)))]);
    for (object, state) in [
        ("a", uplink("red", "node-1", "brup", "10.9.0.3/24", MAC_A)),
        (
            "b",
            uplink("red", "node-2", "anything", "10.9.0.4/24", MAC_B),
        ),
        ("c", uplink("other", "node-2", "brup", "10.9.0.5/24", MAC_B)),
        ("d", uplink("red", "node-3", "brup", "10.8.0.4/24", MAC_B)),
    ] {
        inventory.uplinks.insert(object.into(), state);
    }
    let wanted = plan_on(&uplink_rows(), &inventory);
    assert_eq!(
        text(&wanted.bridges["brup"]),
        ["10.9.0.4 02:00:00:00:00:0b"]
    );
    assert_eq!(
        text(&wanted.bridges["breth0"]),
        ["172.18.0.4 02:00:00:00:00:0a"]
    );
    assert_eq!(wanted.warnings, BTreeSet::new());
    let node_ips = &wanted.bridges["brup"].node_ips;
    assert!(node_ips.is_superset(&ips(&["10.9.0.3", "10.9.0.4", "10.8.0.4"])));
    assert!(!node_ips.contains(&"172.18.0.4".parse().unwrap()));
}

#[test]
fn an_uplink_that_this_nodes_states_do_not_name_once_is_left_as_it_is() {
    let states = [
        vec![],
        vec![("a", uplink("red", "node-2", "brup", "10.9.0.4/24", MAC_B))],
        vec![
            ("a", uplink("red", "node-1", "brup", "10.9.0.3/24", MAC_A)),
            ("b", uplink("blue", "node-1", "brup", "10.9.0.3/24", MAC_A)),
        ],
    ];
    for (count, states) in [0, 0, 2].into_iter().zip(states) {
        let mut inventory = inventory([]);
        inventory.uplinks.extend(
            states
                .into_iter()
                .map(|(object, state)| (object.into(), state)),
        );
        let wanted = plan_on(&uplink_rows(), &inventory);
        assert!(!wanted.bridges.contains_key("brup"));
        let bridge = "brup".into();
        assert_eq!(
            wanted.warnings,
            BTreeSet::from([Warning::UplinkUnknown { bridge, count }])
        );
    }
}

#[test]
fn the_switchs_part_may_be_missing_and_the_bindings_are_the_same() {
    let inventory = inventory([("node-2", node(&["172.18.0.4", "fd00::4"], Ok(MAC_A)))]);
    let with = |ofport| {
        let mut network = Network::default_network();
        network.ofport = ofport;
        let mut rows = Rows::new(&[network]);
        let mut blue = Network::user_defined("blue", 3);
        blue.ofport = ofport;
        rows.network(&blue);
        rows
    };
    let (there, restarting) = (with(2), with(-1));
    assert!(restarting.topology().groups.is_empty());
    assert_eq!(
        text(&plan_on(&there, &inventory).bridges["breth0"]),
        text(&plan_on(&restarting, &inventory).bridges["breth0"])
    );
}

#[test]
fn a_former_binding_stays_until_the_new_one_is_valid() {
    let rows = Rows::with_two_followers(|_| {}, []);
    let targets = targets(&rows.rows(), &rows.topology(), &BTreeSet::new());
    let mut bench = Bench::new(Settings::default());
    bench.retarget(targets);
    bench.machine.synced(bench.now);
    let blue = "rtoe-GR_blue_node-1";
    let unusable = || Err(Problem::UnusableMac(Mac::BROADCAST));
    for (mac, rival, wanted) in [
        (Ok(MAC_A), None, MAC_A),
        (unusable(), None, MAC_A),
        (Ok(MAC_B), Some(Ok(MAC_A)), MAC_A),
        (Ok(MAC_B), Some(unusable()), MAC_A),
        (Ok(MAC_B), None, MAC_B),
    ] {
        let others = [("node-2", Some(mac)), ("node-3", rival)];
        let others = others
            .into_iter()
            .filter_map(|(name, mac)| Some((name, mac?)));
        let inventory = inventory(others.map(|(name, mac)| (name, node(&["172.18.0.4"], mac))));
        bench.want(Some(plan_on(&rows, &inventory)));
        bench.run(5_000);
        assert_eq!(bench.mac(blue, "172.18.0.4"), Some(wanted));
    }
    bench.want(Some(plan_on(&rows, &inventory([]))));
    bench.run(5_000);
    assert_eq!(bench.mac(blue, "172.18.0.4"), None);
}
