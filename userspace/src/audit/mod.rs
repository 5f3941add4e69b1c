//! Whether a bridge is what the design (OKEP-6691) wants it to be with `disable-udn-arp-ndp-flood`
//! on. Pure: a group, the bridge's flows, ports and forwarding table, and translations of frames in;
//! findings out.

mod finding;
mod frame;
mod leads;
mod observed;
mod reach;
mod region;
mod rules;
mod sight;
#[cfg(test)]
mod tests;
mod translation;

use std::{net::IpAddr, sync::Arc};

use serde::Serialize;

pub use finding::{FanOut, Finding};
pub use frame::{FrameError, Message, Neighbour};
pub use observed::{Observed, PortNames};
pub use reach::TrafficKind;
pub use sight::{Disagreement, Question, Sight, disagreements, sights};
pub use translation::{DatapathPorts, LOOKUP_LIMIT, Step, Translation, Visit};

use crate::{
    ids::Mac,
    plan::{BridgePlan, is_steering},
    rows::Rows,
    topology::{BridgeGroup, Topology},
};

/// A neighbour that does not exist: a locally administered address that nobody has.
const PROBE_MAC: Mac = Mac([0x02, 0x6e, 0x65, 0x69, 0x67, 0x68]);

/// What was found on one bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BridgeAudit {
    /// The bridge.
    pub bridge: Arc<str>,
    /// Whether a flow of priority 52 is installed.
    pub steered: bool,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
    /// What each of the measured frames costs.
    pub lookups: Vec<Lookups>,
}

/// What one frame costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lookups {
    /// The frame.
    pub frame: TrafficKind,
    /// Lookups in flow tables, against [`LOOKUP_LIMIT`].
    pub lookups: usize,
    /// Whether the limit was reached.
    pub over_limit: bool,
    /// How many gateway routers see it.
    pub routers: usize,
    /// Whether the source is one of them.
    pub source: bool,
}

/// Checks one bridge against the plan for it with the gate on, which has the flows that must be
/// installed. A bridge without any steering flow is one finding, beside its fan-out.
#[must_use]
pub fn audit(
    group: &BridgeGroup,
    plan: &BridgePlan,
    observed: &Observed,
    lookups: Vec<Lookups>,
) -> BridgeAudit {
    let steered = is_steered(observed);
    let mut findings = Vec::new();
    if steered {
        findings.extend(rules::flows(group, plan, observed));
        findings.extend(rules::flood_flags(group, observed));
        let wanted = plan.static_fdb.as_ref();
        findings.extend(wanted.and_then(|wanted| rules::forwarding_entry(wanted, observed)));
    } else {
        findings.push(Finding::NotSteered);
    }
    findings.extend(rules::addresses(group));
    let fan_outs = reach::fan_outs(group, observed);
    let shadowed = rules::shadowed(plan, observed, &fan_outs);
    findings.extend(fan_outs.into_iter().map(Finding::FanOut));
    findings.extend(shadowed);
    if steered {
        let receivers = rules::receivers(&lookups, &findings);
        findings.extend(receivers);
    }
    let over = lookups.iter().filter(|it| it.over_limit);
    findings.extend(over.map(|it| Finding::LookupLimit {
        frame: it.frame,
        lookups: it.lookups,
    }));
    BridgeAudit {
        bridge: Arc::clone(&group.bridge),
        steered,
        findings,
        lookups,
    }
}

/// The bridges with gateway routers that are no group's, with what is in the way.
#[must_use]
pub fn left_out(topology: &Topology, rows: &Rows) -> Vec<BridgeAudit> {
    let is_bridge = |name: &str| rows.bridges.values().any(|bridge| *bridge.name == *name);
    let skipped = topology.skipped.iter().filter(|it| is_bridge(&it.object));
    let audits = skipped.map(|skipped| BridgeAudit {
        bridge: Arc::clone(&skipped.object),
        steered: false,
        findings: vec![Finding::LeftOut {
            reason: skipped.reason.to_string(),
        }],
        lookups: Vec::new(),
    });
    audits.collect()
}

/// Whether any steering flow is installed.
#[must_use]
pub fn is_steered(observed: &Observed) -> bool {
    let mut flows = observed.flows.iter();
    flows.any(|it| is_steering(&it.flow))
}

/// The frames to measure, of the families that the group has: a unicast ARP reply, a unicast
/// Neighbor Advertisement, an ARP announcement to all, a Neighbor Advertisement to all nodes.
#[must_use]
pub fn probes(group: &BridgeGroup) -> Vec<(TrafficKind, Vec<u8>)> {
    let v4 = group.node_addresses.iter().find(|it| it.is_ipv4());
    let v6 = group.node_addresses.iter().find(|it| it.is_ipv6());
    let of_v4 = v4.into_iter().flat_map(|node| {
        let ip = neighbour_of(*node);
        [
            (TrafficKind::UnicastArp, Message::ArpReply, ip, *node),
            (TrafficKind::BroadcastArp, Message::ArpRequest, ip, ip),
        ]
    });
    let all_nodes = IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]);
    let of_v6 = v6.into_iter().flat_map(|node| {
        let (ip, message) = (neighbour_of(*node), Message::NeighborAdvertisement);
        [
            (TrafficKind::UnicastNa, message, ip, *node),
            (TrafficKind::MulticastNa, message, ip, all_nodes),
        ]
    });
    let frame = |(kind, message, ip, to)| {
        let neighbour = Neighbour {
            message,
            mac: PROBE_MAC,
            ip,
            node_mac: group.bridge_mac,
            to,
            vlan: group.gateway_vlan,
        };
        Some((kind, neighbour.to_frame().ok()?))
    };
    of_v4.chain(of_v6).filter_map(frame).collect()
}

/// An address beside the node's, in any network that has more than the node.
fn neighbour_of(node: IpAddr) -> IpAddr {
    match node {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() ^ 1).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() ^ 1).into()),
    }
}
