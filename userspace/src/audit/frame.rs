//! Frames of ARP (RFC 826) and NDP (RFC 4861) as a well-behaved neighbour sends them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ids::Mac;

const TYPE_VLAN: u16 = 0x8100;
const TYPE_ARP: u16 = 0x0806;
const TYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_ICMPV6: u8 = 58;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What a neighbour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Its address, to one that asked.
    ArpReply,
    /// A question for an address, to all.
    ArpRequest,
    /// A question for an address, to the group of those that may have it.
    NeighborSolicitation,
    /// Its address, to one that asked or to all nodes.
    NeighborAdvertisement,
    /// That it is a router, to all nodes or to one.
    RouterAdvertisement,
}

/// A message, from whom and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// What is said.
    pub message: Message,
    /// The sender's address.
    pub mac: Mac,
    /// The sender's IP address.
    pub ip: IpAddr,
    /// The node's Ethernet address: the destination, unless it is a group's.
    pub node_mac: Mac,
    /// Who is spoken to, or asked for.
    pub to: IpAddr,
    /// The VLAN of its tag, if it has one.
    pub vlan: Option<u16>,
}

/// Addresses that do not go with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// ARP with an IPv6 address.
    #[error("ARP is about IPv4 addresses, and {0} is none")]
    NotIpv4(IpAddr),
    /// NDP with an IPv4 address.
    #[error("NDP is about IPv6 addresses, and {0} is none")]
    NotIpv6(IpAddr),
}

impl Neighbour {
    /// The frame, without padding and checksum of the link.
    ///
    /// # Errors
    /// Where an address is of the other family.
    pub fn to_frame(self) -> Result<Vec<u8>, FrameError> {
        match self.message {
            Message::ArpReply | Message::ArpRequest => self.arp(),
            _ => self.ndp(),
        }
    }

    fn arp(self) -> Result<Vec<u8>, FrameError> {
        let (from, to) = (ipv4(self.ip)?, ipv4(self.to)?);
        let is_request = self.message == Message::ArpRequest;
        let (operation, target, destination) = if is_request {
            (1, Mac([0; 6]), Mac::BROADCAST)
        } else {
            (2, self.node_mac, self.node_mac)
        };
        let mut frame = self.header(destination, TYPE_ARP);
        // Ethernet and IPv4, with addresses of six and four bytes.
        frame.extend([0, 1, 8, 0, 6, 4, 0, operation]);
        frame.extend(self.mac.0);
        frame.extend(from.octets());
        frame.extend(target.0);
        frame.extend(to.octets());
        Ok(frame)
    }

    fn ndp(self) -> Result<Vec<u8>, FrameError> {
        let (from, to) = (ipv6(self.ip)?, ipv6(self.to)?);
        let (destination, body) = match self.message {
            Message::NeighborSolicitation => {
                let [.., a, b, c] = to.octets();
                let mut group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).octets();
                let [.., x, y, z] = &mut group;
                (*x, *y, *z) = (a, b, c);
                (group.into(), self.target(135, 0, to, 1))
            }
            Message::RouterAdvertisement => {
                // Hop limit 64, no flags, a lifetime of 1,800 s, no timers.
                let mut body = vec![134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
                body.extend([1, 1]);
                body.extend(self.mac.0);
                (to, body)
            }
            _ => {
                // Solicited where it is an answer; to override what is known.
                let flags = if to == ALL_NODES { 0x20 } else { 0x60 };
                (to, self.target(136, flags, from, 2))
            }
        };
        let mac = match destination.octets() {
            [0xff, .., a, b, c, d] => Mac([0x33, 0x33, a, b, c, d]),
            _ => self.node_mac,
        };
        let mut frame = self.header(mac, TYPE_IPV6);
        frame.extend([0x60, 0, 0, 0]);
        frame.extend(u16::try_from(body.len()).unwrap_or_default().to_be_bytes());
        frame.extend([PROTOCOL_ICMPV6, 255]);
        frame.extend(from.octets());
        frame.extend(destination.octets());
        frame.extend(with_checksum(body, from, destination));
        Ok(frame)
    }

    /// A message about a target, with the sender's address as an option.
    fn target(self, kind: u8, flags: u8, target: Ipv6Addr, option: u8) -> Vec<u8> {
        let mut body = vec![kind, 0, 0, 0, flags, 0, 0, 0];
        body.extend(target.octets());
        body.extend([option, 1]);
        body.extend(self.mac.0);
        body
    }

    fn header(self, destination: Mac, ethernet_type: u16) -> Vec<u8> {
        let mut frame = Vec::with_capacity(96);
        frame.extend(destination.0);
        frame.extend(self.mac.0);
        if let Some(vlan) = self.vlan {
            frame.extend(TYPE_VLAN.to_be_bytes());
            frame.extend(vlan.to_be_bytes());
        }
        frame.extend(ethernet_type.to_be_bytes());
        frame
    }
}

/// Fills in the checksum of ICMPv6 (RFC 4443, 2.3), whose two bytes are zero so far.
fn with_checksum(mut body: Vec<u8>, from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let pseudo = [from.octets(), to.octets()].concat();
    let length = u32::try_from(body.len()).unwrap_or_default();
    let words = pseudo
        .chunks(2)
        .chain(body.chunks(2))
        .map(|pair| match pair {
            [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
            [high] => u32::from(*high) << 8,
            _ => 0,
        });
    let mut sum = words.sum::<u32>() + length + u32::from(PROTOCOL_ICMPV6);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [_, _, high, low] = (!sum).to_be_bytes();
    if let [_, _, first, second, ..] = body.as_mut_slice() {
        (*first, *second) = (high, low);
    }
    body
}

fn ipv4(address: IpAddr) -> Result<Ipv4Addr, FrameError> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(FrameError::NotIpv4(address)),
    }
}

fn ipv6(address: IpAddr) -> Result<Ipv6Addr, FrameError> {
    match address {
        IpAddr::V6(address) => Ok(address),
        IpAddr::V4(_) => Err(FrameError::NotIpv6(address)),
    }
}
