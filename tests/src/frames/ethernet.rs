//! Ethernet: addresses, VLAN tags, and the two ways in which a frame says what it carries.

use std::net::Ipv6Addr;

use super::Mac;

/// IEEE 802.1Q customer tag.
pub const TPID_C: u16 = 0x8100;
/// IEEE 802.1ad service tag.
pub const TPID_S: u16 = 0x88a8;
/// The pre-standard QinQ tag, which Open vSwitch does not read.
pub const TPID_OLD_QINQ: u16 = 0x9100;

/// ARP (RFC 826).
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// RARP (RFC 903).
pub const ETHERTYPE_RARP: u16 = 0x8035;
/// IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

/// The Ethernet address of an IPv6 multicast group (RFC 2464, 7).
#[must_use]
pub fn multicast_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// One VLAN tag, as it is in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Tag protocol identifier, host order.
    pub tpid: u16,
    /// Priority (3 bits), DEI (1), VLAN ID (12), host order.
    pub tci: u16,
}

impl Tag {
    /// A customer tag (0x8100) without priority.
    #[must_use]
    pub const fn customer(vlan_id: u16) -> Self {
        Self {
            tpid: TPID_C,
            tci: vlan_id & 0x0fff,
        }
    }

    /// A service tag (0x88a8) without priority.
    #[must_use]
    pub const fn service(vlan_id: u16) -> Self {
        Self {
            tpid: TPID_S,
            tci: vlan_id & 0x0fff,
        }
    }

    /// The same tag with a priority (0..=7).
    #[must_use]
    pub const fn with_priority(mut self, priority: u8) -> Self {
        self.tci = (self.tci & 0x1fff) | ((priority as u16) << 13);
        self
    }
}

/// How a frame says what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Ethernet II: a type of at least 0x0600. Anything may be written here.
    Type(u16),
    /// IEEE 802.3: a length, then LLC and SNAP (RFC 1042).
    Snap(Snap),
}

/// The headers of an 802.3 frame that carries a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snap {
    /// The length field; `None` is the true one.
    pub length: Option<u16>,
    /// Destination and source service access point (0xaa for SNAP).
    pub access_points: [u8; 2],
    /// LLC control (3: unnumbered information).
    pub control: u8,
    /// Organization; zero says that `ethertype` is an Ethernet type.
    pub organization: [u8; 3],
    /// What it carries.
    pub ethertype: u16,
}

impl Snap {
    /// What RFC 1042 asks for.
    #[must_use]
    pub const fn new(ethertype: u16) -> Self {
        Self {
            length: None,
            access_points: [0xaa; 2],
            control: 3,
            organization: [0; 3],
            ethertype,
        }
    }
}

/// One frame, from the destination address on, without preamble, padding and FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetFrame {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// VLAN tags, outermost first.
    pub tags: Vec<Tag>,
    /// Type, or length and LLC.
    pub framing: Framing,
    /// What follows.
    pub payload: Vec<u8>,
}

impl EthernetFrame {
    /// The same frame with one more tag, outermost.
    #[must_use]
    pub fn tagged(mut self, tag: Tag) -> Self {
        self.tags.insert(0, tag);
        self
    }

    /// The same frame as 802.3 with LLC and SNAP (RFC 1042).
    #[must_use]
    pub fn in_snap(mut self) -> Self {
        if let Framing::Type(ethertype) = self.framing {
            self.framing = Framing::Snap(Snap::new(ethertype));
        }
        self
    }

    /// The bytes on the wire.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.payload.len());
        bytes.extend_from_slice(&self.destination.0);
        bytes.extend_from_slice(&self.source.0);
        for tag in &self.tags {
            bytes.extend_from_slice(&tag.tpid.to_be_bytes());
            bytes.extend_from_slice(&tag.tci.to_be_bytes());
        }
        match &self.framing {
            Framing::Type(ethertype) => bytes.extend_from_slice(&ethertype.to_be_bytes()),
            Framing::Snap(snap) => {
                let true_length = u16::try_from(self.payload.len() + 8).unwrap_or(u16::MAX);
                let length = snap.length.unwrap_or(true_length);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(&snap.access_points);
                bytes.push(snap.control);
                bytes.extend_from_slice(&snap.organization);
                bytes.extend_from_slice(&snap.ethertype.to_be_bytes());
            }
        }
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}
