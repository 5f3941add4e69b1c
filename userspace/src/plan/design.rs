//! The flows of the design with the gate on (OKEP-6691).

use std::net::IpAddr;

use super::COOKIE;
use crate::{
    ids::{Mac, OfPort},
    openflow::{Action, Flow, Match, Protocol},
    topology::{BridgeGroup, IngressPort},
};

/// Above priority 50, which takes IPv6 to conntrack, and below the services' ARP bypass at 110.
pub const STEERING_PRIORITY: u16 = 52;

/// Directly above today's fan-out of broadcast ARP and multicast NA (11) and its filter for the
/// node's addresses (12), so that nothing but these is shadowed: OVN-Kubernetes has no flow in table
/// 0 between 12 and 50.
const SHADOW_PRIORITY: u16 = 13;

/// What comes from OVN with the shared address goes on.
const EGRESS_PRIORITY: u16 = 10;
/// What comes from OVN with another address does not.
const EGRESS_DROP_PRIORITY: u16 = 9;
const CATCH_ALL_PRIORITY: u16 = 0;

/// ICMPv6 types (RFC 4861, 4.2–4.4).
pub(super) const ROUTER_ADVERTISEMENT: u8 = 134;
pub(super) const NEIGHBOR_SOLICITATION: u8 = 135;
pub(super) const NEIGHBOR_ADVERTISEMENT: u8 = 136;

const STEERED_ICMPV6_TYPES: [u8; 3] = [
    NEIGHBOR_SOLICITATION,
    NEIGHBOR_ADVERTISEMENT,
    ROUTER_ADVERTISEMENT,
];

/// A flow of ours.
pub(super) fn flow(table: u8, priority: u16, matches: Match, actions: Vec<Action>) -> Flow {
    Flow {
        cookie: COOKIE,
        table,
        priority,
        matches,
        actions,
    }
}

/// Any ARP, of frames that match.
pub(super) fn arp(matches: &Match) -> Match {
    Match {
        protocol: Some(Protocol::Arp),
        ..matches.clone()
    }
}

/// One kind of ICMPv6 message, of frames that match.
pub(super) fn icmpv6(matches: &Match, icmpv6_type: u8) -> Match {
    Match {
        protocol: Some(Protocol::Icmp6),
        icmpv6_type: Some(icmpv6_type),
        ..matches.clone()
    }
}

/// Frames to one address by one port, with the gateway's VLAN.
pub(super) fn arriving(group: &BridgeGroup, ingress: &IngressPort, dl_dst: Mac) -> Match {
    Match {
        in_port: Some(ingress.ofport.into()),
        dl_vlan: group.gateway_vlan,
        dl_dst: Some(dl_dst),
        ..Match::default()
    }
}

/// Unicast ARP and NDP to the shared address, by one ingress port: to the source's patch port, and
/// to `NORMAL`, which learns the sender and delivers to the host. Only the families that the group
/// has.
pub(super) fn steering(group: &BridgeGroup, ingress: &IngressPort) -> impl Iterator<Item = Flow> {
    let to_bridge = arriving(group, ingress, group.bridge_mac);
    let source = Action::Output(group.source.ofport.into());
    let arp = group.ipv4.then(|| arp(&to_bridge));
    let ndp = STEERED_ICMPV6_TYPES.into_iter().filter(|_| group.ipv6);
    let ndp = ndp.map(move |icmpv6_type| icmpv6(&to_bridge, icmpv6_type));
    arp.into_iter().chain(ndp).map(move |matches| {
        let actions = vec![source.clone(), Action::Normal];
        flow(0, STEERING_PRIORITY, matches, actions)
    })
}

/// Broadcast ARP and multicast NA by one ingress port to `NORMAL`, whose flood leaves out the
/// followers: over a fan-out that outputs to each of them. The source gets one copy.
///
/// A multicast NS for the node's address goes on taking priority 12, which outputs to the source and
/// to `NORMAL`: two copies to one router, however many followers there are, as without us. All other
/// multicast NDP reaches the catch-all by itself.
pub(super) fn shadows(group: &BridgeGroup, ingress: &IngressPort) -> impl Iterator<Item = Flow> {
    let arp = group
        .ipv4
        .then(|| arp(&arriving(group, ingress, Mac::BROADCAST)));
    let advertisement = group.ipv6.then(|| {
        let to_all = arriving(group, ingress, Mac::ALL_NODES);
        icmpv6(&to_all, NEIGHBOR_ADVERTISEMENT)
    });
    let normal = |matches| flow(0, SHADOW_PRIORITY, matches, vec![Action::Normal]);
    arp.into_iter().chain(advertisement).map(normal)
}

/// From a gateway router only frames with the shared address go on. Secondary localnet networks are
/// not meant: their workloads have addresses of their own.
pub(super) fn egress_validation(
    group: &BridgeGroup,
    patch_ports: impl IntoIterator<Item = OfPort>,
) -> impl Iterator<Item = Flow> {
    patch_ports.into_iter().flat_map(|patch_port| {
        let from_patch = Match {
            in_port: Some(patch_port.into()),
            ..Match::default()
        };
        let valid = Match {
            dl_src: Some(group.bridge_mac),
            ..from_patch.clone()
        };
        [
            flow(0, EGRESS_PRIORITY, valid, vec![Action::Normal]),
            flow(0, EGRESS_DROP_PRIORITY, from_patch, Vec::new()),
        ]
    })
}

/// Everything else is switched.
pub(super) fn catch_all() -> Flow {
    flow(
        0,
        CATCH_ALL_PRIORITY,
        Match::default(),
        vec![Action::Normal],
    )
}

/// Whether a flow is the catch-all, whosever it is. A bridge that was just made has one.
pub(super) fn is_catch_all(flow: &Flow) -> bool {
    let wanted = catch_all();
    flow.key() == wanted.key() && flow.actions == wanted.actions
}

/// The families of a group, as `IpAddr` tells them.
pub(super) fn has_family(group: &BridgeGroup, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => group.ipv4,
        IpAddr::V6(_) => group.ipv6,
    }
}
