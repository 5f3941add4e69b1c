//! The one classifier.

use crate::{
    Decision, Frame, Kind, NodeAddresses, Notes, Verdict, arp, ethernet, ipv6, node_addresses, wire,
};

/// What the classifier must know of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The MAC address that every gateway router shares with the bridge.
    pub bridge_mac: [u8; 6],
    /// The gateway VLAN ID (1..=4094), if the node has one.
    pub gateway_vlan: Option<u16>,
    /// The node's own addresses. Who else announces them is noted; no decision depends on it.
    pub node_addresses: NodeAddresses,
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
    Recognised::in_frame(frame).judge(frame, policy)
}

/// What a frame is; what becomes of it is not decided yet.
///
/// The two steps of [`classify`], for a caller that gives up on a frame in between: most traffic is
/// neither ARP nor NDP, and needs neither addresses nor a policy to be seen as such.
#[derive(Clone, Copy, Debug)]
pub struct Recognised {
    kind: Kind,
    notes: Notes,
    vlan_in_frame: u16,
    /// Where the ARP body or the NDP message begins.
    message: usize,
}

impl Recognised {
    /// Looks at a frame.
    #[inline(always)]
    pub fn in_frame<F: Frame>(frame: &F) -> Self {
        let mut notes = Notes::default();
        match ethernet::read(frame) {
            Ok(ethernet) => {
                let mut message = ethernet.body;
                Self {
                    kind: match ethernet.ethertype {
                        wire::ETHERTYPE_ARP => arp::read(frame, message, &mut notes),
                        wire::ETHERTYPE_IPV6 => ipv6::read(frame, &mut message, &mut notes),
                        _ => Kind::NotNeighbour,
                    },
                    notes,
                    vlan_in_frame: ethernet.vlan_in_frame,
                    message,
                }
            }
            Err(notes) => Self {
                kind: Kind::NotNeighbour,
                notes,
                vlan_in_frame: ethernet::NO_VLAN,
                message: 0,
            },
        }
    }

    /// As one number: kind in bits 0..8, VLAN ID in 16..32, notes in 32..48, the message's offset in
    /// 48..64.
    ///
    /// A program that takes the number through a map makes its verifier forget on which of many ways
    /// it came here, and look at what follows once instead of once for each of them.
    #[inline(always)]
    #[must_use]
    pub const fn pack(self) -> u64 {
        self.kind as u64
            | (self.vlan_in_frame as u64) << 16
            | (self.notes.0 as u64) << 32
            // Frames are shorter than 64 KiB.
            | (self.message as u64) << 48
    }

    /// What [`Self::pack`] made a number of.
    #[inline(always)]
    #[must_use]
    pub const fn unpack(packed: u64) -> Option<Self> {
        let Some(kind) = Kind::from_number(packed as u8) else {
            return None;
        };
        Some(Self {
            kind,
            notes: Notes((packed >> 32) as u16),
            vlan_in_frame: (packed >> 16) as u16,
            message: (packed >> 48) as usize,
        })
    }

    /// Whether the frame is ARP or NDP.
    #[inline(always)]
    #[must_use]
    pub const fn is_neighbour(&self) -> bool {
        !matches!(self.kind, Kind::NotNeighbour)
    }

    /// Whether the frame is NDP that no flow takes for such, because it is fragmented.
    #[inline(always)]
    #[must_use]
    pub const fn is_fragmented_ndp(&self) -> bool {
        self.notes.contains(Notes::FRAGMENTED_NDP)
    }

    /// Decides about the same frame.
    #[inline(always)]
    pub fn judge<F: Frame>(self, frame: &F, policy: Option<&Policy>) -> Verdict {
        let mut notes = self.notes;
        if self.is_neighbour() && ethernet::source(frame).is_some_and(ethernet::is_odd_sender) {
            notes |= Notes::ODD_SENDER;
        }
        if let Some(policy) = policy
            && !policy.node_addresses.is_empty()
            && self.is_in_own_vlan(frame, policy)
            && node_addresses::announced_elsewhere(frame, self.kind, self.message, policy)
        {
            notes |= Notes::NODE_ADDRESS_ANNOUNCED;
        }
        Verdict {
            kind: self.kind,
            decision: match policy {
                Some(policy) => self.decide(frame, policy),
                None => Decision::Undecided,
            },
            notes,
        }
    }

    /// Whether the frame is on the network that the node's addresses are of: in the gateway VLAN, or
    /// in none where there is no such.
    #[inline(always)]
    fn is_in_own_vlan<F: Frame>(&self, frame: &F, policy: &Policy) -> bool {
        match (
            ethernet::outer_vlan(frame, self.vlan_in_frame),
            policy.gateway_vlan,
        ) {
            (vlan, Some(gateway_vlan)) => vlan == gateway_vlan,
            (vlan, None) => vlan == 0 || vlan == ethernet::NO_VLAN,
        }
    }

    /// What the flow table does with the frame.
    ///
    /// With a gateway VLAN the outermost tag's VLAN ID must be that one (`dl_vlan`): an untagged
    /// frame and a priority tag are in no VLAN. Without one, the flows match frames of any VLAN.
    #[inline(always)]
    fn decide<F: Frame>(&self, frame: &F, policy: &Policy) -> Decision {
        if !self.is_neighbour() {
            return Decision::Normal;
        }
        let Some(destination) = ethernet::destination(frame) else {
            return Decision::Normal;
        };
        if ethernet::is_group(destination) {
            return Decision::Flood;
        }
        if destination != policy.bridge_mac {
            return Decision::Normal;
        }
        if let Some(gateway_vlan) = policy.gateway_vlan
            && ethernet::outer_vlan(frame, self.vlan_in_frame) != gateway_vlan
        {
            return Decision::Normal;
        }
        steer(self.kind)
    }
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
