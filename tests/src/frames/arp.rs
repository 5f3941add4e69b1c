//! ARP over Ethernet (RFC 826, RFC 5227).

use std::net::Ipv4Addr;

use etherparse::{ArpEthIpv4Packet, ArpOperation};

use super::{
    EthernetFrame, Framing, Mac, ZERO_MAC,
    ethernet::{ETHERTYPE_ARP, ETHERTYPE_IPV4},
};

/// Operation: request.
pub const REQUEST: u16 = 1;
/// Operation: reply.
pub const REPLY: u16 = 2;

/// One ARP packet. The four sizes may lie about the body, which is always that of Ethernet and IPv4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arp {
    /// 1 is Ethernet.
    pub hardware_type: u16,
    /// An Ethernet type.
    pub protocol_type: u16,
    /// 6 for Ethernet.
    pub hardware_length: u8,
    /// 4 for IPv4.
    pub protocol_length: u8,
    /// 1 is a request, 2 a reply.
    pub operation: u16,
    /// Sender hardware address.
    pub sender_mac: Mac,
    /// Sender protocol address.
    pub sender_ip: Ipv4Addr,
    /// Target hardware address.
    pub target_mac: Mac,
    /// Target protocol address.
    pub target_ip: Ipv4Addr,
}

impl Arp {
    /// Any operation between two hosts.
    #[must_use]
    pub const fn new(
        operation: u16,
        (sender_mac, sender_ip): (Mac, Ipv4Addr),
        (target_mac, target_ip): (Mac, Ipv4Addr),
    ) -> Self {
        Self {
            hardware_type: 1,
            protocol_type: ETHERTYPE_IPV4,
            hardware_length: 6,
            protocol_length: 4,
            operation,
            sender_mac,
            sender_ip,
            target_mac,
            target_ip,
        }
    }

    /// Who has `wanted`? The target hardware address is zero.
    #[must_use]
    pub const fn request(from_mac: Mac, from_ip: Ipv4Addr, wanted: Ipv4Addr) -> Self {
        Self::new(REQUEST, (from_mac, from_ip), (ZERO_MAC, wanted))
    }

    /// `from_ip` is at `from_mac`.
    #[must_use]
    pub const fn reply(from_mac: Mac, from_ip: Ipv4Addr, to_mac: Mac, to_ip: Ipv4Addr) -> Self {
        Self::new(REPLY, (from_mac, from_ip), (to_mac, to_ip))
    }

    /// Does anybody use `wanted`? (RFC 5227, 2.1.1)
    #[must_use]
    pub const fn probe(from_mac: Mac, wanted: Ipv4Addr) -> Self {
        Self::request(from_mac, Ipv4Addr::UNSPECIFIED, wanted)
    }

    /// `ip` is mine. (RFC 5227, 2.3)
    #[must_use]
    pub const fn announcement(mac: Mac, ip: Ipv4Addr) -> Self {
        Self::request(mac, ip, ip)
    }

    /// The 28 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 28] {
        let mut bytes = ArpEthIpv4Packet {
            operation: ArpOperation(self.operation),
            sender_mac: self.sender_mac.0,
            sender_ipv4: self.sender_ip.octets(),
            target_mac: self.target_mac.0,
            target_ipv4: self.target_ip.octets(),
        }
        .to_bytes();
        bytes[0..2].copy_from_slice(&self.hardware_type.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.protocol_type.to_be_bytes());
        bytes[4] = self.hardware_length;
        bytes[5] = self.protocol_length;
        bytes
    }

    /// In a frame from the sender's hardware address.
    #[must_use]
    pub fn frame(&self, destination: Mac) -> EthernetFrame {
        EthernetFrame {
            destination,
            source: self.sender_mac,
            tags: Vec::new(),
            framing: Framing::Type(ETHERTYPE_ARP),
            payload: self.to_bytes().to_vec(),
        }
    }
}
