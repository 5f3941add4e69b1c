//! Plain traffic: what the datapath must let pass at no cost.

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::PacketBuilder;

use super::Mac;

/// A TCP segment over IPv4 with `payload` bytes of zeroes.
#[must_use]
pub fn tcp_ipv4(from: (Mac, Ipv4Addr), to: (Mac, Ipv4Addr), payload: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(from.0.0, to.0.0)
        .ipv4(from.1.octets(), to.1.octets(), 64)
        .tcp(40_000, 443, 1, 65_000);
    let mut frame = Vec::with_capacity(builder.size(payload));
    builder
        .write_to_vec(&mut frame, &vec![0; payload])
        .expect("the payload of a test frame fits into a packet");
    frame
}

/// A TCP segment over IPv6 with `payload` bytes of zeroes.
#[must_use]
pub fn tcp_ipv6(from: (Mac, Ipv6Addr), to: (Mac, Ipv6Addr), payload: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(from.0.0, to.0.0)
        .ipv6(from.1.octets(), to.1.octets(), 64)
        .tcp(40_000, 443, 1, 65_000);
    let mut frame = Vec::with_capacity(builder.size(payload));
    builder
        .write_to_vec(&mut frame, &vec![0; payload])
        .expect("the payload of a test frame fits into a packet");
    frame
}
