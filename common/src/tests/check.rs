use super::*;
use crate::abi::CheckCounts;

const NODE_IPV4: [u8; 4] = [172, 18, 0, 3];
const NODE_IPV6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];

fn ndp(packet: &[u8]) -> Verdict {
    verdict_of(&join(&[&BRIDGE, &SENDER, IPV6_TYPE, packet]))
}

/// Neighbor Advertisement or Solicitation with a target and options.
fn about(kind: u8, target: [u8; 16], options: &[u8]) -> Vec<u8> {
    join(&[&[kind, 0, 0, 0, 0x60, 0, 0, 0], &target, options])
}

fn check_of(note: Notes) -> Check {
    Check::ALL.into_iter().find(|it| it.note() == note).unwrap()
}

#[test]
fn every_check_has_a_note_of_its_own_and_is_of_invalid_or_of_suspicious_frames() {
    let mut all = Notes::default();
    for check in Check::ALL {
        assert!(!all.intersects(check.note()), "{check}");
        all |= check.note();
        let suspicious = Notes::SUSPICIOUS.contains(check.note());
        assert_eq!(check.is_of_invalid_frames(), !suspicious, "{check}");
    }
    assert_eq!(all, Notes::INVALID | Notes::SUSPICIOUS);
}

#[test]
fn each_note_is_counted_by_its_check_alone() {
    for (note, name) in Notes::ALL {
        let mut counts = CheckCounts::default();
        counts.count(note, false);
        for check in Check::ALL {
            let expected = u64::from(check.note() == note);
            assert_eq!(counts.failed(check), expected, "{name} {check}");
        }
        assert_eq!(counts.dropped, 0);
    }
    let mut counts = CheckCounts::default();
    counts.count(Notes::TOO_SHORT | Notes::ODD_SENDER, true);
    counts.add(&counts.clone());
    assert_eq!(counts.failed(check_of(Notes::TOO_SHORT)), 2);
    assert_eq!(counts.failed(check_of(Notes::ODD_SENDER)), 2);
    assert_eq!(counts.dropped, 2);
}

#[test]
fn a_multicast_target_is_invalid_in_a_solicitation_and_an_advertisement() {
    let mut group = NODE_IPV6;
    group[0] = 0xff;
    for kind in [135, 136] {
        let verdict = ndp(&ipv6_packet(58, &about(kind, group, &[])));
        assert_eq!(verdict.notes, Notes::MULTICAST_TARGET, "{kind}");
        assert!(verdict.is_invalid());
        let verdict = ndp(&ipv6_packet(58, &about(kind, NODE_IPV6, &[])));
        assert!(verdict.notes.is_empty(), "{kind}");
        // Of a message that is too short the target is not looked at.
        let verdict = ndp(&ipv6_packet(58, &about(kind, group, &[])[..23]));
        assert_eq!(verdict.notes, Notes::TOO_SHORT, "{kind}");
    }
    // These have other fields there: reachable time, and a target by another rule.
    for kind in [134, 137] {
        let verdict = ndp(&ipv6_packet(58, &about(kind, group, &[0; 16])));
        assert!(verdict.notes.is_empty(), "{kind}");
    }
}

#[test]
fn first_and_atomic_fragments_with_an_ndp_type_are_invalid_and_later_ones_are_not() {
    let fragment = |next, offset_and_flags: u16, rest: &[u8]| {
        let [high, low] = offset_and_flags.to_be_bytes();
        let payload = join(&[&[next, 0, high, low, 0, 0, 0, 7], rest]);
        ndp(&ipv6_packet(wire::NEXT_FRAGMENT, &payload))
    };
    let ndp_inside = Notes::FRAGMENTED | Notes::FRAGMENTED_NDP;
    for kind in 133..=137 {
        for offset_and_flags in [0, 1, 6] {
            let verdict = fragment(58, offset_and_flags, &icmpv6(kind, 24));
            assert_eq!(verdict.notes, ndp_inside, "{kind} {offset_and_flags:#x}");
            assert_eq!(verdict.kind, Kind::NotNeighbour, "to the flows");
            assert!(verdict.is_invalid());
        }
        assert_eq!(fragment(58, 0, &[kind]).notes, ndp_inside, "one byte");
        for offset_and_flags in [8, 9, 0xfff8] {
            let verdict = fragment(58, offset_and_flags, &icmpv6(kind, 24));
            assert_eq!(verdict.notes, Notes::FRAGMENTED, "{offset_and_flags:#x}");
        }
    }
    for (next, rest) in [(58, 128), (58, 132), (58, 138), (6, 136), (17, 136)] {
        let verdict = fragment(next, 1, &icmpv6(rest, 24));
        assert_eq!(verdict.notes, Notes::FRAGMENTED, "{next} {rest}");
    }
    let options = join(&[&[58, 0, 1, 4, 0, 0, 0, 0], &icmpv6(136, 24)]);
    let verdict = fragment(wire::NEXT_DESTINATION, 1, &options);
    assert_eq!(verdict.notes, ndp_inside, "behind options");
    let twice = join(&[&[58, 0, 0, 1, 0, 0, 0, 8], &icmpv6(136, 24)]);
    let verdict = fragment(wire::NEXT_FRAGMENT, 0, &twice);
    assert_eq!(verdict.notes, ndp_inside, "two fragment headers");
    let verdict = fragment(wire::NEXT_DESTINATION, 1, &options[..1]);
    assert_eq!(verdict.notes, Notes::FRAGMENTED, "cut");
}

#[test]
fn what_padding_looks_like_is_not_fragmented_ndp() {
    let mut packet = ipv6_packet(wire::NEXT_FRAGMENT, &[58, 0, 0, 0, 0, 0, 0, 7]);
    packet.extend([136; 24]);
    assert_eq!(ndp(&packet).notes, Notes::FRAGMENTED);
}

/// A policy that knows addresses of the node.
fn knowing(gateway_vlan: Option<u16>) -> Policy {
    Policy {
        node_addresses: NodeAddresses::new(NODE_IPV4.into(), [[0xfd; 16].into(), NODE_IPV6.into()]),
        ..policy(gateway_vlan)
    }
}

fn is_announced(frame: &[u8], policy: &Policy) -> bool {
    let verdict = classify(&Bytes::from(frame), Some(policy));
    assert!(!verdict.is_invalid(), "suspicious at most");
    verdict.notes.contains(Notes::NODE_ADDRESS_ANNOUNCED)
}

#[test]
fn arp_that_claims_a_node_address_for_another_mac_is_noted() {
    let other = [172, 18, 0, 1];
    let known = knowing(None);
    for destination in [BRIDGE, BROADCAST] {
        let arp = |operation, sender, target| {
            let body = arp_body(operation, sender, target);
            join(&[&destination, &SENDER, ARP_TYPE, &body])
        };
        for (operation, sender, target, expected) in [
            (1, NODE_IPV4, other, true),
            (1, NODE_IPV4, NODE_IPV4, true),
            (2, NODE_IPV4, other, true),
            (1, other, NODE_IPV4, false),
            (2, other, NODE_IPV4, false),
            // A probe asks whether somebody has the address, and claims nothing.
            (1, [0; 4], NODE_IPV4, false),
        ] {
            let frame = arp(operation, sender, target);
            assert_eq!(is_announced(&frame, &known), expected, "{frame:02x?}");
            assert!(!is_announced(&frame, &policy(None)), "no address is known");
        }
        let mut ours = arp(2, NODE_IPV4, other);
        ours[22..28].copy_from_slice(&BRIDGE);
        assert!(!is_announced(&ours, &known), "the bridge itself");
        let none_known = policy(None);
        assert!(!is_announced(&arp(2, [0; 4], other), &none_known));
    }
}

#[test]
fn advertisements_of_a_node_address_from_another_mac_are_noted() {
    let known = knowing(None);
    let advertisement = |source: [u8; 6], target, options: &[u8]| {
        let packet = ipv6_packet(58, &about(136, target, options));
        join(&[&ALL_NODES, &source, IPV6_TYPE, &packet])
    };
    let option = |mac: [u8; 6]| join(&[&[2, 1], &mac]);
    for (source, target, options, expected) in [
        (SENDER, NODE_IPV6, Vec::new(), true),
        (SENDER, [0xfd; 16], option(SENDER), true),
        (SENDER, [0xfc; 16], option(SENDER), false),
        (SENDER, [0; 16], Vec::new(), false),
        (BRIDGE, NODE_IPV6, Vec::new(), false),
        (BRIDGE, NODE_IPV6, option(BRIDGE), false),
        (BRIDGE, NODE_IPV6, option(SENDER), true),
    ] {
        let frame = advertisement(source, target, &options);
        assert_eq!(is_announced(&frame, &known), expected, "{frame:02x?}");
        assert!(!is_announced(&frame, &policy(None)));
    }
    for kind in [133, 134, 135, 137] {
        let packet = ipv6_packet(58, &about(kind, NODE_IPV6, &[0; 16]));
        let frame = join(&[&ALL_NODES, &SENDER, IPV6_TYPE, &packet]);
        assert!(!is_announced(&frame, &known), "{kind} announces no address");
    }
    let behind = ipv6_packet(
        wire::NEXT_DESTINATION,
        &join(&[&[58, 0, 1, 4, 0, 0, 0, 0], &about(136, NODE_IPV6, &[])]),
    );
    let frame = join(&[&ALL_NODES, &SENDER, IPV6_TYPE, &behind]);
    assert!(is_announced(&frame, &known), "behind options");
}

#[test]
fn node_addresses_are_those_of_the_gateway_vlan_alone() {
    let body = arp_body(2, NODE_IPV4, [172, 18, 0, 1]);
    for (tags, without, with) in [
        (&[][..], true, false),
        (&[0x81, 0, 0, 0], true, false),
        (&[0x81, 0, 0xe0, 5], false, true),
        (&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], false, true),
        (&[0x81, 0, 0, 7], false, false),
    ] {
        let frame = join(&[&BRIDGE, &SENDER, tags, ARP_TYPE, &body]);
        assert_eq!(is_announced(&frame, &knowing(None)), without, "{tags:?}");
        assert_eq!(is_announced(&frame, &knowing(Some(5))), with, "{tags:?}");
    }
}
