//! Today's flows of OVN-Kubernetes for ARP and NDP: what the design replaces, rendered where the gate
//! is off and the bridge has no other manager. The outputs are in the newer order: the default
//! network first, `NORMAL` or `FLOOD` before the others where it reaches the default network itself.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::design::{
    NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION, ROUTER_ADVERTISEMENT, arp, arriving, flow,
    has_family, icmpv6,
};
use crate::{
    ids::{Mac, OfPort},
    openflow::{Action, Flow, Match},
    topology::BridgeGroup,
};

/// Everything for the shared address to every router.
const FAN_OUT_PRIORITY: u16 = 10;
/// Broadcast ARP and multicast NA from outside to every router.
const ANNOUNCEMENT_PRIORITY: u16 = 11;
/// Requests for the node's addresses to the default network's router alone.
const NODE_ADDRESS_PRIORITY: u16 = 12;
/// RA and NA, which conntrack cannot track, to every router. In table 1, where the manager's
/// priority 50 sends IPv6.
const UNTRACKED_PRIORITY: u16 = 14;

/// An ARP request (RFC 826).
const ARP_REQUEST: u16 = 1;

/// The flows that hand ARP and NDP to every router. `followers` are in the order of the outputs.
///
/// A bridge of an uplink of its own has no default network: no flow for requests and announcements,
/// no port without flood, and every router is a user-defined network's.
pub(super) fn fan_out(group: &BridgeGroup, followers: &BTreeSet<OfPort>) -> Vec<Flow> {
    let source = group.source.ofport;
    let user_defined: Vec<Action> = if is_default(group) {
        followers.iter().copied().map(output).collect()
    } else {
        all_routers(source, followers).collect()
    };
    let mut flows = vec![flow(
        0,
        FAN_OUT_PRIORITY,
        Match {
            dl_vlan: group.gateway_vlan,
            dl_dst: Some(group.bridge_mac),
            ..Match::default()
        },
        all_routers(source, followers)
            .chain([Action::Normal])
            .collect(),
    )];
    if is_default(group) {
        flows.extend(announcements(group, &user_defined));
        flows.extend(node_addresses(group));
    }
    flows.extend(untracked(group, &user_defined));
    flows
}

/// Whether the group has the default network's router, which is its source then.
pub(super) const fn is_default(group: &BridgeGroup) -> bool {
    group.source.network.is_none()
}

fn output(port: OfPort) -> Action {
    Action::Output(port.into())
}

fn all_routers(source: OfPort, followers: &BTreeSet<OfPort>) -> impl Iterator<Item = Action> {
    let ports = std::iter::once(source).chain(followers.iter().copied());
    ports.map(output)
}

/// Only the uplink's: secondary localnet ports have none today.
fn announcements(group: &BridgeGroup, user_defined: &[Action]) -> impl Iterator<Item = Flow> {
    let arriving = |mac| arriving(group, &group.uplink, mac);
    let arp = group.ipv4.then(|| arp(&arriving(Mac::BROADCAST)));
    let advertisement = group
        .ipv6
        .then(|| icmpv6(&arriving(Mac::ALL_NODES), NEIGHBOR_ADVERTISEMENT));
    let actions = [&[Action::Normal], user_defined].concat();
    let matches = arp.into_iter().chain(advertisement);
    matches
        .filter(|_| !user_defined.is_empty())
        .map(move |matches| flow(0, ANNOUNCEMENT_PRIORITY, matches, actions.clone()))
}

fn node_addresses(group: &BridgeGroup) -> impl Iterator<Item = Flow> {
    let addresses: BTreeSet<IpAddr> = group.node_addresses.iter().copied().collect();
    let actions = vec![output(group.source.ofport), Action::Normal];
    let addresses = addresses
        .into_iter()
        .filter(|address| has_family(group, *address));
    addresses.map(move |address| {
        let matches = match address {
            IpAddr::V4(address) => who_has(group, address),
            IpAddr::V6(address) => solicitation(group, address),
        };
        flow(0, NODE_ADDRESS_PRIORITY, matches, actions.clone())
    })
}

/// Whatever port it comes by, and to whatever address it goes.
fn in_gateway_vlan(group: &BridgeGroup) -> Match {
    Match {
        dl_vlan: group.gateway_vlan,
        ..Match::default()
    }
}

fn who_has(group: &BridgeGroup, address: Ipv4Addr) -> Match {
    Match {
        arp_op: Some(ARP_REQUEST),
        arp_tpa: Some(address),
        ..arp(&in_gateway_vlan(group))
    }
}

fn solicitation(group: &BridgeGroup, address: Ipv6Addr) -> Match {
    Match {
        nd_target: Some(address),
        ..icmpv6(&in_gateway_vlan(group), NEIGHBOR_SOLICITATION)
    }
}

fn untracked(group: &BridgeGroup, user_defined: &[Action]) -> impl Iterator<Item = Flow> {
    let actions = [&[Action::Flood], user_defined].concat();
    let types = [ROUTER_ADVERTISEMENT, NEIGHBOR_ADVERTISEMENT].into_iter();
    types.filter(|_| group.ipv6).map(move |icmpv6_type| {
        let matches = icmpv6(&Match::default(), icmpv6_type);
        flow(1, UNTRACKED_PRIORITY, matches, actions.clone())
    })
}
