//! ARP bodies.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::link::{self, Body};
use crate::frames::{Arp, HOST_IP, NODE_IP, ethernet::ETHERTYPE_ARP};

pub(super) fn body() -> impl Strategy<Value = Body> {
    (packet(), length()).prop_map(|(arp, length)| {
        let mut bytes = arp.to_bytes().to_vec();
        // Ethernet's least payload is 46 bytes; a body may also be short.
        bytes.resize(length.unwrap_or(bytes.len()), 0);
        Body {
            ethertype: ETHERTYPE_ARP,
            bytes,
        }
    })
}

fn length() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![
        6 => Just(None),
        3 => Just(Some(46)),
        2 => (0..28usize).prop_map(Some),
    ]
}

fn packet() -> impl Strategy<Value = Arp> {
    let operation = prop_oneof![
        5 => Just(1u16),
        5 => Just(2u16),
        2 => prop::sample::select(vec![0, 3, 4, 8, 9, 10, 25, 0x0101, 0x0102, 0x0201]),
        1 => any::<u16>(),
    ];
    (
        operation,
        (link::source(), address()),
        (link::source(), address()),
        sizes(),
    )
        .prop_map(|(operation, sender, target, sizes)| Arp {
            hardware_type: sizes.0,
            protocol_type: sizes.1,
            hardware_length: sizes.2,
            protocol_length: sizes.3,
            ..Arp::new(operation, sender, target)
        })
}

fn address() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        4 => Just(HOST_IP),
        3 => Just(NODE_IP),
        2 => Just(Ipv4Addr::UNSPECIFIED),
        1 => any::<Ipv4Addr>(),
    ]
}

/// Hardware type, protocol type, their address lengths: one of the four may be odd.
fn sizes() -> impl Strategy<Value = (u16, u16, u8, u8)> {
    prop_oneof![
        12 => Just((1, 0x0800, 6, 4)),
        1 => any::<u16>().prop_map(|odd| (odd, 0x0800, 6, 4)),
        1 => any::<u16>().prop_map(|odd| (1, odd, 6, 4)),
        1 => any::<u8>().prop_map(|odd| (1, 0x0800, odd, 4)),
        1 => any::<u8>().prop_map(|odd| (1, 0x0800, 6, odd)),
        // InfiniBand (RFC 4391) has 20-byte hardware addresses.
        1 => Just((32, 0x0800, 20, 4)),
    ]
}
