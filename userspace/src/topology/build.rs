//! From rows to groups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use super::{
    AgeThreshold, BridgeGroup, GatewayRouter, Incumbents, IngressPort, Prefix, SkipReason, Skipped,
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
    let mut builder = Builder::new(rows);
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
struct Member<'a> {
    router: GatewayRouter,
    vlan: Option<u16>,
    networks: Vec<Prefix>,
    physical_addresses: Option<&'a str>,
}

struct Builder<'a> {
    rows: &'a Rows,
    skipped: BTreeSet<Skipped>,
    /// Bridges by physical network.
    mappings: BTreeMap<&'a str, Arc<str>>,
    /// Mapped bridges by name.
    bridges: BTreeMap<&'a str, BridgeView<'a>>,
    /// Switch ports of type router, by the router port that they lead to.
    peers: HashMap<&'a str, Vec<Uuid>>,
    /// The switch of a switch port.
    switch_of: HashMap<Uuid, &'a LogicalSwitch>,
    datapaths: HashMap<&'a str, Uuid>,
    /// Localnet ports on the way of a router that was looked at, whether or not it is in a group.
    claimed: BTreeSet<Arc<str>>,
}

impl<'a> Builder<'a> {
    fn new(rows: &'a Rows) -> Self {
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
        let bindings = rows.port_bindings.values();
        let datapaths = bindings
            .map(|binding| (&*binding.logical_port, binding.datapath))
            .collect();
        Self {
            rows,
            skipped: BTreeSet::new(),
            mappings: BTreeMap::new(),
            bridges: BTreeMap::new(),
            peers,
            switch_of,
            datapaths,
            claimed: BTreeSet::new(),
        }
    }

    fn skip(&mut self, object: &str, reason: SkipReason) {
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

    fn chassis(&self) -> Option<Arc<str>> {
        let id = self
            .root()
            .find_map(|row| row.external_ids.get("system-id"));
        id.filter(|id| !id.is_empty()).cloned()
    }

    /// Reads `ovn-bridge-mappings`, or the key of this chassis alone that goes before it
    /// (ovn-controller(8)). Of two bridges for one network the first counts.
    fn read_mappings(&mut self, chassis: &str) {
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
        let mut routers: Vec<&LogicalRouter> = self.rows.routers.values().collect();
        routers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut members: BTreeMap<Arc<str>, Vec<Member<'_>>> = BTreeMap::new();
        for router in routers {
            // A router that is pinned to no chassis is a distributed one.
            let Some(pinned) = router.options.get("chassis") else {
                continue;
            };
            let member = if **pinned == *chassis {
                self.member(router)
            } else {
                Err(SkipReason::OtherChassis(Arc::clone(pinned)))
            };
            match member {
                Ok((bridge, member)) => members.entry(bridge).or_default().push(member),
                Err(reason) => self.skip(&router.name, reason),
            }
        }
        members
    }

    /// Follows a router's external port to its bridge.
    fn member(&mut self, router: &'a LogicalRouter) -> Result<(Arc<str>, Member<'a>), SkipReason> {
        if !router.name.starts_with("GR_") {
            return Err(SkipReason::NoGatewayRouter);
        }
        let network = router.external_ids.get("k8s.ovn.org/network");
        let role = router.external_ids.get("k8s.ovn.org/role");
        if network.is_some() && role.map(|role| &**role) != Some("primary") {
            let role = role.cloned().unwrap_or_default();
            return Err(SkipReason::NotPrimary(role));
        }
        let external = self.external_port(router)?;
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
                datapath: self.datapaths.get(&*external.name).copied(),
                patch_port: patch.name,
                ofport: patch.ofport,
                mac_binding_age_threshold: AgeThreshold::from_option(
                    router.options.get("mac_binding_age_threshold"),
                ),
            },
            vlan,
            networks: self.networks(external),
            physical_addresses: router.external_ids.get("physical_ips").map(|ips| &**ips),
        };
        Ok((bridge, member))
    }

    fn external_port(&self, router: &LogicalRouter) -> Result<&'a LogicalRouterPort, SkipReason> {
        let name = format!("rtoe-{}", router.name);
        let ports = router.ports.iter();
        ports
            .filter_map(|uuid| self.rows.router_ports.get(uuid))
            .find(|port| *port.name == *name)
            .ok_or_else(|| SkipReason::NoExternalPort(name.into()))
    }

    /// The localnet port of the switch that a router's external port is on, with its VLAN.
    fn localnet_port(
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

    fn networks(&mut self, port: &LogicalRouterPort) -> Vec<Prefix> {
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

    fn groups(
        &mut self,
        members: BTreeMap<Arc<str>, Vec<Member<'a>>>,
        incumbents: &Incumbents,
    ) -> Vec<BridgeGroup> {
        let mut groups = Vec::new();
        let mut has_default = BTreeSet::new();
        for (bridge, members) in members {
            let members = self.without_shared_ports(members);
            let incumbent = incumbents.get(&bridge).map(|name| &**name);
            let Some((source, others)) = designate(members, incumbent) else {
                continue;
            };
            let is_default = source.router.network.is_none();
            if is_default {
                has_default.insert(Arc::clone(&bridge));
            }
            match self.group(&bridge, source, others) {
                Ok(group) => groups.push(group),
                Err(reason) => self.skip(&bridge, reason),
            }
        }
        self.note_other_patch_ports(&has_default);
        groups
    }

    /// Two routers on one external switch have one patch port: the first by name keeps it.
    fn without_shared_ports(&mut self, members: Vec<Member<'a>>) -> Vec<Member<'a>> {
        let mut owner_of = BTreeMap::new();
        let mut kept = Vec::with_capacity(members.len());
        for member in members {
            let name = &member.router.name;
            let owner = owner_of
                .entry(member.router.ofport)
                .or_insert_with(|| Arc::clone(name));
            if owner == name {
                kept.push(member);
            } else {
                let owner = Arc::clone(owner);
                self.skip(name, SkipReason::SharedPatchPort(owner));
            }
        }
        kept
    }

    fn group(
        &mut self,
        bridge: &Arc<str>,
        source: Member<'a>,
        others: Vec<Member<'a>>,
    ) -> Result<BridgeGroup, SkipReason> {
        let view = self
            .bridges
            .get(&**bridge)
            .ok_or_else(|| SkipReason::NoBridge(Arc::clone(bridge)))?;
        let (bridge_mac, uplink) = (view.mac()?, view.uplink()?);
        let datapath_type = Arc::clone(&view.bridge.datapath_type);
        let is_default = source.router.network.is_none();
        let secondary = if is_default {
            self.secondary_ports(bridge)
        } else {
            Vec::new()
        };
        let mut followers = Vec::with_capacity(others.len());
        for other in others {
            let reason = if other.router.network.is_none() {
                SkipReason::SecondDefault(Arc::clone(&source.router.name))
            } else if other.vlan != source.vlan {
                SkipReason::OtherVlan {
                    own: other.vlan,
                    group: source.vlan,
                }
            } else {
                followers.push(other.router);
                continue;
            };
            self.skip(&other.router.name, reason);
        }
        let node_addresses = node_addresses(&source);
        Ok(BridgeGroup {
            bridge: Arc::clone(bridge),
            bridge_mac,
            datapath_type,
            uplink,
            secondary,
            gateway_vlan: source.vlan,
            ipv4: source.networks.iter().any(|net| net.address.is_ipv4()),
            ipv6: source.networks.iter().any(|net| net.address.is_ipv6()),
            node_addresses,
            source: source.router,
            followers,
        })
    }

    /// The patch ports of secondary localnet networks on a bridge, by number.
    fn secondary_ports(&mut self, bridge: &str) -> Vec<IngressPort> {
        let localnets = self.secondary_localnets();
        let mut ports = Vec::new();
        let mut skipped = Vec::new();
        if let Some(view) = self.bridges.get(bridge) {
            for (localnet, names) in view.localnet_ports() {
                if let Some(localnet) = localnets.get(localnet) {
                    match view.patch_port(localnet) {
                        Ok(port) => ports.push(port),
                        Err(reason) => skipped.extend(names.first().map(|name| (*name, reason))),
                    }
                }
            }
        }
        for (name, reason) in skipped {
            self.skip(name, reason);
        }
        ports.sort_by_key(|port| port.ofport);
        ports
    }

    /// The localnet ports of switches whose topology is localnet, by name.
    fn secondary_localnets(&self) -> BTreeMap<&'a str, Arc<str>> {
        let topology = |switch: &LogicalSwitch| {
            let topology = switch.external_ids.get("k8s.ovn.org/topology");
            topology.is_some_and(|topology| &**topology == "localnet")
        };
        let ports = self.rows.switch_ports.iter();
        ports
            .filter(|(_, port)| &*port.kind == "localnet")
            .filter(|(uuid, _)| {
                self.switch_of
                    .get(uuid)
                    .is_some_and(|switch| topology(switch))
            })
            .map(|(_, port)| (&*port.name, Arc::clone(&port.name)))
            .collect()
    }

    /// Says which patch ports of mapped bridges belong to nothing that was found.
    fn note_other_patch_ports(&mut self, has_default: &BTreeSet<Arc<str>>) {
        let secondary = self.secondary_localnets();
        let mut skipped = Vec::new();
        for (bridge, view) in &self.bridges {
            for (localnet, names) in view.localnet_ports() {
                let reason = if self.claimed.contains(localnet) {
                    continue;
                } else if !secondary.contains_key(localnet) {
                    SkipReason::PatchPortWithoutRouter(localnet.into())
                } else if !has_default.contains(*bridge) {
                    SkipReason::SecondaryElsewhere((*bridge).into())
                } else {
                    continue;
                };
                skipped.extend(names.iter().map(|name| (*name, reason.clone())));
            }
        }
        for (name, reason) in skipped {
            self.skip(name, reason);
        }
    }

    fn finish(self, chassis: Option<Arc<str>>, groups: Vec<BridgeGroup>) -> Topology {
        Topology {
            chassis,
            groups,
            skipped: self.skipped.into_iter().collect(),
        }
    }
}

/// Takes the source out of the members, which are in order of their names.
fn designate<'a>(
    mut members: Vec<Member<'a>>,
    incumbent: Option<&str>,
) -> Option<(Member<'a>, Vec<Member<'a>>)> {
    let default = members.iter().position(|it| it.router.network.is_none());
    let kept = || {
        members
            .iter()
            .position(|it| Some(&*it.router.name) == incumbent)
    };
    let index = default.or_else(kept).unwrap_or(0);
    if members.is_empty() {
        return None;
    }
    let source = members.remove(index);
    Some((source, members))
}

/// The node's addresses among those of the source's external port: those that the router's
/// `external_ids:physical_ips` lists, where it does. A user-defined network's router has masquerade
/// addresses there too, as single addresses: without the list these are left out if the family has
/// a wider one.
fn node_addresses(source: &Member<'_>) -> Vec<IpAddr> {
    let networks = &source.networks;
    let addresses = networks.iter().map(|network| network.address);
    if let Some(physical) = source.physical_addresses {
        let physical: BTreeSet<IpAddr> = physical
            .split(',')
            .filter_map(|text| text.trim().parse::<Prefix>().ok())
            .map(|prefix| prefix.address)
            .collect();
        let listed: Vec<IpAddr> = addresses
            .clone()
            .filter(|it| physical.contains(it))
            .collect();
        if !listed.is_empty() {
            return listed;
        }
    }
    let is_masquerade = |network: &Prefix| {
        source.router.network.is_some()
            && network.is_host()
            && networks.iter().any(|other| {
                !other.is_host() && other.address.is_ipv4() == network.address.is_ipv4()
            })
    };
    let node = networks.iter().filter(|network| !is_masquerade(network));
    node.map(|network| network.address).collect()
}
