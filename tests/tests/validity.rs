//! What is dropped is invalid by RFC 4861 and RFC 6980, and what is valid by them is never dropped:
//! held against a reading of their rules that knows nothing of the classifier.

use std::{cell::Cell, net::Ipv6Addr};

use etherparse::{Icmpv6Slice, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use neighsteer_common::{Bytes, Kind, Notes, Verdict, classify};
use neighsteer_tests::{
    corpus,
    frames::{
        BRIDGE_MAC, EthernetFrame, Extension, HOST_IP6, HOST_MAC, Mac, NODE_IP6, Ndp, NdpOption,
        Tag, ipv6, ndp,
    },
    generate,
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, FileFailurePersistence, TestRunner},
};

/// Where seeds of failures are kept, to be tried first ever after.
const SEEDS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/proptest-regressions/validity.txt"
);

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(SEEDS))),
        ..Config::default()
    })
}

fn verdict(frame: &[u8]) -> Verdict {
    classify(&Bytes::from(frame), None)
}

/// The rules of RFC 4861 (6.1.1, 6.1.2, 7.1.1, 7.1.2, 8.1) and RFC 6980 (5) that a frame breaks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Broken {
    hop_limit: bool,
    code: bool,
    length: bool,
    target: bool,
    fragment: bool,
}

impl Broken {
    /// As they are named in a verdict.
    fn notes(&self) -> Notes {
        [
            (self.hop_limit, Notes::HOP_LIMIT_NOT_255),
            (self.code, Notes::CODE_NOT_ZERO),
            (self.length, Notes::TOO_SHORT),
            (self.target, Notes::MULTICAST_TARGET),
            (self.fragment, Notes::FRAGMENTED_NDP),
        ]
        .into_iter()
        .filter_map(|(broken, note)| broken.then_some(note))
        .fold(Notes::default(), |all, note| all | note)
    }
}

/// What a receiver that follows the standards finds in a frame.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    /// No Neighbor Discovery message, or none that it could get at.
    NotNdp,
    /// One, which breaks these rules, if any.
    Ndp(Broken),
}

fn read(frame: &[u8]) -> Read {
    let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else {
        return Read::NotNdp;
    };
    let Some(LaxNetSlice::Ipv6(ip)) = &packet.net else {
        return Read::NotNdp;
    };
    // A fault that other standards forbid: nobody gets behind it.
    if packet.stop_err.is_some() {
        return Read::NotNdp;
    }
    let mut fragment = false;
    for extension in ip.extensions().clone() {
        if let Ipv6ExtensionSlice::Fragment(header) = extension {
            fragment = true;
            if header.fragment_offset().value() != 0 {
                return Read::NotNdp;
            }
        }
    }
    let payload = ip.payload();
    if payload.ip_number.0 != 58 || ip.header().payload_length() == 0 {
        return Read::NotNdp;
    }
    // By RFC 6980 it is enough that a fragment shows the type.
    let Some(kind @ 133..=137) = payload.payload.first() else {
        return Read::NotNdp;
    };
    if fragment {
        return Read::Ndp(Broken {
            fragment,
            ..Broken::default()
        });
    }
    let message = payload.payload;
    // Without a whole header it has no code to speak of.
    let Ok(icmp) = Icmpv6Slice::from_slice(message) else {
        return Read::Ndp(Broken {
            length: true,
            ..Broken::default()
        });
    };
    let least = match kind {
        133 => 8,
        134 => 16,
        135 | 136 => 24,
        _ => 40,
    };
    let length = message.len() < least;
    let target = message.get(8..24).map(|octets| {
        let octets: [u8; 16] = octets.try_into().unwrap();
        Ipv6Addr::from(octets)
    });
    Read::Ndp(Broken {
        hop_limit: ip.header().hop_limit() != 255,
        code: icmp.code_u8() != 0,
        length,
        target: matches!(kind, 135 | 136)
            && !length
            && target.is_some_and(|target| target.is_multicast()),
        fragment,
    })
}

/// The frame with its LLC/SNAP header, at which etherparse does not look, made a type again.
fn without_snap(frame: &[u8]) -> Vec<u8> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xa8])) {
        at += 4;
    }
    match frame.get(at..at + 10) {
        Some([0..=5, _, 0xaa, 0xaa, _, 0, 0, 0, _, _]) => [&frame[..at], &frame[at + 8..]].concat(),
        _ => frame.to_vec(),
    }
}

/// Whether a receiver would not get as far as RFC 4861 in this frame, for a fault that other
/// standards forbid: then nobody needs it either.
fn is_refused_earlier(frame: &[u8]) -> bool {
    let packet = LaxSlicedPacket::from_ethernet(frame).unwrap();
    packet.stop_err.is_some()
        || match &packet.net {
            // RFC 8200, 3: without a payload there is no message.
            Some(LaxNetSlice::Ipv6(ip)) => {
                ip.header().payload_length() == 0 || ip.payload().payload.is_empty()
            }
            _ => false,
        }
}

#[test]
fn what_is_dropped_breaks_a_rule_and_what_breaks_one_is_dropped() {
    let [dropped, refused, ndp] = [0; 3].map(Cell::new);
    runner(30_000)
        .run(&generate::frame(), |frame| {
            let verdict = verdict(&frame);
            match read(&without_snap(&frame)) {
                Read::Ndp(broken) => {
                    ndp.update(|count| count + 1);
                    // Beyond the bounds of the classifier's reading nothing is dropped.
                    let bounded = verdict.kind == Kind::NotNeighbour
                        && !verdict.notes.contains(Notes::FRAGMENTED);
                    let invalid = Notes(verdict.notes.0 & Notes::INVALID.0);
                    if !bounded {
                        prop_assert_eq!(invalid, broken.notes(), "{:?}", broken);
                    } else {
                        prop_assert!(!verdict.is_invalid());
                    }
                    dropped.update(|count| count + u32::from(verdict.is_invalid()));
                }
                Read::NotNdp if verdict.is_invalid() => {
                    refused.update(|count| count + 1);
                    prop_assert!(is_refused_earlier(&without_snap(&frame)), "{:?}", verdict);
                }
                Read::NotNdp => {}
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let [dropped, refused, ndp] = [dropped, refused, ndp].map(Cell::into_inner);
    assert!(ndp > 5_000 && dropped > 2_000, "{ndp} {dropped}");
    assert!(refused < dropped / 2, "{refused} {dropped}");
}

/// NDP as RFC 4861 wants it: five types, options of whole units, any extension headers but a fragment
/// header, tagged or not.
fn valid() -> impl Strategy<Value = Vec<u8>> {
    let unicast = any::<[u8; 16]>().prop_map(|mut octets| {
        octets[0] = 0x20 | octets[0] & 0x1f;
        Ipv6Addr::from(octets)
    });
    let target = prop_oneof![Just(NODE_IP6), Just(HOST_IP6), unicast];
    let message = (target, any::<bool>()).prop_flat_map(|(target, solicited)| {
        prop_oneof![
            Just(Ndp::solicitation(target, HOST_MAC)),
            Just(Ndp::advertisement(target, solicited, HOST_MAC)),
            Just(Ndp::router_solicitation(HOST_MAC)),
            Just(Ndp::router_advertisement(HOST_MAC)),
            Just(Ndp::redirect(target, NODE_IP6, HOST_MAC)),
        ]
    });
    let option = (any::<u8>(), 1..4u8).prop_flat_map(|(kind, length)| {
        vec(any::<u8>(), usize::from(length) * 8 - 2).prop_map(move |content| NdpOption {
            kind,
            length,
            content,
        })
    });
    let destination = prop_oneof![
        Just((BRIDGE_MAC, NODE_IP6)),
        Just((Mac([0x33, 0x33, 0, 0, 0, 1]), ndp::ALL_NODES)),
        Just((HOST_MAC, HOST_IP6)),
    ];
    let later = prop_oneof![
        (0..4u8).prop_map(|extra| Extension::options(ipv6::DESTINATION_OPTIONS, extra)),
        (0..4u8).prop_map(|extra| Extension::options(ipv6::ROUTING, extra)),
        (2..8u8).prop_map(Extension::authentication),
    ];
    // Hop-by-hop options are the first, and once there at most.
    let first =
        prop::option::of((0..4u8).prop_map(|extra| Extension::options(ipv6::HOP_BY_HOP, extra)));
    let extensions = prop_oneof![
        3 => Just(Vec::new()),
        1 => (first, vec(later, 0..11)).prop_map(|(first, later)| {
            first.into_iter().chain(later).collect()
        }),
    ];
    let tags = vec((any::<bool>(), any::<u16>()), 0..3);
    let padding = prop_oneof![Just(0..1), Just(1..60usize)].prop_flat_map(|range| range);
    (
        message.boxed(),
        vec(option, 0..4).boxed(),
        destination.boxed(),
        extensions.boxed(),
        tags.boxed(),
        padding.boxed(),
    )
        .prop_map(|(message, options, (mac, ip), extensions, tags, padding)| {
            let packet = Ndp {
                options: [message.options.clone(), options].concat(),
                ..message
            }
            .packet(HOST_IP6, ip);
            let frame = ipv6::Ipv6 {
                extensions,
                ..packet
            }
            .frame(HOST_MAC, mac);
            let mut bytes = EthernetFrame {
                tags: tags
                    .into_iter()
                    .map(|(service, tci)| Tag {
                        tpid: if service { 0x88a8 } else { 0x8100 },
                        tci,
                    })
                    .collect(),
                ..frame
            }
            .to_bytes();
            bytes.resize(bytes.len() + padding, 0xff);
            bytes
        })
}

#[test]
fn valid_ndp_is_never_dropped() {
    runner(20_000)
        .run(&valid(), |frame| {
            let verdict = verdict(&frame);
            prop_assert!(!verdict.is_invalid(), "{:?}", verdict);
            prop_assert_ne!(verdict.kind, Kind::NotNeighbour);
            // The frames are what they are said to be.
            prop_assert_eq!(read(&frame), Read::Ndp(Broken::default()));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn arp_and_what_is_not_ndp_are_never_dropped() {
    for entry in corpus::load().unwrap() {
        let frame = entry.case.on_the_wire();
        let verdict = verdict(&frame);
        if verdict.is_invalid() && !is_refused_earlier(&without_snap(&frame)) {
            let found = read(&without_snap(&frame));
            assert!(matches!(found, Read::Ndp(_)), "{}: {found:?}", entry.name);
        }
        if verdict.kind.name().starts_with("arp") {
            assert!(!verdict.is_invalid(), "{}", entry.name);
        }
    }
}
