//! IPv6: header, extension headers, fragments (RFC 8200).

use std::net::Ipv6Addr;

use etherparse::{IpNumber, Ipv6Header};

use super::{EthernetFrame, Framing, Mac, ethernet::ETHERTYPE_IPV6};

/// Next header: hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Next header: TCP.
pub const TCP: u8 = 6;
/// Next header: routing.
pub const ROUTING: u8 = 43;
/// Next header: fragment.
pub const FRAGMENT: u8 = 44;
/// Next header: encapsulating security payload.
pub const ESP: u8 = 50;
/// Next header: authentication header.
pub const AUTHENTICATION: u8 = 51;
/// Next header: ICMPv6.
pub const ICMPV6: u8 = 58;
/// Next header: nothing follows.
pub const NO_NEXT_HEADER: u8 = 59;
/// Next header: destination options.
pub const DESTINATION_OPTIONS: u8 = 60;

/// One extension header: the number that announces it and its bytes, whose first one (the next
/// header) is filled in when the packet is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The next-header value that leads to it.
    pub number: u8,
    /// The whole header.
    pub bytes: Vec<u8>,
}

impl Extension {
    /// Hop-by-hop options, destination options or a routing header of `8 + 8 * extra` bytes, its
    /// content padding (PadN) or zero.
    #[must_use]
    pub fn options(number: u8, extra: u8) -> Self {
        let length = 8 + 8 * usize::from(extra);
        let mut bytes = vec![0; length];
        bytes[1] = extra;
        if number != ROUTING {
            bytes[2] = 1;
            bytes[3] = u8::try_from(length - 4).unwrap_or(u8::MAX);
        }
        Self { number, bytes }
    }

    /// An authentication header (RFC 4302) of `4 * (length_field + 2)` bytes; 4 is usual (96 bits of
    /// check value), and below 1 its own fixed fields do not fit.
    #[must_use]
    pub fn authentication(length_field: u8) -> Self {
        let mut bytes = vec![0; (usize::from(length_field) + 2) * 4];
        bytes[1] = length_field;
        Self {
            number: AUTHENTICATION,
            bytes,
        }
    }

    /// A fragment header; `offset` in units of 8 bytes.
    #[must_use]
    pub fn fragment(offset: u16, more: bool) -> Self {
        let field = (offset << 3) | u16::from(more);
        let mut bytes = vec![0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78];
        bytes[2..4].copy_from_slice(&field.to_be_bytes());
        Self {
            number: FRAGMENT,
            bytes,
        }
    }
}

/// One IPv6 packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// The version nibble, 6.
    pub version: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Hop limit.
    pub hop_limit: u8,
    /// The payload length field; `None` is the true one.
    pub payload_length: Option<u16>,
    /// Extension headers, in order.
    pub extensions: Vec<Extension>,
    /// The number of what follows the extension headers.
    pub protocol: u8,
    /// What follows them.
    pub payload: Vec<u8>,
}

impl Ipv6 {
    /// The same packet with one more extension header, innermost.
    #[must_use]
    pub fn with(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }

    /// The bytes of the packet.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let true_length =
            self.payload.len() + self.extensions.iter().map(|e| e.bytes.len()).sum::<usize>();
        let numbers: Vec<u8> = self
            .extensions
            .iter()
            .map(|extension| extension.number)
            .chain([self.protocol])
            .collect();
        let mut bytes = Ipv6Header {
            payload_length: self
                .payload_length
                .unwrap_or_else(|| u16::try_from(true_length).unwrap_or(u16::MAX)),
            next_header: IpNumber(numbers[0]),
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
            ..Ipv6Header::default()
        }
        .to_bytes()
        .to_vec();
        bytes[0] = (self.version << 4) | (bytes[0] & 0x0f);
        for (extension, next) in self.extensions.iter().zip(&numbers[1..]) {
            let start = bytes.len();
            bytes.extend_from_slice(&extension.bytes);
            if let Some(first) = bytes.get_mut(start) {
                *first = *next;
            }
        }
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// In a frame.
    #[must_use]
    pub fn frame(&self, source: Mac, destination: Mac) -> EthernetFrame {
        EthernetFrame {
            destination,
            source,
            tags: Vec::new(),
            framing: Framing::Type(ETHERTYPE_IPV6),
            payload: self.to_bytes(),
        }
    }
}
