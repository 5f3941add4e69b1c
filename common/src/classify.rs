//! The one classifier.

use crate::{
    Decision, Frame, Kind, Notes, Verdict, arp,
    ethernet::{self, Ethernet},
    ipv6, wire,
};

/// What the classifier must know of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The MAC address that every gateway router shares with the bridge.
    pub bridge_mac: [u8; 6],
    /// The gateway VLAN ID (1..=4094), if the node has one.
    pub gateway_vlan: Option<u16>,
}

/// Classifies one frame. Without a policy every decision is [`Decision::Undecided`].
///
/// Kind and decision agree with what the flows of OKEP-6691 see of the frame through Open vSwitch's
/// kernel datapath:
///
/// * Two VLAN tags are read (TPID 0x8100 or 0x88a8), one beside the frame counted in; behind a
///   third one nothing is neighbour traffic.
/// * LLC/SNAP with OUI 0 counts as the Ethernet type that it carries.
/// * A short or odd ARP body is still ARP ([`Kind::ArpOther`]); RARP is not.
/// * ICMPv6 of fewer than 8 bytes, any fragment, and a packet of more than
///   [`wire::MAX_EXTENSION_HEADERS`] extension headers are not NDP to a flow.
/// * IPv6 version, hop limit, ICMPv6 code and checksum are matched by no flow: notes at most.
///
/// Where the userspace datapath (and so `ofproto/trace`) reads a frame differently:
///
/// | frame | kernel, and so here | userspace |
/// | --- | --- | --- |
/// | atomic fragment (offset 0, none follow) | not NDP | NDP |
/// | IPv6 payload length 0 or beyond the frame | ignored | not NDP |
/// | IPv6 payload length ends inside the ICMPv6 header | ignored | not NDP |
/// | LLC control byte other than 3 | SNAP | not SNAP |
/// | more extension headers than the bound | not NDP | NDP |
#[inline(always)]
pub fn classify<F: Frame>(frame: &F, policy: Option<&Policy>) -> Verdict {
    let ethernet = match ethernet::read(frame) {
        Ok(ethernet) => ethernet,
        Err(notes) => return verdict(Kind::NotNeighbour, passed(policy), notes),
    };
    let mut notes = Notes::default();
    let kind = match ethernet.ethertype {
        wire::ETHERTYPE_ARP => arp::read(frame, &ethernet, &mut notes),
        wire::ETHERTYPE_IPV6 => ipv6::read(frame, ethernet.body, &mut notes),
        _ => Kind::NotNeighbour,
    };
    if matches!(kind, Kind::NotNeighbour) {
        return verdict(kind, passed(policy), notes);
    }
    if ethernet::is_odd_sender(ethernet.source) {
        notes |= Notes::ODD_SENDER;
    }
    let decision = match policy {
        Some(policy) => decide(frame, &ethernet, kind, policy),
        None => Decision::Undecided,
    };
    verdict(kind, decision, notes)
}

#[inline(always)]
const fn verdict(kind: Kind, decision: Decision, notes: Notes) -> Verdict {
    Verdict {
        kind,
        decision,
        notes,
    }
}

/// The decision about a frame that is not neighbour traffic.
#[inline(always)]
const fn passed(policy: Option<&Policy>) -> Decision {
    match policy {
        Some(_) => Decision::Normal,
        None => Decision::Undecided,
    }
}

/// What the flow table does with a frame that is ARP or NDP to it.
///
/// With a gateway VLAN the outermost tag's VLAN ID must be that one (`dl_vlan`): an untagged frame
/// and a priority tag are in no VLAN. Without one, the flows match frames of any VLAN.
#[inline(always)]
fn decide<F: Frame>(frame: &F, ethernet: &Ethernet, kind: Kind, policy: &Policy) -> Decision {
    if ethernet.is_to_group() {
        return Decision::Flood;
    }
    if ethernet.destination != policy.bridge_mac {
        return Decision::Normal;
    }
    if policy.gateway_vlan.is_some() && ethernet.vlan_id(frame) != policy.gateway_vlan {
        return Decision::Normal;
    }
    steer(kind)
}

/// The priority-52 flow that takes a unicast frame to the bridge MAC.
///
/// There is none for Router Solicitations and Redirects.
#[inline(always)]
const fn steer(kind: Kind) -> Decision {
    match kind {
        Kind::ArpRequest
        | Kind::ArpReply
        | Kind::ArpProbe
        | Kind::ArpAnnouncement
        | Kind::ArpOther => Decision::SteerArp,
        Kind::NeighborSolicitation => Decision::SteerNs,
        Kind::NeighborAdvertisement => Decision::SteerNa,
        Kind::RouterAdvertisement => Decision::SteerRa,
        Kind::NotNeighbour | Kind::RouterSolicitation | Kind::Redirect => Decision::Normal,
    }
}
