//! IPv6 packets, most of them with a Neighbor Discovery message.

use std::net::Ipv6Addr;

use proptest::{collection::vec, prelude::*};

use super::link::Body;
use crate::frames::{
    BRIDGE_MAC, Extension, HOST_IP6, HOST_MAC, Ipv6, NODE_IP6, Ndp, NdpOption,
    ethernet::ETHERTYPE_IPV6, ipv6, ndp,
};

pub(super) fn packet() -> impl Strategy<Value = Body> {
    let version = prop_oneof![20 => Just(6u8), 1 => 0..16u8];
    let hop_limit = prop_oneof![6 => Just(255u8), 1 => Just(64), 1 => any::<u8>()];
    let protocol = prop_oneof![
        12 => Just(ipv6::ICMPV6),
        1 => prop::sample::select(vec![ipv6::TCP, ipv6::ESP, ipv6::NO_NEXT_HEADER, 17, 135, 140]),
        1 => any::<u8>(),
    ];
    (
        version,
        (address(), address()),
        hop_limit,
        payload_length(),
        extensions().boxed(),
        protocol,
        (message().boxed(), length()),
    )
        .prop_map(
            |(
                version,
                (source, destination),
                hop_limit,
                payload_length,
                extensions,
                protocol,
                (message, length),
            )| {
                let mut payload = message.to_bytes(source, destination);
                if let Some(length) = length {
                    payload.truncate(length);
                }
                Body {
                    ethertype: ETHERTYPE_IPV6,
                    bytes: Ipv6 {
                        version,
                        source,
                        destination,
                        hop_limit,
                        payload_length,
                        extensions,
                        protocol,
                        payload,
                    }
                    .to_bytes(),
                }
            },
        )
}

fn address() -> impl Strategy<Value = Ipv6Addr> {
    prop_oneof![
        3 => Just(HOST_IP6),
        3 => Just(NODE_IP6),
        1 => Just(ndp::ALL_NODES),
        1 => any::<Ipv6Addr>(),
    ]
}

fn payload_length() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![
        16 => Just(None),
        1 => Just(Some(0)),
        2 => (0..80u16).prop_map(Some),
        1 => any::<u16>().prop_map(Some),
    ]
}

fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    let options = prop::sample::select(vec![
        ipv6::HOP_BY_HOP,
        ipv6::ROUTING,
        ipv6::DESTINATION_OPTIONS,
    ]);
    let units = prop_oneof![8 => 0..4u8, 1 => 4..40u8, 1 => Just(255)];
    let extension = prop_oneof![
        8 => (options, units).prop_map(|(number, extra)| Extension::options(number, extra)),
        3 => (0..8u8).prop_map(Extension::authentication),
    ];
    let fragment = prop_oneof![
        2 => Just((0, true)),
        2 => Just((0, false)),
        2 => (0..0x2000u16, any::<bool>()),
    ]
    .prop_map(|(offset, more)| Extension::fragment(offset, more));
    let short = Just(Extension::options(ipv6::DESTINATION_OPTIONS, 0));
    prop_oneof![
        10 => Just(Vec::new()),
        6 => vec(extension.clone(), 1..4),
        // Around the bound of the classifier's walk.
        2 => vec(short, 9..16),
        2 => (vec(extension.clone(), 0..3), fragment, vec(extension, 0..2))
            .prop_map(|(before, fragment, after)| [before, vec![fragment], after].concat()),
    ]
}

fn message() -> impl Strategy<Value = Ndp> {
    let ordinary = prop_oneof![
        3 => Just(Ndp::solicitation(NODE_IP6, HOST_MAC)),
        4 => Just(Ndp::advertisement(HOST_IP6, true, HOST_MAC)),
        1 => Just(Ndp::advertisement(NODE_IP6, false, BRIDGE_MAC)),
        1 => Just(Ndp::advertisement(NODE_IP6, false, HOST_MAC)),
        1 => any::<Ipv6Addr>().prop_map(|target| Ndp::advertisement(target, false, HOST_MAC)),
        1 => Just(Ndp::advertisement(ndp::ALL_NODES, false, HOST_MAC)),
        1 => Just(Ndp::solicitation(ndp::ALL_ROUTERS, HOST_MAC)),
        1 => Just(Ndp::router_solicitation(HOST_MAC)),
        2 => Just(Ndp::router_advertisement(HOST_MAC)),
        1 => Just(Ndp::redirect(HOST_IP6, NODE_IP6, HOST_MAC)),
    ];
    let kind = prop_oneof![14 => Just(None), 1 => any::<u8>().prop_map(Some), 1 => (132..139u8).prop_map(Some)];
    let code = prop_oneof![8 => Just(0u8), 1 => any::<u8>()];
    let options = prop_oneof![4 => Just(None), 1 => vec(option(), 0..4).prop_map(Some)];
    (ordinary, kind, code, options).prop_map(|(ordinary, kind, code, options)| Ndp {
        kind: kind.unwrap_or(ordinary.kind),
        code,
        options: options.unwrap_or(ordinary.options),
        body: ordinary.body,
    })
}

/// An option whose length field need not fit.
fn option() -> impl Strategy<Value = NdpOption> {
    (any::<u8>(), 0..4u8, vec(any::<u8>(), 0..30)).prop_map(|(kind, length, content)| NdpOption {
        kind,
        length,
        content,
    })
}

/// Where the message ends early: within the header, or within the fixed part.
fn length() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![
        10 => Just(None),
        1 => (0..10usize).prop_map(Some),
        1 => (8..42usize).prop_map(Some),
    ]
}
