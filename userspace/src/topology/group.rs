//! From the routers of a bridge to its group.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::{
    BridgeGroup, Incumbents, IngressPort, Prefix, SkipReason,
    build::{Builder, Member},
    host::{HostSide, dpu_addresses},
};
use crate::rows::LogicalSwitch;

impl<'a> Builder<'a> {
    pub(super) fn groups(
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
            if let Some(default) = &self.default_left_out
                && !is_default
                && !source.has_uplink
            {
                // Steered to another router, replies would never reach the default one.
                let reason = SkipReason::DefaultLeftOut(Arc::clone(default));
                self.skip(&bridge, reason);
                continue;
            }
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

    /// Two routers on one external switch have one patch port: the default network's, else the
    /// first by name keeps it.
    fn without_shared_ports(&mut self, members: Vec<Member<'a>>) -> Vec<Member<'a>> {
        let routers = members.iter().map(|member| &member.router);
        let mut owner_of: BTreeMap<_, _> = routers
            .filter(|router| router.network.is_none())
            .map(|router| (router.ofport, Arc::clone(&router.name)))
            .collect();
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
        let host = HostSide::of(view, &source, self.dpu)?;
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
        let mut node_addresses = node_addresses(&source);
        if let Some(dpu) = self.dpu {
            node_addresses = dpu_addresses(dpu, is_default, node_addresses);
        }
        Ok(BridgeGroup {
            bridge: Arc::clone(bridge),
            bridge_mac: host.bridge_mac,
            datapath_type,
            host: host.endpoint,
            uplink: host.uplink,
            secondary,
            gateway_vlan: source.vlan,
            ipv4: source.networks.iter().any(|net| net.address.is_ipv4()),
            ipv6: host.ipv6 && source.networks.iter().any(|net| net.address.is_ipv6()),
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
