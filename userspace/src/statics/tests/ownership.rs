//! Whose a row is, and what becomes of it: every port, every address, the gate on and off.

use std::collections::BTreeSet;

use super::{Bench, MAC_A, MAC_B};
use crate::{
    nodes::{Gateway, GatewayMode, Inventory, Node, UplinkState},
    statics::{Masquerade, Mode, OwnNode, Settings, targets, wanted},
    topology::tests::{Network, Node as Rows},
};

/// The ports, by what is said of them in the table.
const PORTS: [(&str, &str, Addresses); 9] = [
    ("follower", "rtoe-GR_blue_node-1", ON_DEFAULT),
    ("source of default", "rtoe-GR_node-1", ON_DEFAULT),
    ("source of uplink", "rtoe-GR_amber_node-1", ON_UPLINK),
    ("uplink follower", "rtoe-GR_navy_node-1", ON_UPLINK),
    ("held", "rtoe-GR_held_node-1", ON_DEFAULT),
    ("leaving", "rtoe-GR_vlan_node-1", ON_DEFAULT),
    ("gone", "rtoe-GR_former_node-1", ON_DEFAULT),
    ("other chassis", "rtoe-GR_node-2", ON_DEFAULT),
    ("rtos-", "rtos-node-1", ON_DEFAULT),
];

/// Addresses of a node with and without a row, of a former node, of the gateway now and formerly, and
/// of somebody else.
type Addresses = [&'static str; 6];

const ON_DEFAULT: Addresses = [
    "172.18.0.4",
    "172.18.0.5",
    "172.18.0.9",
    "169.254.0.4",
    "100.64.0.2",
    "192.0.2.7",
];
const ON_UPLINK: Addresses = [
    "10.9.0.4",
    "10.9.0.5",
    "10.9.0.9",
    "169.254.0.4",
    "100.64.0.2",
    "192.0.2.7",
];

const GATE_ON: &str = "
    port              | node  no row | former node | masquerade former | foreign
    follower          | right insert | delete      | leave      leave  | delete
    source of default | delete  -    | delete      | leave      leave  | delete
    source of uplink  | right   -    | delete      | leave      leave  | delete
    uplink follower   | right insert | delete      | leave      leave  | delete
    held              | right   -    | delete      | leave      leave  | delete
    leaving           | delete  -    | delete      | leave      leave  | delete
    gone              | delete  -    | delete      | leave      leave  | delete
    other chassis     | leave   -    | leave       | leave      leave  | leave
    rtos-             | leave   -    | leave       | leave      leave  | leave";

/// Before an inventory was read, or after it was lost.
const NODES_UNKNOWN: &str = "
    port              | node  no row | former node | masquerade former | foreign
    follower          | leave   -    | leave       | leave      leave  | leave
    source of default | leave   -    | leave       | leave      leave  | leave
    source of uplink  | leave   -    | leave       | leave      leave  | leave
    uplink follower   | leave   -    | leave       | leave      leave  | leave
    held              | leave   -    | leave       | leave      leave  | leave
    leaving           | delete  -    | delete      | leave      leave  | delete
    gone              | delete  -    | delete      | leave      leave  | delete
    other chassis     | leave   -    | leave       | leave      leave  | leave
    rtos-             | leave   -    | leave       | leave      leave  | leave";

/// While the mirror writes rows of its own.
const RETAINED: &str = "
    port              | node  no row | former node | masquerade former | foreign
    follower          | right   -    | delete      | leave      leave  | delete
    source of default | delete  -    | delete      | leave      leave  | delete
    source of uplink  | right   -    | delete      | leave      leave  | delete
    uplink follower   | right   -    | delete      | leave      leave  | delete
    held              | right   -    | delete      | leave      leave  | delete
    leaving           | delete  -    | delete      | leave      leave  | delete
    gone              | delete  -    | delete      | leave      leave  | delete
    other chassis     | leave   -    | leave       | leave      leave  | leave
    rtos-             | leave   -    | leave       | leave      leave  | leave";

/// The gate off, a cleanup, or dynamic bindings: with an inventory or without.
const WITHDRAWN: &str = "
    port              | node  no row | former node | masquerade former | foreign
    follower          | delete  -    | delete      | leave      leave  | delete
    source of default | delete  -    | delete      | leave      leave  | delete
    source of uplink  | delete  -    | delete      | leave      leave  | delete
    uplink follower   | delete  -    | delete      | leave      leave  | delete
    held              | delete  -    | delete      | leave      leave  | delete
    leaving           | delete  -    | delete      | leave      leave  | delete
    gone              | delete  -    | delete      | leave      leave  | delete
    other chassis     | leave   -    | leave       | leave      leave  | leave
    rtos-             | leave   -    | leave       | leave      leave  | leave";

fn rows() -> Rows {
    let mut rows = Rows::new(&[
        Network::default_network(),
        Network::user_defined("blue", 3),
        Network {
            ofport: -1,
            ..Network::user_defined("held", 4)
        },
        Network {
            vlan: 7,
            ..Network::user_defined("vlan", 5)
        },
    ]);
    rows.bridge("brup", "eth1", &[]);
    for (name, ofport) in [("amber", 6), ("navy", 7)] {
        let mut network = Network::user_defined(name, ofport).on_uplink("brup");
        network.physical = name.to_owned();
        network.addresses = vec!["10.9.0.3/24".to_owned()];
        rows.map(name, "brup");
        rows.network(&network);
    }
    rows
}

fn inventory() -> Inventory {
    let mut inventory = Inventory::default();
    for (name, ip, uplink_ip, chassis) in [
        ("node-1", "172.18.0.3", "10.9.0.3", Some("chassis-1")),
        ("node-2", "172.18.0.4", "10.9.0.4", None),
        ("node-3", "172.18.0.5", "10.9.0.5", None),
    ] {
        let gateway = Gateway {
            mac: MAC_A,
            networks: Vec::new(),
            mode: GatewayMode::Shared,
        };
        let node = Node {
            chassis: chassis.map(Into::into),
            internal_ips: BTreeSet::from([ip.parse().unwrap()]),
            gateway: Ok(gateway),
            dpu_host: None,
            problems: Vec::new(),
        };
        inventory.nodes.insert(name.into(), node);
        let state = UplinkState {
            uplink: "uplink".into(),
            node: name.into(),
            bridge: Some("brup".into()),
            mac: Ok(MAC_A),
            addresses: vec![format!("{uplink_ip}/24").parse().unwrap()],
            problems: Vec::new(),
        };
        inventory.uplinks.insert(name.into(), state);
    }
    inventory
}

/// Every row with a wrong MAC, then what has become of it.
fn outcome(mode: Mode, inventory: Option<&Inventory>) -> String {
    let masquerade = Masquerade::new(["100.64.0.0/17".parse().unwrap()]);
    let rows = rows();
    let (rows, topology) = (rows.rows(), rows.topology());
    let remembered = BTreeSet::from(["rtoe-GR_former_node-1".into()]);
    let own = OwnNode {
        name: None,
        masquerade: &masquerade,
    };
    let wanted = wanted(inventory, &rows, &topology, own);
    let mut bench = Bench::new(Settings {
        masquerade: masquerade.clone(),
        ..Settings::default()
    });
    bench.set_mode(mode);
    let without_row = |column: usize| column == 1;
    for (_, port, addresses) in PORTS {
        for (column, address) in addresses.iter().enumerate() {
            if !without_row(column) {
                bench.server.put(port, address, Some(MAC_B), true);
            }
        }
    }
    while bench.read() {}
    bench.want(wanted);
    bench.retarget(targets(&rows, &topology, &remembered));
    bench.machine.synced(bench.now);
    bench.run(60_000);
    assert!(bench.machine.is_idle());
    assert_eq!(bench.due(), []);
    let become_of = |port: &str, address: &str, column: usize| match bench.mac(port, address) {
        None if without_row(column) => "-",
        None => "delete",
        Some(MAC_A) if without_row(column) => "insert",
        Some(MAC_A) => "right",
        Some(_) => "leave",
    };
    let mut table = String::new();
    for (name, port, addresses) in PORTS {
        let cells = addresses.iter().enumerate();
        let cells: Vec<&str> = cells
            .map(|(column, it)| become_of(port, it, column))
            .collect();
        table += &format!("{name}: {}\n", cells.join(" "));
    }
    table
}

fn words(table: &str) -> String {
    let lines = table.trim().lines().skip(1);
    let lines = lines.map(|line| {
        let mut cells = line.trim().split('|');
        let name = cells.next().unwrap_or_default().trim();
        let cells: Vec<&str> = cells.flat_map(str::split_whitespace).collect();
        format!("{name}: {}\n", cells.join(" "))
    });
    lines.collect()
}

#[test]
fn a_row_on_a_gateway_routers_external_port_is_ours_unless_it_is_the_gateways() {
    let inventory = inventory();
    assert_eq!(outcome(Mode::Write, Some(&inventory)), words(GATE_ON));
    assert_eq!(outcome(Mode::Write, None), words(NODES_UNKNOWN));
    assert_eq!(outcome(Mode::Retain, Some(&inventory)), words(RETAINED));
}

#[test]
fn what_is_ours_is_withdrawn_whether_or_not_the_nodes_are_known() {
    let inventory = inventory();
    assert_eq!(outcome(Mode::Withdraw, Some(&inventory)), words(WITHDRAWN));
    assert_eq!(outcome(Mode::Withdraw, None), words(WITHDRAWN));
}
