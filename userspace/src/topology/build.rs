//! From rows to groups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    AgeThreshold, BridgeGroup, Dpu, GatewayRouter, Incumbents, Prefix, SkipReason, Skipped,
    Topology, bridge::BridgeView,
};
use crate::{
    ovsdb::Uuid,
    rows::{LogicalRouter, LogicalRouterPort, LogicalSwitch, LogicalSwitchPort, Rows},
};

/// Finds the groups of this node. The same rows give the same topology, whatever order they came in.
///
/// The source of a group is the default network's gateway router where there is one on the bridge.
/// Elsewhere it is the incumbent as long as it is in the group, else the router whose name comes
/// first in byte order: so a router that joins never moves the source, and a node that starts
/// without a memory chooses the same one each time.
#[must_use]
pub fn build(rows: &Rows, incumbents: &Incumbents) -> Topology {
    found(Builder::new(rows), incumbents)
}

/// The same on a DPU, where the host is behind a representor.
#[must_use]
pub fn build_on_dpu(rows: &Rows, incumbents: &Incumbents, dpu: &Dpu) -> Topology {
    let mut builder = Builder::new(rows);
    builder.dpu = Some(dpu);
    found(builder, incumbents)
}

fn found(mut builder: Builder<'_>, incumbents: &Incumbents) -> Topology {
    builder.note_unreadable();
    let Some(chassis) = builder.chassis() else {
        builder.skip("Open_vSwitch", SkipReason::NoSystemId);
        return builder.finish(None, Vec::new());
    };
    builder.read_mappings(&chassis);
    let members = builder.members(&chassis);
    let groups = builder.groups(members, incumbents);
    builder.finish(Some(chassis), groups)
}

/// A router with what is only needed until its group is put together.
pub(super) struct Member<'a> {
    pub(super) router: GatewayRouter,
    pub(super) vlan: Option<u16>,
    /// Whether the physical network is its own (OKEP-6019: named as the network), so that the bridge
    /// is not the default network's.
    pub(super) has_uplink: bool,
    pub(super) networks: Vec<Prefix>,
    pub(super) physical_addresses: Option<&'a str>,
}

pub(super) struct Builder<'a> {
    pub(super) rows: &'a Rows,
    /// What is known of the host, on its DPU.
    pub(super) dpu: Option<&'a Dpu>,
    skipped: BTreeSet<Skipped>,
    /// Bridges by physical network.
    pub(super) mappings: BTreeMap<&'a str, Arc<str>>,
    /// Mapped bridges by name.
    pub(super) bridges: BTreeMap<&'a str, BridgeView<'a>>,
    /// Switch ports of type router, by the router port that they lead to.
    peers: HashMap<&'a str, Vec<Uuid>>,
    /// The switch of a switch port.
    pub(super) switch_of: HashMap<Uuid, &'a LogicalSwitch>,
    /// By `logical_port`: the datapath, and the router that northd made it for, where that is known.
    datapaths: HashMap<&'a str, (Uuid, Option<Uuid>)>,
    /// Localnet ports on the way of a router that was looked at, whether or not it is in a group.
    pub(super) claimed: BTreeSet<Arc<str>>,
    /// This node's default gateway router, where it is there and was left out.
    pub(super) default_left_out: Option<Arc<str>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(rows: &'a Rows) -> Self {
        let mut peers: HashMap<&str, Vec<Uuid>> = HashMap::new();
        for (uuid, port) in &rows.switch_ports {
            if let ("router", Some(peer)) = (&*port.kind, port.options.get("router-port")) {
                peers.entry(peer).or_default().push(*uuid);
            }
        }
        let switches = rows.switches.values();
        let switch_of = switches
            .flat_map(|switch| switch.ports.iter().map(move |port| (*port, switch)))
            .collect();
        let datapaths = rows.port_bindings.values().map(|binding| {
            let row = rows.datapath_bindings.get(&binding.datapath);
            let router = row.and_then(|row| row.router);
            (&*binding.logical_port, (binding.datapath, router))
        });
        let datapaths = datapaths.collect();
        Self {
            rows,
            dpu: None,
            skipped: BTreeSet::new(),
            mappings: BTreeMap::new(),
            bridges: BTreeMap::new(),
            peers,
            switch_of,
            datapaths,
            claimed: BTreeSet::new(),
            default_left_out: None,
        }
    }

    pub(super) fn skip(&mut self, object: &str, reason: SkipReason) {
        self.skipped.insert(Skipped {
            object: object.into(),
            reason,
        });
    }

    fn note_unreadable(&mut self) {
        for ((table, uuid), error) in &self.rows.unreadable {
            self.skip(
                &uuid.to_string(),
                SkipReason::Unreadable {
                    table: table.name(),
                    problem: error.to_string(),
                },
            );
        }
    }

    fn root(&self) -> impl Iterator<Item = &'a crate::rows::OpenVSwitch> {
        self.rows.open_vswitch.values()
    }

    pub(super) fn chassis(&self) -> Option<Arc<str>> {
        let id = self
            .root()
            .find_map(|row| row.external_ids.get("system-id"));
        id.filter(|id| !id.is_empty()).cloned()
    }

    /// Reads `ovn-bridge-mappings`, or the key of this chassis alone that goes before it
    /// (ovn-controller(8)). Of two bridges for one network the first counts.
    pub(super) fn read_mappings(&mut self, chassis: &str) {
        let own = format!("ovn-bridge-mappings-{chassis}");
        let text = self.root().find_map(|row| {
            let ids = &row.external_ids;
            ids.get(own.as_str())
                .or_else(|| ids.get("ovn-bridge-mappings"))
        });
        let pairs = text.into_iter().flat_map(|text| text.split(','));
        for pair in pairs.map(str::trim).filter(|pair| !pair.is_empty()) {
            match pair.split_once(':') {
                Some((network, bridge)) if !network.is_empty() && !bridge.is_empty() => {
                    self.mappings
                        .entry(network)
                        .or_insert_with(|| bridge.into());
                }
                _ => self.skip(
                    "ovn-bridge-mappings",
                    SkipReason::BadMapping(pair.to_owned()),
                ),
            }
        }
        let mapped: BTreeSet<&str> = self.mappings.values().map(|name| &**name).collect();
        for bridge in self.rows.bridges.values() {
            if mapped.contains(&*bridge.name) {
                let view = BridgeView::new(self.rows, bridge);
                self.bridges.insert(&bridge.name, view);
            }
        }
    }

    /// The usable gateway routers of this chassis by bridge, in order of their names.
    fn members(&mut self, chassis: &str) -> BTreeMap<Arc<str>, Vec<Member<'a>>> {
        let mut routers: Vec<(&Uuid, &LogicalRouter)> = self.rows.routers.iter().collect();
        routers.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let mut members: BTreeMap<Arc<str>, Vec<Member<'_>>> = BTreeMap::new();
        for (row, router) in routers {
            // A router that is pinned to no chassis is a distributed one.
            let Some(pinned) = router.options.get("chassis") else {
                continue;
            };
            let member = if **pinned == *chassis {
                self.member(*row, router)
            } else {
                Err(SkipReason::OtherChassis(Arc::clone(pinned)))
            };
            match member {
                Ok((bridge, member)) => members.entry(bridge).or_default().push(member),
                Err(reason) => {
                    let is_default = router.name.starts_with("GR_")
                        && !router.external_ids.contains_key("k8s.ovn.org/network");
                    if **pinned == *chassis && is_default {
                        self.default_left_out = Some(Arc::clone(&router.name));
                    }
                    self.skip(&router.name, reason);
                }
            }
        }
        members
    }

    /// Follows a router's external port to its bridge.
    fn member(
        &mut self,
        row: Uuid,
        router: &'a LogicalRouter,
    ) -> Result<(Arc<str>, Member<'a>), SkipReason> {
        if !router.name.starts_with("GR_") {
            return Err(SkipReason::NoGatewayRouter);
        }
        let network = router.external_ids.get("k8s.ovn.org/network");
        let role = router.external_ids.get("k8s.ovn.org/role");
        if network.is_some() && role.map(|role| &**role) != Some("primary") {
            let role = role.cloned().unwrap_or_default();
            return Err(SkipReason::NotPrimary(role));
        }
        let (_, external) = self.external_port(router)?;
        let (localnet, vlan) = self.localnet_port(&external.name)?;
        let physical = localnet
            .options
            .get("network_name")
            .ok_or_else(|| SkipReason::NoNetworkName(Arc::clone(&localnet.name)))?;
        self.claimed.insert(Arc::clone(&localnet.name));
        let bridge = self
            .mappings
            .get(&**physical)
            .ok_or_else(|| SkipReason::NotMapped(Arc::clone(physical)))?;
        let view = self
            .bridges
            .get(&**bridge)
            .ok_or_else(|| SkipReason::NoBridge(Arc::clone(bridge)))?;
        let patch = view.patch_port(&localnet.name)?;
        let bridge = Arc::clone(bridge);
        let member = Member {
            router: GatewayRouter {
                name: Arc::clone(&router.name),
                network: network.cloned(),
                external_port: Arc::clone(&external.name),
                external_mac: external.mac.parse().ok(),
                datapath: self.datapath(row, &external.name),
                patch_port: patch.name,
                ofport: patch.ofport,
                mac_binding_age_threshold: AgeThreshold::from_option(
                    router.options.get("mac_binding_age_threshold"),
                ),
            },
            vlan,
            has_uplink: network.is_some_and(|network| network == physical),
            networks: self.networks(external),
            physical_addresses: router.external_ids.get("physical_ips").map(|ips| &**ips),
        };
        Ok((bridge, member))
    }

    /// The southbound datapath of a port of this router.
    fn datapath(&self, router: Uuid, port: &str) -> Option<Uuid> {
        let (datapath, of) = self.datapaths.get(port)?;
        of.is_none_or(|of| of == router).then_some(*datapath)
    }

    /// Whether the southbound port of this name is still that of another router, which had the name
    /// before: northd has not yet seen that one go.
    pub(super) fn is_former(&self, router: Uuid, port: &str) -> bool {
        let known = self.datapaths.get(port);
        known.is_some_and(|(_, of)| of.is_some_and(|of| of != router))
    }

    pub(super) fn external_port(
        &self,
        router: &LogicalRouter,
    ) -> Result<(Uuid, &'a LogicalRouterPort), SkipReason> {
        let name = format!("rtoe-{}", router.name);
        let ports = router.ports.iter();
        ports
            .filter_map(|uuid| Some((*uuid, self.rows.router_ports.get(uuid)?)))
            .find(|(_, port)| *port.name == *name)
            .ok_or_else(|| SkipReason::NoExternalPort(name.into()))
    }

    /// The localnet port of the switch that a router's external port is on, with its VLAN.
    pub(super) fn localnet_port(
        &self,
        external: &Arc<str>,
    ) -> Result<(&'a LogicalSwitchPort, Option<u16>), SkipReason> {
        let peers = self.peers.get(&**external).map_or(&[][..], Vec::as_slice);
        let switch = peers
            .iter()
            .find_map(|peer| self.switch_of.get(peer).copied())
            .ok_or_else(|| SkipReason::NoExternalSwitch(Arc::clone(external)))?;
        let ports = switch.ports.iter();
        let localnets: Vec<&LogicalSwitchPort> = ports
            .filter_map(|uuid| self.rows.switch_ports.get(uuid))
            .filter(|port| &*port.kind == "localnet")
            .collect();
        match localnets.as_slice() {
            [] => Err(SkipReason::NoLocalnetPort(Arc::clone(&switch.name))),
            [only] => Ok((only, only.tag)),
            several => Err(SkipReason::SeveralLocalnetPorts(
                Arc::clone(&switch.name),
                several.len(),
            )),
        }
    }

    pub(super) fn networks(&mut self, port: &LogicalRouterPort) -> Vec<Prefix> {
        let mut networks = Vec::new();
        for text in &port.networks {
            match text.parse() {
                Ok(network) => networks.push(network),
                Err(_) => self.skip(&port.name, SkipReason::BadAddress(Arc::clone(text))),
            }
        }
        networks.sort();
        networks
    }

    fn finish(self, chassis: Option<Arc<str>>, groups: Vec<BridgeGroup>) -> Topology {
        let roots = self.rows.open_vswitch.values();
        let mut settings = roots.filter_map(|root| root.other_config.get("hw-offload"));
        Topology {
            chassis,
            hardware_offload: settings.any(|value| &**value == "true"),
            groups,
            skipped: self.skipped.into_iter().collect(),
        }
    }
}
