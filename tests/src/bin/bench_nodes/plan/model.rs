//! The rows of a node, as three databases would tell them, and what follows from them.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, ensure};
use neighsteer::{
    ids::OfPort,
    nodes::Inventory,
    ovsdb::Uuid,
    rows::{
        Bridge, Interface, LogicalRouter, LogicalRouterPort, LogicalSwitch, LogicalSwitchPort,
        OpenVSwitch, Port, PortBinding, Rows,
    },
    statics::{self, Masquerade, OwnNode, Target, WantedBindings},
    topology::{BridgeGroup, Incumbents, Place, Topology, build, places},
};
use neighsteer_tests::lab::{BRIDGE, BRIDGE_MAC, NODE_IPV4, NODE_IPV6, Network, PHYSICAL_NETWORK};

/// This node's chassis.
pub(super) const CHASSIS: &str = "chassis-own";

/// A node with followers.
pub(super) struct Model {
    rows: Rows,
    topology: Topology,
    places: Vec<Place>,
    masquerade: Masquerade,
}

impl Model {
    /// # Errors
    /// When the followers do not make one group.
    pub(super) fn new(followers: u16) -> anyhow::Result<Self> {
        let rows = rows(followers);
        let topology = build(&rows, &Incumbents::new());
        let model = Self {
            places: places(&rows),
            rows,
            topology,
            masquerade: Masquerade::default(),
        };
        let found = model.group()?.followers.len();
        ensure!(found == usize::from(followers), "{found} followers");
        Ok(model)
    }

    pub(super) fn group(&self) -> anyhow::Result<&BridgeGroup> {
        self.topology.group(BRIDGE).context("no group")
    }

    /// The ports that matter: what the agent looks up each time that something of the nodes changes.
    pub(super) fn targets(&self) -> Vec<Target> {
        statics::targets_at(&self.places, &self.rows, &self.topology, &BTreeSet::new())
    }

    /// What followers should know of these nodes.
    ///
    /// # Errors
    /// When nothing follows.
    pub(super) fn wanted(&self, inventory: &Inventory) -> anyhow::Result<WantedBindings> {
        let own = OwnNode {
            name: None,
            masquerade: &self.masquerade,
        };
        let wanted = statics::wanted_at(Some(inventory), &self.places, &self.topology, own);
        wanted.context("the nodes are not known")
    }
}

/// What makes rows.
#[derive(Default)]
struct Maker {
    rows: Rows,
    next: u128,
    bridge_ports: Vec<Uuid>,
}

impl Maker {
    fn uuid(&mut self) -> Uuid {
        self.next += 1;
        Uuid(uuid::Uuid::from_u128(self.next))
    }

    /// A port of the bridge with its interface.
    fn port(&mut self, name: &str, kind: &str, ofport: i64, localnet: Option<&str>) {
        let (interface, port) = (self.uuid(), self.uuid());
        let row = Interface {
            name: name.into(),
            kind: kind.into(),
            ofport: OfPort::from_column(Some(ofport)),
            mac_in_use: Some(BRIDGE_MAC),
        };
        self.rows.interfaces.insert(interface, row);
        let localnet = localnet.map(|name| (Arc::from("ovn-localnet-port"), Arc::from(name)));
        let row = Port {
            name: name.into(),
            interfaces: vec![interface],
            external_ids: localnet.into_iter().collect(),
        };
        self.rows.ports.insert(port, row);
        self.bridge_ports.push(port);
    }

    fn switch_port(&mut self, name: &str, kind: &str, option: (&str, &str)) -> Uuid {
        let uuid = self.uuid();
        let row = LogicalSwitchPort {
            name: name.into(),
            kind: kind.into(),
            options: [(option.0.into(), option.1.into())].into(),
            tag: None,
        };
        self.rows.switch_ports.insert(uuid, row);
        uuid
    }

    /// A gateway router with all that is between it and the bridge.
    fn network(&mut self, network: Network) {
        let (router, external) = (network.gateway_router(), network.external_port());
        let localnet = network.localnet_port();
        let ports = vec![
            self.switch_port(&localnet, "localnet", ("network_name", PHYSICAL_NETWORK)),
            self.switch_port(
                &format!("etor-{router}"),
                "router",
                ("router-port", &external),
            ),
        ];
        let switch = self.uuid();
        let row = LogicalSwitch {
            name: network.external_switch().into(),
            ports,
            external_ids: [].into(),
        };
        self.rows.switches.insert(switch, row);
        let port = self.uuid();
        let mut networks = vec![
            format!("{NODE_IPV4}/16").into(),
            format!("{NODE_IPV6}/64").into(),
        ];
        let mut external_ids = Vec::new();
        if !network.is_default() {
            networks.push(format!("{}/32", network.snat_ipv4()).into());
            networks.push(format!("{}/128", network.snat_ipv6()).into());
            external_ids = vec![
                ("k8s.ovn.org/network".into(), network.name().into()),
                ("k8s.ovn.org/role".into(), "primary".into()),
            ];
        }
        let row = LogicalRouterPort {
            name: external.as_str().into(),
            mac: BRIDGE_MAC.to_string().into(),
            networks,
        };
        self.rows.router_ports.insert(port, row);
        let uuid = self.uuid();
        let options = [("chassis", CHASSIS), ("mac_binding_age_threshold", "300")];
        let row = LogicalRouter {
            name: router.into(),
            ports: vec![port],
            options: options
                .map(|(key, value)| (key.into(), value.into()))
                .into(),
            external_ids: external_ids.into_iter().collect(),
        };
        self.rows.routers.insert(uuid, row);
        let (binding, datapath) = (self.uuid(), self.uuid());
        let row = PortBinding {
            logical_port: external.into(),
            datapath,
            kind: "l3gateway".into(),
        };
        self.rows.port_bindings.insert(binding, row);
        let ofport = i64::from(network.0) + 2;
        self.port(&network.patch_port(), "patch", ofport, Some(&localnet));
    }
}

fn rows(followers: u16) -> Rows {
    let mut maker = Maker::default();
    maker.port(BRIDGE, "internal", 65534, None);
    maker.port("eth0", "", 1, None);
    for network in (0..=followers).map(Network) {
        maker.network(network);
    }
    let (bridge, root) = (maker.uuid(), maker.uuid());
    let row = Bridge {
        name: BRIDGE.into(),
        ports: std::mem::take(&mut maker.bridge_ports),
        datapath_type: "netdev".into(),
        external_ids: [].into(),
        other_config: [].into(),
    };
    maker.rows.bridges.insert(bridge, row);
    let mappings = format!("{PHYSICAL_NETWORK}:{BRIDGE}");
    let ids = [("system-id", CHASSIS), ("ovn-bridge-mappings", &*mappings)];
    let row = OpenVSwitch {
        external_ids: ids.map(|(key, value)| (key.into(), value.into())).into(),
        other_config: [].into(),
    };
    maker.rows.open_vswitch.insert(root, row);
    maker.rows
}
