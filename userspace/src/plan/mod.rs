//! What a bridge should have, for the gate `disable-udn-arp-ndp-flood` of OKEP-6691 on or off. Pure: a
//! group and the gates in, flows, port flags and a forwarding entry out.

mod design;
mod gates;
mod install;
mod legacy;
mod mark;
mod others;
mod ports;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

pub use design::STEERING_PRIORITY;
pub use gates::{GateError, Gates};
pub use install::{Install, ParseInstallError};
pub use mark::{
    MarkError, NoMark, SteeringMark, SteeringMatch, UNMARKED_PRIORITY, mark_for, mark_of,
};
pub use others::{ManagerFlows, foreign_gate, manager_flows};
pub use ports::{PortChanges, StaticFdb, host_port, port_changes};

use crate::{
    ids::OfPort,
    openflow::{self, Cookie, Flow, FlowChanges, FlowKey, InstalledFlow},
    topology::{BridgeGroup, IngressPort},
};

/// The cookie of every flow that this program installs: `neighstr` in ASCII. It differs from
/// OVN-Kubernetes' cookies (0xdeff105, 0x0304, 0x0305, 0xe745ecf105 and hashes of services), and
/// deletion is limited to it.
pub const COOKIE: Cookie = Cookie(0x6e65_6967_6873_7472);

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

/// Plans one bridge. The result does not depend on the order of the group's ports and addresses.
///
/// With the gate off an overlay is empty, and nothing else is asked of the bridge.
#[must_use]
pub fn plan(group: &BridgeGroup, gates: Gates, install: Install) -> BridgePlan {
    match (gates.steering(), install) {
        (true, _) => steered(group, install),
        (false, Install::Overlay) => BridgePlan::empty(&group.bridge),
        (false, Install::Complete) => fanned_out(group),
    }
}

fn steered(group: &BridgeGroup, install: Install) -> BridgePlan {
    let ingress = ingress_ports(group);
    let followers = followers(group);
    let ingress = || ingress.iter().copied();
    let mut flows: Vec<Flow> = ingress()
        .flat_map(|ingress| design::steering(group, ingress))
        .collect();
    match install {
        Install::Overlay => {
            flows.extend(ingress().flat_map(|ingress| design::shadows(group, ingress)));
        }
        Install::Complete => flows.extend(below(group, &followers)),
    }
    BridgePlan {
        flows,
        no_flood: followers,
        flood: BTreeSet::from([group.source.ofport]),
        static_fdb: Some(static_fdb(group)),
        bridge: Arc::clone(&group.bridge),
    }
}

fn fanned_out(group: &BridgeGroup) -> BridgePlan {
    let followers = followers(group);
    let mut flows = legacy::fan_out(group, &followers);
    flows.extend(below(group, &followers));
    let is_default = legacy::is_default(group);
    let only_default = |ports| {
        if is_default { ports } else { BTreeSet::new() }
    };
    BridgePlan {
        flows,
        no_flood: only_default(followers),
        flood: only_default(BTreeSet::from([group.source.ofport])),
        static_fdb: Some(static_fdb(group)),
        bridge: Arc::clone(&group.bridge),
    }
}

/// With the gate on and off: whatever a router sends through `NORMAL` would else lead frames for the
/// shared address back to it, past the host.
fn static_fdb(group: &BridgeGroup) -> StaticFdb {
    StaticFdb {
        port: Arc::clone(group.host.representor().unwrap_or(&group.bridge)),
        leads_to: host_port(&group.host),
        vlan: group.gateway_vlan.unwrap_or(0),
        mac: group.bridge_mac,
    }
}

/// What is the same with the gate on and off: validation of what comes from OVN, and the catch-all.
fn below(group: &BridgeGroup, followers: &BTreeSet<OfPort>) -> impl Iterator<Item = Flow> {
    let patch_ports = std::iter::once(group.source.ofport).chain(followers.iter().copied());
    design::egress_validation(group, patch_ports).chain([design::catch_all()])
}

/// The uplink, then the secondary ports by number.
fn ingress_ports(group: &BridgeGroup) -> Vec<&IngressPort> {
    let mut ports: Vec<&IngressPort> = group.ingress_ports().collect();
    if let [_uplink, secondary @ ..] = ports.as_mut_slice() {
        secondary.sort_by_key(|port| port.ofport);
    }
    ports
}

fn followers(group: &BridgeGroup) -> BTreeSet<OfPort> {
    group.followers.iter().map(|it| it.ofport).collect()
}

/// What to write so that the installed flows become the desired ones. `installed` may hold the
/// flows of others: they are left alone. Another's catch-all serves as well as ours: it is not among
/// [`FlowChanges::foreign`]. Another's steering flows are, also where ours for the same headers are at
/// [`UNMARKED_PRIORITY`].
#[must_use]
pub fn diff(desired: &[Flow], installed: &[InstalledFlow]) -> FlowChanges {
    let mut changes = openflow::diff(COOKIE, desired, installed.iter().map(|it| &it.flow));
    changes.foreign.retain(|flow| !design::is_catch_all(flow));
    let places: BTreeSet<FlowKey> = desired.iter().filter_map(usual_place).collect();
    if !places.is_empty() {
        let foreign = installed.iter().map(|it| &it.flow);
        let foreign = foreign.filter(|it| it.cookie != COOKIE && places.contains(&it.key()));
        changes.foreign.extend(foreign.cloned());
    }
    changes
}

/// Where others that steer have the flow that a flow of ours was lowered from.
#[must_use]
pub fn usual_place(flow: &Flow) -> Option<FlowKey> {
    (flow.table == 0 && flow.priority == UNMARKED_PRIORITY).then(|| FlowKey {
        priority: STEERING_PRIORITY,
        ..flow.key()
    })
}

/// Whether a flow is at a priority of those that steer.
#[must_use]
pub const fn is_steering(flow: &Flow) -> bool {
    flow.table == 0 && is_steering_priority(flow.priority)
}

/// Whether a flow of table 0 with this priority is one of those that steer.
#[must_use]
pub const fn is_steering_priority(priority: u16) -> bool {
    matches!(priority, STEERING_PRIORITY | UNMARKED_PRIORITY)
}
