//! Neighbor Discovery messages with their options and checksums (RFC 4861).

use std::net::Ipv6Addr;

use etherparse::{Icmpv6Header, Icmpv6Type};

use super::{Ipv6, Mac, ipv6};

/// ICMPv6 type: Router Solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// ICMPv6 type: Router Advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// ICMPv6 type: Neighbor Solicitation.
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// ICMPv6 type: Neighbor Advertisement.
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// ICMPv6 type: Redirect.
pub const REDIRECT: u8 = 137;

/// The all-nodes group of the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// The all-routers group of the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The solicited-node multicast group of an address (RFC 4291, 2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// One option: its length field need not be that of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdpOption {
    /// 1: source link-layer address, 2: target link-layer address, 3: prefix, 5: MTU, 14: nonce.
    pub kind: u8,
    /// In units of 8 bytes; 0 is malformed.
    pub length: u8,
    /// What follows type and length.
    pub content: Vec<u8>,
}

impl NdpOption {
    /// Source link-layer address.
    #[must_use]
    pub fn source_link_layer(mac: Mac) -> Self {
        Self {
            kind: 1,
            length: 1,
            content: mac.0.to_vec(),
        }
    }

    /// Target link-layer address.
    #[must_use]
    pub fn target_link_layer(mac: Mac) -> Self {
        Self {
            kind: 2,
            length: 1,
            content: mac.0.to_vec(),
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ndp {
    /// ICMPv6 type.
    pub kind: u8,
    /// ICMPv6 code, 0.
    pub code: u8,
    /// The fixed part after the checksum.
    pub body: Vec<u8>,
    /// Options.
    pub options: Vec<NdpOption>,
}

impl Ndp {
    /// Who has `target`?
    #[must_use]
    pub fn solicitation(target: Ipv6Addr, source: Mac) -> Self {
        Self {
            kind: NEIGHBOR_SOLICITATION,
            code: 0,
            body: [[0; 4].as_slice(), &target.octets()].concat(),
            options: vec![NdpOption::source_link_layer(source)],
        }
    }

    /// `target` is at `mac` (override flag set).
    #[must_use]
    pub fn advertisement(target: Ipv6Addr, solicited: bool, mac: Mac) -> Self {
        let flags = if solicited { 0x60 } else { 0x20 };
        Self {
            kind: NEIGHBOR_ADVERTISEMENT,
            code: 0,
            body: [[flags, 0, 0, 0].as_slice(), &target.octets()].concat(),
            options: vec![NdpOption::target_link_layer(mac)],
        }
    }

    /// Is there a router?
    #[must_use]
    pub fn router_solicitation(source: Mac) -> Self {
        Self {
            kind: ROUTER_SOLICITATION,
            code: 0,
            body: vec![0; 4],
            options: vec![NdpOption::source_link_layer(source)],
        }
    }

    /// A router: hop limit 64, lifetime 1800 s.
    #[must_use]
    pub fn router_advertisement(source: Mac) -> Self {
        Self {
            kind: ROUTER_ADVERTISEMENT,
            code: 0,
            body: vec![64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0],
            options: vec![NdpOption::source_link_layer(source)],
        }
    }

    /// `destination` is better reached through `target`.
    #[must_use]
    pub fn redirect(target: Ipv6Addr, destination: Ipv6Addr, mac: Mac) -> Self {
        Self {
            kind: REDIRECT,
            code: 0,
            body: [[0; 4].as_slice(), &target.octets(), &destination.octets()].concat(),
            options: vec![NdpOption::target_link_layer(mac)],
        }
    }

    /// The ICMPv6 part, with the checksum for these addresses.
    #[must_use]
    pub fn to_bytes(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let mut rest = self.body.clone();
        for option in &self.options {
            rest.push(option.kind);
            rest.push(option.length);
            rest.extend_from_slice(&option.content);
        }
        let mut bytes = vec![self.kind, self.code, 0, 0];
        bytes.extend_from_slice(&rest);
        if let Some((first, payload)) = rest.split_first_chunk::<4>() {
            let kind = Icmpv6Type::Unknown {
                type_u8: self.kind,
                code_u8: self.code,
                bytes5to8: *first,
            };
            if let Ok(header) =
                Icmpv6Header::with_checksum(kind, source.octets(), destination.octets(), payload)
            {
                bytes[2..4].copy_from_slice(&header.checksum.to_be_bytes());
            }
        }
        bytes
    }

    /// In a packet with a hop limit of 255.
    #[must_use]
    pub fn packet(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6 {
        Ipv6 {
            version: 6,
            source,
            destination,
            hop_limit: 255,
            payload_length: None,
            extensions: Vec::new(),
            protocol: ipv6::ICMPV6,
            payload: self.to_bytes(source, destination),
        }
    }
}
