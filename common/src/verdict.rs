//! What the classifier says of one frame.

use core::fmt;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Neither ARP nor NDP.
    NotNeighbour = 0,
    /// ARP, operation 1, none of the two below (RFC 826).
    ArpRequest = 1,
    /// ARP, operation 2.
    ArpReply = 2,
    /// ARP request with a sender protocol address of 0.0.0.0 (RFC 5227, 1.1).
    ArpProbe = 3,
    /// ARP request or reply whose sender and target protocol address are the same (RFC 5227, 3),
    /// other than 0.0.0.0.
    ArpAnnouncement = 4,
    /// ARP with any other operation, or a body that is short or not of Ethernet and IPv4 addresses:
    /// Open vSwitch takes no operation from such a one.
    ArpOther = 5,
    /// Neighbor Solicitation, ICMPv6 type 135 (RFC 4861, 4.3).
    NeighborSolicitation = 6,
    /// Neighbor Advertisement, ICMPv6 type 136 (RFC 4861, 4.4).
    NeighborAdvertisement = 7,
    /// Router Solicitation, ICMPv6 type 133 (RFC 4861, 4.1).
    RouterSolicitation = 8,
    /// Router Advertisement, ICMPv6 type 134 (RFC 4861, 4.2).
    RouterAdvertisement = 9,
    /// Redirect, ICMPv6 type 137 (RFC 4861, 4.5).
    Redirect = 10,
}

impl Kind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 11] = [
        Self::NotNeighbour,
        Self::ArpRequest,
        Self::ArpReply,
        Self::ArpProbe,
        Self::ArpAnnouncement,
        Self::ArpOther,
        Self::NeighborSolicitation,
        Self::NeighborAdvertisement,
        Self::RouterSolicitation,
        Self::RouterAdvertisement,
        Self::Redirect,
    ];

    /// The name in text and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotNeighbour => "not-neighbour",
            Self::ArpRequest => "arp-request",
            Self::ArpReply => "arp-reply",
            Self::ArpProbe => "arp-probe",
            Self::ArpAnnouncement => "arp-announcement",
            Self::ArpOther => "arp-other",
            Self::NeighborSolicitation => "neighbor-solicitation",
            Self::NeighborAdvertisement => "neighbor-advertisement",
            Self::RouterSolicitation => "router-solicitation",
            Self::RouterAdvertisement => "router-advertisement",
            Self::Redirect => "redirect",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of that number in a map key.
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::NotNeighbour,
            1 => Self::ArpRequest,
            2 => Self::ArpReply,
            3 => Self::ArpProbe,
            4 => Self::ArpAnnouncement,
            5 => Self::ArpOther,
            6 => Self::NeighborSolicitation,
            7 => Self::NeighborAdvertisement,
            8 => Self::RouterSolicitation,
            9 => Self::RouterAdvertisement,
            10 => Self::Redirect,
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the flow table of OKEP-6691 does with a frame while `disable-udn-arp-ndp-flood` is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Decision {
    /// No policy was set: the program counts kinds and decides nothing.
    Undecided = 0,
    /// Not a matter of the design: everything that is neither steered nor flooded.
    Normal = 1,
    /// Broadcast or multicast ARP/NDP: the catch-all NORMAL flood.
    Flood = 2,
    /// Priority 52, ARP.
    SteerArp = 3,
    /// Priority 52, Neighbor Solicitation.
    SteerNs = 4,
    /// Priority 52, Neighbor Advertisement.
    SteerNa = 5,
    /// Priority 52, Router Advertisement.
    SteerRa = 6,
}

impl Decision {
    /// Every decision, in the order of its number.
    pub const ALL: [Self; 7] = [
        Self::Undecided,
        Self::Normal,
        Self::Flood,
        Self::SteerArp,
        Self::SteerNs,
        Self::SteerNa,
        Self::SteerRa,
    ];

    /// The name in text and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Normal => "normal",
            Self::Flood => "flood",
            Self::SteerArp => "steer-arp",
            Self::SteerNs => "steer-ns",
            Self::SteerNa => "steer-na",
            Self::SteerRa => "steer-ra",
        }
    }

    /// The decision of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|decision| decision.name() == name)
    }

    /// The decision of that number in a map key.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether a priority-52 flow takes the frame.
    #[inline(always)]
    #[must_use]
    pub const fn is_steered(self) -> bool {
        matches!(
            self,
            Self::SteerArp | Self::SteerNs | Self::SteerNa | Self::SteerRa
        )
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Oddities of a frame: a set of bits, none of which changes how the frame is forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Notes(pub u16);

impl Notes {
    /// The frame ends before a header that its type promises: an Ethernet header, a tag's type, an
    /// ARP body, an IPv6 header, the first two bytes of an extension header (all that Open vSwitch's
    /// kernel datapath reads of it), or 8 bytes of ICMPv6.
    pub const TRUNCATED: Self = Self(1 << 0);
    /// ARP hardware type, protocol type or address lengths other than those of Ethernet and IPv4.
    pub const ODD_ARP_SIZES: Self = Self(1 << 1);
    /// The sender hardware address in the ARP body is not the Ethernet source (VRRP does this).
    pub const SENDER_MAC_DIFFERS: Self = Self(1 << 2);
    /// NDP whose hop limit is not 255 (RFC 4861, 6.1 and 7.1).
    pub const HOP_LIMIT_NOT_255: Self = Self(1 << 3);
    /// NDP whose ICMPv6 code is not 0 (RFC 4861, 6.1 and 7.1).
    pub const CODE_NOT_ZERO: Self = Self(1 << 4);
    /// NDP shorter than the fixed part of its type (RFC 4861, 4), by the frame's end or by the IPv6
    /// payload length.
    pub const TOO_SHORT: Self = Self(1 << 5);
    /// IPv6 fragment, an atomic one too: not NDP to a flow.
    pub const FRAGMENTED: Self = Self(1 << 6);
    /// More extension headers than [`crate::MAX_EXTENSION_HEADERS`]: whether NDP is behind them was
    /// not looked at.
    pub const TOO_MANY_EXTENSION_HEADERS: Self = Self(1 << 7);
    /// ARP or NDP with a multicast or all-zero Ethernet source or ARP sender hardware address.
    pub const ODD_SENDER: Self = Self(1 << 8);
    /// Neighbor Solicitation or Advertisement whose target is a multicast address (RFC 4861, 7.1).
    pub const MULTICAST_TARGET: Self = Self(1 << 9);
    /// A first or atomic fragment with the type of an NDP message (RFC 6980, 5). A later fragment
    /// does not say what it is part of.
    pub const FRAGMENTED_NDP: Self = Self(1 << 10);
    /// ARP or a Neighbor Advertisement that announces one of [`crate::Policy::node_addresses`] with
    /// another MAC address than the bridge's, in the bridge's own VLAN.
    pub const NODE_ADDRESS_ANNOUNCED: Self = Self(1 << 11);

    /// Every note of a frame that no receiver may take (RFC 4861, 6.1, 7.1 and 8.1; RFC 6980, 5).
    ///
    /// Not all of their rules are looked at: checksum, source address and options are not.
    pub const INVALID: Self = Self(
        Self::HOP_LIMIT_NOT_255.0
            | Self::CODE_NOT_ZERO.0
            | Self::TOO_SHORT.0
            | Self::MULTICAST_TARGET.0
            | Self::FRAGMENTED_NDP.0,
    );
    /// Every note of a frame that is suspicious and no more.
    pub const SUSPICIOUS: Self =
        Self(Self::SENDER_MAC_DIFFERS.0 | Self::ODD_SENDER.0 | Self::NODE_ADDRESS_ANNOUNCED.0);

    /// Every note with its name in text and JSON output, in the order of its bit.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::TRUNCATED, "truncated"),
        (Self::ODD_ARP_SIZES, "odd-arp-sizes"),
        (Self::SENDER_MAC_DIFFERS, "sender-mac-differs"),
        (Self::HOP_LIMIT_NOT_255, "hop-limit-not-255"),
        (Self::CODE_NOT_ZERO, "code-not-zero"),
        (Self::TOO_SHORT, "too-short"),
        (Self::FRAGMENTED, "fragmented"),
        (
            Self::TOO_MANY_EXTENSION_HEADERS,
            "too-many-extension-headers",
        ),
        (Self::ODD_SENDER, "odd-sender"),
        (Self::MULTICAST_TARGET, "multicast-target"),
        (Self::FRAGMENTED_NDP, "fragmented-ndp"),
        (Self::NODE_ADDRESS_ANNOUNCED, "node-address-announced"),
    ];

    /// The names of the notes that are set, in the order of their bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL
            .into_iter()
            .filter_map(move |(note, name)| self.contains(note).then_some(name))
    }

    /// The note of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find_map(|(note, known)| (known == name).then_some(note))
    }

    /// Whether every bit of `other` is set.
    #[inline(always)]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline(always)]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// 1 where the one bit of `note` is set, else 0.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn bit(self, note: Self) -> u64 {
        (self.0 as u64) >> note.0.trailing_zeros() & 1
    }

    /// Whether no bit is set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl core::ops::BitOr for Notes {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOrAssign for Notes {
    #[inline(always)]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Names with commas between them; nothing for an empty set.
impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// What a frame is, what becomes of it, and what is odd about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// What the frame is.
    pub kind: Kind,
    /// What the flow table does with it.
    pub decision: Decision,
    /// What is odd about it.
    pub notes: Notes,
}

impl Verdict {
    /// Whether every receiver must discard the frame.
    #[inline(always)]
    #[must_use]
    pub const fn is_invalid(self) -> bool {
        self.notes.intersects(Notes::INVALID)
    }

    /// Kind in bits 0..8, decision in 8..16, notes in 16..32: for programs that hand a verdict out
    /// as one number.
    #[inline(always)]
    #[must_use]
    pub const fn pack(self) -> u32 {
        self.kind as u32 | (self.decision as u32) << 8 | (self.notes.0 as u32) << 16
    }

    /// The verdict that [`Self::pack`] made a number of.
    #[must_use]
    pub fn unpack(packed: u32) -> Option<Self> {
        let [kind, decision, notes0, notes1] = packed.to_le_bytes();
        Some(Self {
            kind: Kind::from_number(kind)?,
            decision: Decision::from_number(decision)?,
            notes: Notes(u16::from_le_bytes([notes0, notes1])),
        })
    }
}
