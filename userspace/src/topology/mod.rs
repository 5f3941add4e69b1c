//! Which gateway routers share which bridge on this node (OKEP-6691). Pure: rows in, groups out.
//!
//! Nothing is told by splitting a name: a gateway router is one that `options:chassis` pins to this
//! node's chassis, its network and role are in `external_ids`, and the way from its external port to
//! the bridge follows references: router port → switch port (`options:router-port`) → the switch's
//! localnet port → the bridge port whose `external_ids:ovn-localnet-port` names it.

mod address;
mod age;
mod bridge;
mod build;
mod group;
mod host;
mod places;
mod skip;
#[cfg(test)]
pub(crate) mod tests;

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

pub use address::{ParsePrefixError, Prefix};
pub use age::AgeThreshold;
pub use build::{build, build_on_dpu};
pub use host::{Dpu, HostEndpoint};
pub use places::{Place, places};
pub use skip::{SkipReason, Skipped};

use neighsteer_common::Policy;

use crate::{
    ids::{Mac, OfPort},
    ovsdb::Uuid,
};

/// The source of each bridge's group, by bridge name: what [`build()`] keeps where it can.
pub type Incumbents = BTreeMap<Arc<str>, Arc<str>>;

/// Everything that this node's rows say about gateway routers on shared bridges.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Topology {
    /// This node's chassis name (`external_ids:system-id`).
    pub chassis: Option<Arc<str>>,
    /// Whether the hardware may forward frames that Open vSwitch has a flow for
    /// (`other_config:hw-offload`).
    pub hardware_offload: bool,
    /// One group a bridge, by bridge name.
    pub groups: Vec<BridgeGroup>,
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
}

impl Topology {
    /// The source of each group, for the next [`build()`].
    #[must_use]
    pub fn incumbents(&self) -> Incumbents {
        let sources = self.groups.iter();
        sources
            .map(|group| (Arc::clone(&group.bridge), Arc::clone(&group.source.name)))
            .collect()
    }

    /// The group of a bridge.
    #[must_use]
    pub fn group(&self, bridge: &str) -> Option<&BridgeGroup> {
        self.groups.iter().find(|group| &*group.bridge == bridge)
    }
}

/// The gateway routers that share one bridge, and with it one Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BridgeGroup {
    /// The bridge's name.
    pub bridge: Arc<str>,
    /// The Ethernet address that the host and every gateway router use. On a DPU it is not that of
    /// the bridge's own port.
    pub bridge_mac: Mac,
    /// The `Bridge.datapath_type` column: empty or `system` for the kernel's, `netdev` for the
    /// userspace datapath.
    pub datapath_type: Arc<str>,
    /// The port that the host is behind.
    pub host: HostEndpoint,
    /// The way out of the node.
    pub uplink: IngressPort,
    /// Patch ports of secondary localnet networks, by port number: on the default network's bridge
    /// only.
    pub secondary: Vec<IngressPort>,
    /// The router that gets steered ARP and NDP, and whose bindings are mirrored.
    pub source: GatewayRouter,
    /// The routers that get copies, by name.
    pub followers: Vec<GatewayRouter>,
    /// The VLAN that the group's routers are in.
    pub gateway_vlan: Option<u16>,
    /// Whether the source has an IPv4 address on the bridge's network.
    pub ipv4: bool,
    /// Whether the source has an IPv6 address on the bridge's network; never on a DPU, whose gateway
    /// has IPv4 only.
    pub ipv6: bool,
    /// The node's addresses on the bridge's network, which every router of the group shares.
    pub node_addresses: Vec<IpAddr>,
}

impl BridgeGroup {
    /// What frames on the bridge are judged by.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy {
            bridge_mac: self.bridge_mac.0,
            gateway_vlan: self.gateway_vlan,
            node_addresses: self.node_addresses.iter().copied().collect(),
        }
    }

    /// The ports by which ARP and NDP reach the bridge from outside OVN's gateway routers, the
    /// uplink first.
    pub fn ingress_ports(&self) -> impl Iterator<Item = &IngressPort> {
        std::iter::once(&self.uplink).chain(&self.secondary)
    }
}

/// An external-ingress port.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct IngressPort {
    /// The name of the interface.
    pub name: Arc<str>,
    /// Its number on the bridge.
    pub ofport: OfPort,
}

/// A gateway router of this node.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GatewayRouter {
    /// Its northbound name, `GR_…`.
    pub name: Arc<str>,
    /// Its user-defined network, `None` for the default network.
    pub network: Option<Arc<str>>,
    /// The router port that faces the bridge, `rtoe-…`: the `logical_port` of its bindings.
    pub external_port: Arc<str>,
    /// The Ethernet address of that port, where it is one.
    pub external_mac: Option<Mac>,
    /// The southbound datapath, once northd has made the port. A port of the same name of a former
    /// router is not it.
    pub datapath: Option<Uuid>,
    /// The patch port on the bridge.
    pub patch_port: Arc<str>,
    /// The patch port's number on the bridge.
    pub ofport: OfPort,
    /// After what time its bindings are removed (`options:mac_binding_age_threshold`).
    pub mac_binding_age_threshold: AgeThreshold,
}
