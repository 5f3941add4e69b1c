//! What a bridge should have while `disable-udn-arp-ndp-flood` is on (OKEP-6691). Pure: a group and
//! the gates in, flows, port flags and a forwarding entry out.

mod gates;
mod ports;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

pub use gates::{GateError, Gates};
pub use ports::{PortChanges, StaticFdb, port_changes};

use crate::{
    ids::OfPort,
    openflow::{self, Action, Cookie, Flow, FlowChanges, InstalledFlow, Match, Port, Protocol},
    topology::{BridgeGroup, IngressPort},
};

/// The cookie of every flow that this program installs: `neighstr` in ASCII. It differs from
/// OVN-Kubernetes' cookies (0xdeff105, 0x0304, 0x0305, 0xe745ecf105 and hashes of services), and
/// deletion is limited to it.
pub const COOKIE: Cookie = Cookie(0x6e65_6967_6873_7472);

/// Above priority 50, which takes IPv6 to conntrack, and below the services' ARP bypass at 110.
const STEERING_PRIORITY: u16 = 52;

/// Neighbor Solicitation, Neighbor Advertisement and Router Advertisement (RFC 4861, 4.2–4.4).
const STEERED_ICMPV6_TYPES: [u8; 3] = [135, 136, 134];

/// What one bridge should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgePlan {
    /// The bridge.
    pub bridge: Arc<str>,
    /// Our flows, all of them: what is installed under [`COOKIE`] besides is to be deleted.
    pub flows: Vec<Flow>,
    /// Ports that must have no-flood: the followers' patch ports, and no others.
    pub no_flood: BTreeSet<OfPort>,
    /// Ports that must not have it: the source's patch port, which flooded ARP and NDP must reach.
    pub flood: BTreeSet<OfPort>,
    /// The entry by which `NORMAL` brings frames for the shared address to the host.
    pub static_fdb: Option<StaticFdb>,
}

impl BridgePlan {
    /// Whether nothing of ours is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.no_flood.is_empty() && self.static_fdb.is_none()
    }

    /// Nothing of ours on this bridge.
    #[must_use]
    pub fn empty(bridge: &Arc<str>) -> Self {
        Self {
            bridge: Arc::clone(bridge),
            flows: Vec::new(),
            no_flood: BTreeSet::new(),
            flood: BTreeSet::new(),
            static_fdb: None,
        }
    }
}

/// Plans one bridge. With the gate off it should have none of our flows, and nothing else is asked
/// of it.
#[must_use]
pub fn plan(group: &BridgeGroup, gates: Gates) -> BridgePlan {
    let bridge = Arc::clone(&group.bridge);
    if !gates.steering() {
        return BridgePlan {
            bridge,
            ..BridgePlan::default()
        };
    }
    BridgePlan {
        flows: group
            .ingress_ports()
            .flat_map(|ingress| steering_flows(group, ingress))
            .collect(),
        no_flood: group.followers.iter().map(|it| it.ofport).collect(),
        flood: BTreeSet::from([group.source.ofport]),
        static_fdb: Some(StaticFdb {
            port: Arc::clone(&bridge),
            vlan: group.gateway_vlan.unwrap_or(0),
            mac: group.bridge_mac,
        }),
        bridge,
    }
}

/// Unicast ARP and NDP to the shared address, by one ingress port: to the source's patch port, and
/// to `NORMAL`, which learns the sender and delivers to the host. Only the families that the group
/// has.
fn steering_flows(group: &BridgeGroup, ingress: &IngressPort) -> impl Iterator<Item = Flow> {
    let to_bridge = Match {
        in_port: Some(ingress.ofport.into()),
        dl_vlan: group.gateway_vlan,
        dl_dst: Some(group.bridge_mac),
        ..Match::default()
    };
    let arp = group.ipv4.then(|| Match {
        protocol: Some(Protocol::Arp),
        ..to_bridge.clone()
    });
    let ndp_types = STEERED_ICMPV6_TYPES.into_iter().filter(|_| group.ipv6);
    let ndp = ndp_types.map(move |icmpv6_type| Match {
        protocol: Some(Protocol::Icmp6),
        icmpv6_type: Some(icmpv6_type),
        ..to_bridge.clone()
    });
    let source = Port::Number(group.source.ofport);
    arp.into_iter().chain(ndp).map(move |matches| Flow {
        cookie: COOKIE,
        table: 0,
        priority: STEERING_PRIORITY,
        matches,
        actions: vec![Action::Output(source), Action::Normal],
    })
}

/// What to write so that the installed flows become the desired ones. `installed` may hold the
/// flows of others: they are left alone.
#[must_use]
pub fn diff(desired: &[Flow], installed: &[InstalledFlow]) -> FlowChanges {
    openflow::diff(COOKIE, desired, installed.iter().map(|it| &it.flow))
}
