use std::net::IpAddr;

use neighsteer_common::{Bytes, Decision, Kind, NodeAddresses, Policy, classify};

use super::*;
use crate::audit::{FrameError, Message, Neighbour, TrafficKind, probes};

fn neighbour(message: Message, ip: &str, to: &str, vlan: Option<u16>) -> Neighbour {
    Neighbour {
        message,
        mac: "02:42:ac:12:00:01".parse().unwrap(),
        ip: ip.parse().unwrap(),
        node_mac: BRIDGE_MAC.parse().unwrap(),
        to: to.parse().unwrap(),
        vlan,
    }
}

fn verdict(frame: &[u8], vlan: Option<u16>) -> (Kind, Decision, bool) {
    let mac: crate::ids::Mac = BRIDGE_MAC.parse().unwrap();
    let policy = Policy {
        bridge_mac: mac.0,
        gateway_vlan: vlan,
        node_addresses: NodeAddresses::NONE,
    };
    let verdict = classify(&Bytes::from(frame), Some(&policy));
    (verdict.kind, verdict.decision, verdict.notes.is_empty())
}

#[test]
fn the_classifier_takes_each_message_for_what_it_is_and_finds_nothing_odd() {
    use Message::*;
    let (v4, v6, node4, node6) = ("172.18.0.1", "fd00::1", "172.18.0.3", "fd00::3");
    for (message, ip, to, kind, decision) in [
        (ArpReply, v4, node4, Kind::ArpReply, Decision::SteerArp),
        (ArpRequest, v4, node4, Kind::ArpRequest, Decision::Flood),
        (ArpRequest, v4, v4, Kind::ArpAnnouncement, Decision::Flood),
        (
            NeighborAdvertisement,
            v6,
            node6,
            Kind::NeighborAdvertisement,
            Decision::SteerNa,
        ),
        (
            NeighborAdvertisement,
            v6,
            "ff02::1",
            Kind::NeighborAdvertisement,
            Decision::Flood,
        ),
        (
            NeighborSolicitation,
            v6,
            node6,
            Kind::NeighborSolicitation,
            Decision::Flood,
        ),
        (
            RouterAdvertisement,
            v6,
            "ff02::1",
            Kind::RouterAdvertisement,
            Decision::Flood,
        ),
        (
            RouterAdvertisement,
            v6,
            node6,
            Kind::RouterAdvertisement,
            Decision::SteerRa,
        ),
    ] {
        for vlan in [None, Some(5)] {
            let frame = neighbour(message, ip, to, vlan).to_frame().unwrap();
            let expected = (kind, decision, true);
            assert_eq!(verdict(&frame, vlan), expected, "{message:?} {vlan:?}");
        }
    }
}

#[test]
fn an_address_of_the_other_family_is_refused() {
    let (v4, v6) = ("172.18.0.1", "fd00::1");
    let of = |text: &str| text.parse::<IpAddr>().unwrap();
    let frame = |message, ip, to| neighbour(message, ip, to, None).to_frame();
    assert_eq!(
        frame(Message::ArpReply, v6, v4),
        Err(FrameError::NotIpv4(of(v6)))
    );
    assert_eq!(
        frame(Message::ArpReply, v4, v6),
        Err(FrameError::NotIpv4(of(v6)))
    );
    assert_eq!(
        frame(Message::NeighborSolicitation, v4, v6),
        Err(FrameError::NotIpv6(of(v4)))
    );
}

#[test]
fn the_checksum_is_that_of_icmpv6() {
    let neighbour = neighbour(Message::NeighborAdvertisement, "fd00::1", "fd00::3", None);
    let frame = neighbour.to_frame().unwrap();
    let words = |bytes: &[u8]| -> u32 {
        let words = bytes
            .chunks(2)
            .map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
        words.sum()
    };
    let length = u32::try_from(frame.len() - 54).unwrap();
    let mut sum = words(&frame[22..]) + length + 58;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    assert_eq!(sum, 0xffff);
}

#[test]
fn frames_are_measured_for_the_families_that_the_group_has() {
    use TrafficKind::*;
    let bridge = Bridge::steered();
    let kinds = |group: &BridgeGroup| -> Vec<TrafficKind> {
        probes(group).into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(
        kinds(&bridge.group),
        [UnicastArp, BroadcastArp, UnicastNa, MulticastNa]
    );
    let ipv4_only = Bridge::with(|it| it.addresses = vec!["172.18.0.3/16".to_owned()], &[]);
    assert_eq!(kinds(&ipv4_only.group), [UnicastArp, BroadcastArp]);
    for (kind, frame) in probes(&bridge.group) {
        let (_, decision, clean) = verdict(&frame, None);
        assert!(
            clean && (decision == Decision::Flood) == kind.is_multicast(),
            "{kind}"
        );
    }
}
