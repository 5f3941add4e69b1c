//! What the classifier says of one frame.

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
    /// ARP request with a sender protocol address of 0.0.0.0 (RFC 5227, 2.1.1).
    ArpProbe = 3,
    /// ARP request or reply whose sender and target protocol address are the same (RFC 5227, 3).
    ArpAnnouncement = 4,
    /// ARP with any other operation, or a body too short to tell.
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

/// Oddities of a frame: a set of bits, none of which changes how the frame is forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Notes(pub u16);

impl Notes {
    /// The frame ends before a header that its type promises.
    pub const TRUNCATED: Self = Self(1 << 0);
    /// ARP hardware or protocol type or address length other than Ethernet and IPv4.
    pub const ODD_ARP_SIZES: Self = Self(1 << 1);
    /// The sender hardware address in the ARP body is not the Ethernet source (VRRP does this).
    pub const SENDER_MAC_DIFFERS: Self = Self(1 << 2);
    /// NDP whose hop limit is not 255 (RFC 4861, 6.1 and 7.1).
    pub const HOP_LIMIT_NOT_255: Self = Self(1 << 3);
    /// NDP whose ICMPv6 code is not 0 (RFC 4861, 6.1 and 7.1).
    pub const CODE_NOT_ZERO: Self = Self(1 << 4);
    /// NDP shorter than the fixed part of its type (RFC 4861, 4).
    pub const TOO_SHORT: Self = Self(1 << 5);
    /// IPv6 fragment (RFC 6980 forbids NDP in one).
    pub const FRAGMENTED: Self = Self(1 << 6);
    /// More extension headers than the classifier walks.
    pub const TOO_MANY_EXTENSION_HEADERS: Self = Self(1 << 7);
    /// Multicast or all-zero Ethernet source or ARP sender hardware address.
    pub const ODD_SENDER: Self = Self(1 << 8);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no bit is set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl core::ops::BitOrAssign for Notes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
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
