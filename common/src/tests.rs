//! Unit tests: frames built by hand here, the corpus and the oracles in the `tests` crate.

use crate::{
    Bytes, Check, Decision, Kind, NodeAddresses, Notes, OuterTag, Policy, Validate, Verdict,
    classify, wire,
};

mod arp;
mod check;
mod ndp;
mod vlan;

extern crate std;
use std::vec::Vec;

const BRIDGE: [u8; 6] = [0x02, 0x42, 0xac, 0x12, 0x00, 0x0f];
const SENDER: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
const BROADCAST: [u8; 6] = [0xff; 6];
const ALL_NODES: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

const ARP_TYPE: &[u8] = &[0x08, 0x06];
const IPV6_TYPE: &[u8] = &[0x86, 0xdd];

fn policy(gateway_vlan: Option<u16>) -> Policy {
    Policy {
        bridge_mac: BRIDGE,
        gateway_vlan,
        node_addresses: NodeAddresses::NONE,
    }
}

fn verdict_of(frame: &[u8]) -> Verdict {
    classify(&Bytes::from(frame), Some(&policy(None)))
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// An ARP body from `SENDER`.
fn arp_body(operation: u16, sender_ip: [u8; 4], target_ip: [u8; 4]) -> Vec<u8> {
    join(&[
        &[0, 1, 8, 0, 6, 4],
        &operation.to_be_bytes(),
        &SENDER,
        &sender_ip,
        &[0; 6],
        &target_ip,
    ])
}

fn arp_reply() -> Vec<u8> {
    arp_body(2, [172, 18, 0, 1], [172, 18, 0, 3])
}

/// An IPv6 packet whose payload length is that of `payload`, hop limit 255.
fn ipv6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    join(&[
        &[0x60, 0, 0, 0],
        &length.to_be_bytes(),
        &[next, 255],
        &[0xfd; 32],
        payload,
    ])
}

/// An NDP message of `length` bytes, code 0.
fn icmpv6(kind: u8, length: usize) -> Vec<u8> {
    let mut message = std::vec![0; length];
    message[0] = kind;
    message
}

fn advertisement() -> Vec<u8> {
    ipv6_packet(wire::NEXT_ICMPV6, &icmpv6(136, 32))
}

#[test]
fn a_frame_that_is_neither_arp_nor_ndp_is_normal() {
    let ipv4 = join(&[&BRIDGE, &SENDER, &[8, 0], &[0x45; 40]]);
    let rarp = join(&[&BRIDGE, &SENDER, &[0x80, 0x35], &arp_reply()]);
    let tcp = join(&[&BRIDGE, &SENDER, IPV6_TYPE, &ipv6_packet(6, &[0; 20])]);
    let echo = join(&[
        &BRIDGE,
        &SENDER,
        IPV6_TYPE,
        &ipv6_packet(58, &icmpv6(128, 8)),
    ]);
    for frame in [ipv4, rarp, tcp, echo] {
        let expected = Verdict {
            kind: Kind::NotNeighbour,
            decision: Decision::Normal,
            notes: Notes::default(),
        };
        assert_eq!(verdict_of(&frame), expected, "{frame:02x?}");
    }
}

#[test]
fn without_a_policy_kinds_are_told_and_nothing_is_decided() {
    let frame = join(&[&BRIDGE, &SENDER, ARP_TYPE, &arp_reply()]);
    let verdict = classify(&Bytes::from(&frame[..]), None);
    assert_eq!(verdict.kind, Kind::ArpReply);
    assert_eq!(verdict.decision, Decision::Undecided);
}

#[test]
fn every_prefix_of_a_frame_has_a_verdict() {
    let frame = join(&[&BRIDGE, &SENDER, IPV6_TYPE, &advertisement()]);
    for end in 0..frame.len() {
        let verdict = verdict_of(&frame[..end]);
        let is_ndp = end >= wire::ETHERNET_HEADER + wire::IPV6_HEADER + wire::ICMPV6_MIN;
        assert_eq!(verdict.kind == Kind::NeighborAdvertisement, is_ndp, "{end}");
        assert_eq!(verdict.notes.contains(Notes::TRUNCATED), !is_ndp, "{end}");
    }
}

#[test]
fn names_and_numbers_read_back() {
    for (number, kind) in (0..).zip(Kind::ALL) {
        assert_eq!(kind as u8, number);
        assert_eq!(Kind::from_number(number), Some(kind));
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    for (number, decision) in (0..).zip(Decision::ALL) {
        assert_eq!(decision as u8, number);
        assert_eq!(Decision::from_number(number), Some(decision));
        assert_eq!(Decision::from_name(decision.name()), Some(decision));
    }
    for (note, name) in Notes::ALL {
        assert_eq!(Notes::from_name(name), Some(note));
    }
    assert_eq!(Kind::from_number(11), None);
    assert_eq!(Decision::from_number(7), None);
    let both = Notes::TRUNCATED | Notes::ODD_SENDER;
    assert_eq!(std::format!("{both}"), "truncated,odd-sender");
}

#[test]
fn a_packed_verdict_unpacks() {
    let verdict = Verdict {
        kind: Kind::Redirect,
        decision: Decision::SteerRa,
        notes: Notes::ODD_SENDER | Notes::TRUNCATED,
    };
    assert_eq!(Verdict::unpack(verdict.pack()), Some(verdict));
    assert_eq!(Verdict::unpack(u32::MAX), None);
}

#[test]
fn settings_hold_the_policy_that_they_were_made_of() {
    use crate::abi::{Direction, Settings};
    for gateway_vlan in [None, Some(5)] {
        let policy = Policy {
            node_addresses: NodeAddresses::new(
                [172, 18, 0, 3].into(),
                [[0xfd; 16].into(), [0xfe; 16].into()],
            ),
            ..policy(gateway_vlan)
        };
        let settings = Settings::new(Direction::Ingress, Some(&policy), Some(7), Validate::Drop);
        assert_eq!(settings.policy(), Some(policy));
        assert_eq!(settings.validate, Validate::Drop as u8);
    }
    assert_eq!(Settings::default().policy(), None);
    // What plain bpftool and tc load.
    assert_eq!(Settings::default().validate, Validate::default() as u8);
}
