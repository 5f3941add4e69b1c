//! Builds the rows of a node.

use crate::{
    ovsdb::{Datum, Row, Uuid},
    rows::{
        Rows, Table,
        tests::{map, number, references, row, text, texts, uuid},
    },
    topology::{Incumbents, Topology, build},
};

/// A network with a gateway router on the node.
#[derive(Clone)]
pub(crate) struct Network {
    /// What names of the network begin with; empty for the default network.
    pub(crate) prefix: String,
    pub(crate) physical: String,
    pub(crate) bridge: String,
    pub(crate) ofport: i64,
    pub(crate) vlan: i64,
    pub(crate) chassis: String,
    pub(crate) role: String,
    pub(crate) addresses: Vec<String>,
}

impl Network {
    pub(crate) fn default_network() -> Self {
        Self {
            prefix: String::new(),
            physical: "physnet".to_owned(),
            bridge: "breth0".to_owned(),
            ofport: 2,
            vlan: 0,
            chassis: "chassis-1".to_owned(),
            role: "primary".to_owned(),
            addresses: vec!["172.18.0.3/16".to_owned(), "fd00::3/64".to_owned()],
        }
    }

    /// A user-defined network on the default network's bridge.
    pub(crate) fn user_defined(name: &str, ofport: i64) -> Self {
        Self {
            prefix: format!("{name}_"),
            ofport,
            addresses: vec![
                "172.18.0.3/16".to_owned(),
                "169.254.0.12/32".to_owned(),
                "fd00::3/64".to_owned(),
                "fd69::c/128".to_owned(),
            ],
            ..Self::default_network()
        }
    }

    /// The same on a bridge of its own uplink.
    pub(crate) fn on_uplink(mut self, bridge: &str) -> Self {
        self.physical = format!("net-{bridge}");
        self.bridge = bridge.to_owned();
        self
    }

    pub(crate) fn router(&self) -> String {
        format!("GR_{}node-1", self.prefix)
    }

    fn localnet(&self) -> String {
        format!("{}_{}node-1", self.bridge, self.prefix)
    }
}

/// The rows of a node, before they are applied.
#[derive(Clone, Default)]
pub(crate) struct Node {
    pub(crate) rows: Vec<(Table, Uuid, Row)>,
    next: u128,
    /// Bridges with the ports that they have so far.
    bridges: Vec<(String, Vec<Uuid>, Datum)>,
    mappings: Vec<String>,
}

pub(crate) const BRIDGE_MAC: &str = "02:42:ac:12:00:03";

impl Node {
    /// A node with the bridge `breth0` (uplink `eth0`, number 1) and the given networks.
    pub(crate) fn new(networks: &[Network]) -> Self {
        let mut node = Self::default();
        node.bridge("breth0", "eth0", &[]);
        node.map("physnet", "breth0");
        for network in networks {
            node.network(network);
        }
        node
    }

    /// Two UDNs, `blue` (port 3) and `green` (4), beside the default network on `breth0` after a
    /// change to it, whose VLAN they share; secondary localnet networks by their ports.
    pub(crate) fn with_two_followers(
        change: impl Fn(&mut Network),
        secondary: impl IntoIterator<Item = i64>,
    ) -> Self {
        let mut default = Network::default_network();
        change(&mut default);
        let mut node = Self::new(std::slice::from_ref(&default));
        for (name, ofport) in [("blue", 3), ("green", 4)] {
            let mut network = Network::user_defined(name, ofport);
            network.vlan = default.vlan;
            node.network(&network);
        }
        for ofport in secondary {
            node.secondary_localnet(&format!("net{ofport}"), "breth0", Some(ofport));
        }
        node
    }

    pub(crate) fn add(&mut self, table: Table, columns: &[(&str, Datum)]) -> Uuid {
        self.next += 1;
        let identity = uuid(self.next);
        self.rows.push((table, identity, row(table, columns)));
        identity
    }

    pub(crate) fn map(&mut self, network: &str, bridge: &str) {
        self.mappings.push(format!("{network}:{bridge}"));
    }

    /// A bridge with its local port and one system port of number 1.
    pub(crate) fn bridge(&mut self, name: &str, uplink: &str, ids: &[(&str, &str)]) {
        self.bridges.push((name.to_owned(), Vec::new(), map(ids)));
        self.port(name, name, "internal", number(65534), &[]);
        self.port(name, uplink, "", number(1), &[]);
    }

    pub(crate) fn port(
        &mut self,
        bridge: &str,
        name: &str,
        kind: &str,
        ofport: Datum,
        ids: &[(&str, &str)],
    ) {
        let interface = self.add(
            Table::Interface,
            &[
                ("name", text(name)),
                ("type", text(kind)),
                ("ofport", ofport),
                ("mac_in_use", text(BRIDGE_MAC)),
            ],
        );
        let port = self.add(
            Table::Port,
            &[
                ("name", text(name)),
                ("interfaces", references(&[interface])),
                ("external_ids", map(ids)),
            ],
        );
        if let Some((_, ports, _)) = self.bridges.iter_mut().find(|it| it.0 == bridge) {
            ports.push(port);
        }
    }

    /// The patch port of a localnet port.
    pub(crate) fn patch(&mut self, bridge: &str, localnet: &str, ofport: Datum) {
        self.port(
            bridge,
            &format!("patch-{localnet}-to-br-int"),
            "patch",
            ofport,
            &[("ovn-localnet-port", localnet)],
        );
    }

    pub(crate) fn localnet(&mut self, name: &str, physical: &str, vlan: i64) -> Uuid {
        self.add(
            Table::LogicalSwitchPort,
            &[
                ("name", text(name)),
                ("type", text("localnet")),
                ("options", map(&[("network_name", physical)])),
                ("tag_request", number(vlan)),
            ],
        )
    }

    /// The external half of a network: router, switch, localnet port, patch port, port binding.
    pub(crate) fn network(&mut self, network: &Network) {
        let localnet = self.localnet(&network.localnet(), &network.physical, network.vlan);
        let external_switch = format!("ext_{}node-1", network.prefix);
        self.external_side(network, &external_switch, &[localnet]);
        self.patch(&network.bridge, &network.localnet(), number(network.ofport));
    }

    /// Router and switch, with the given localnet ports.
    pub(crate) fn external_side(&mut self, network: &Network, switch: &str, localnets: &[Uuid]) {
        let router = network.router();
        let external = format!("rtoe-{router}");
        let addresses: Vec<&str> = network.addresses.iter().map(String::as_str).collect();
        let port = self.add(
            Table::LogicalRouterPort,
            &[
                ("name", text(&external)),
                ("mac", text(BRIDGE_MAC)),
                ("networks", texts(&addresses)),
            ],
        );
        let name = network.prefix.trim_end_matches('_');
        let role = network.role.as_str();
        let ids = [
            ("k8s.ovn.org/network", name),
            ("k8s.ovn.org/role", role),
            ("k8s.ovn.org/topology", "layer3"),
        ];
        self.add(
            Table::LogicalRouter,
            &[
                ("name", text(&router)),
                ("ports", references(&[port])),
                (
                    "options",
                    map(&[
                        ("chassis", network.chassis.as_str()),
                        ("mac_binding_age_threshold", "300"),
                    ]),
                ),
                (
                    "external_ids",
                    map(if name.is_empty() { &[] } else { &ids }),
                ),
            ],
        );
        let peer = self.add(
            Table::LogicalSwitchPort,
            &[
                ("name", text(&format!("etor-{router}"))),
                ("type", text("router")),
                ("options", map(&[("router-port", external.as_str())])),
            ],
        );
        let ports: Vec<Uuid> = localnets.iter().copied().chain([peer]).collect();
        self.add(
            Table::LogicalSwitch,
            &[("name", text(switch)), ("ports", references(&ports))],
        );
        let datapath = uuid(1_000_000 + u128::try_from(network.ofport).unwrap_or(0));
        self.add(
            Table::PortBinding,
            &[
                ("logical_port", text(&external)),
                ("type", text("l3gateway")),
                ("datapath", references(&[datapath])),
            ],
        );
    }

    /// A secondary localnet network; its patch port has no number where `ofport` is `None`.
    pub(crate) fn secondary_localnet(&mut self, name: &str, bridge: &str, ofport: Option<i64>) {
        let localnet = format!("{name}_ovn_localnet_port");
        let port = self.localnet(&localnet, &format!("phys-{name}"), 0);
        self.add(
            Table::LogicalSwitch,
            &[
                ("name", text(&format!("{name}_ovn_localnet_switch"))),
                ("ports", references(&[port])),
                ("external_ids", map(&[("k8s.ovn.org/topology", "localnet")])),
            ],
        );
        let number = ofport.map_or(Datum::Set(Vec::new()), number);
        self.patch(bridge, &localnet, number);
    }

    /// All rows, those of bridges and the root included.
    pub(crate) fn finished(&self) -> Vec<(Table, Uuid, Row)> {
        let mut node = self.clone();
        for (name, ports, ids) in self.bridges.clone() {
            node.add(
                Table::Bridge,
                &[
                    ("name", text(&name)),
                    ("ports", references(&ports)),
                    ("external_ids", ids),
                ],
            );
        }
        let mappings = self.mappings.join(",");
        node.add(
            Table::OpenVSwitch,
            &[(
                "external_ids",
                map(&[
                    ("system-id", "chassis-1"),
                    ("ovn-bridge-mappings", mappings.as_str()),
                ]),
            )],
        );
        node.rows
    }

    pub(crate) fn rows(&self) -> Rows {
        let mut rows = Rows::default();
        for (table, identity, row) in self.finished() {
            rows.apply(table, identity, Some(&row));
        }
        rows
    }

    pub(crate) fn topology(&self) -> Topology {
        build(&self.rows(), &Incumbents::new())
    }
}
