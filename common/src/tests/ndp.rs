use super::*;

fn ndp(destination: [u8; 6], packet: &[u8]) -> Verdict {
    verdict_of(&join(&[&destination, &SENDER, IPV6_TYPE, packet]))
}

/// ICMPv6 behind `count` extension headers of one type.
fn behind(next: u8, header: &[u8], count: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    for index in 0..count {
        let following = if index + 1 == count { 58 } else { next };
        payload.push(following);
        payload.extend_from_slice(&header[1..]);
    }
    payload.extend_from_slice(&icmpv6(136, 32));
    ipv6_packet(if count == 0 { 58 } else { next }, &payload)
}

#[test]
fn type_makes_kind_and_decision() {
    for (number, length, kind, decision) in [
        (133, 8, Kind::RouterSolicitation, Decision::Normal),
        (134, 16, Kind::RouterAdvertisement, Decision::SteerRa),
        (135, 24, Kind::NeighborSolicitation, Decision::SteerNs),
        (136, 24, Kind::NeighborAdvertisement, Decision::SteerNa),
        (137, 40, Kind::Redirect, Decision::Normal),
    ] {
        let packet = ipv6_packet(58, &icmpv6(number, length));
        let expected = Verdict {
            kind,
            decision,
            notes: Notes::default(),
        };
        assert_eq!(ndp(BRIDGE, &packet), expected);
        assert_eq!(ndp(ALL_NODES, &packet).decision, Decision::Flood);
        assert_eq!(ndp(SENDER, &packet).decision, Decision::Normal);
        // RS has no byte to lose: its fixed part is the least that OVS takes.
        if length > wire::ICMPV6_MIN {
            let packet = ipv6_packet(58, &icmpv6(number, length - 1));
            let verdict = ndp(BRIDGE, &packet);
            assert_eq!((verdict.kind, verdict.decision), (kind, decision));
            assert_eq!(verdict.notes, Notes::TOO_SHORT);
        }
    }
}

#[test]
fn fewer_than_eight_bytes_of_icmpv6_are_not_ndp() {
    let verdict = ndp(BRIDGE, &ipv6_packet(58, &icmpv6(136, 7)));
    assert_eq!(verdict.kind, Kind::NotNeighbour);
    assert_eq!(verdict.notes, Notes::TRUNCATED);
    let verdict = ndp(BRIDGE, &ipv6_packet(58, &icmpv6(136, 8)));
    assert_eq!(verdict.decision, Decision::SteerNa);
    assert_eq!(verdict.notes, Notes::TOO_SHORT);
}

#[test]
fn hop_limit_and_code_are_noted_and_change_nothing() {
    let mut packet = advertisement();
    packet[7] = 64;
    packet[41] = 1;
    let verdict = ndp(BRIDGE, &packet);
    assert_eq!(verdict.decision, Decision::SteerNa);
    let expected = Notes::HOP_LIMIT_NOT_255 | Notes::CODE_NOT_ZERO;
    assert_eq!(verdict.notes, expected);
}

#[test]
fn the_payload_length_hides_nothing() {
    for length in [0u16, 4, 9000] {
        let mut packet = advertisement();
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        let verdict = ndp(BRIDGE, &packet);
        assert_eq!(verdict.decision, Decision::SteerNa);
        let short = length < 24;
        assert_eq!(verdict.notes.contains(Notes::TOO_SHORT), short, "{length}");
    }
}

#[test]
fn extension_headers_are_walked_up_to_the_bound() {
    let options = [0, 0, 1, 4, 0, 0, 0, 0];
    let long = {
        let mut header = std::vec![0; 2048];
        header[1] = 255;
        header
    };
    let authentication = [0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
        .into_iter()
        .chain([0; 12])
        .collect::<Vec<u8>>();
    for (next, header) in [
        (wire::NEXT_HOP_BY_HOP, &options[..]),
        (wire::NEXT_ROUTING, &options[..]),
        (wire::NEXT_DESTINATION, &options[..]),
        (wire::NEXT_DESTINATION, &long[..]),
        (wire::NEXT_AUTHENTICATION, &authentication[..]),
    ] {
        for count in [0, 1, 2, wire::MAX_EXTENSION_HEADERS] {
            let verdict = ndp(BRIDGE, &behind(next, header, count));
            assert_eq!(verdict.decision, Decision::SteerNa, "{next} × {count}");
            assert!(verdict.notes.is_empty(), "{next} × {count}");
        }
        let verdict = ndp(
            BRIDGE,
            &behind(next, header, wire::MAX_EXTENSION_HEADERS + 1),
        );
        assert_eq!(verdict.kind, Kind::NotNeighbour);
        assert_eq!(verdict.notes, Notes::TOO_MANY_EXTENSION_HEADERS);
    }
}

#[test]
fn a_fragment_is_not_ndp_even_an_atomic_one() {
    for offset_and_flags in [[0, 0], [0, 1], [0, 8], [0, 9]] {
        let header = [&[0, 0][..], &offset_and_flags, &[0, 0, 0, 7]].concat();
        let verdict = ndp(BRIDGE, &behind(wire::NEXT_FRAGMENT, &header, 1));
        assert_eq!(verdict.kind, Kind::NotNeighbour);
        assert_eq!(verdict.decision, Decision::Normal);
        let later = offset_and_flags[1] >= 8;
        let ndp = if later {
            Notes::default()
        } else {
            Notes::FRAGMENTED_NDP
        };
        assert_eq!(verdict.notes, Notes::FRAGMENTED | ndp);
    }
}

#[test]
fn unknown_extension_headers_end_the_walk() {
    // No next header, mobility, HIP, shim6, ESP.
    for next in [59, 135, 139, 140, 50] {
        let verdict = ndp(BRIDGE, &behind(next, &[0; 8], 1));
        assert_eq!(verdict.kind, Kind::NotNeighbour, "{next}");
        assert!(verdict.notes.is_empty());
    }
}

#[test]
fn llc_snap_ndp_is_ndp() {
    let header = [0, 80, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd];
    let verdict = verdict_of(&join(&[&BRIDGE, &SENDER, &header, &advertisement()]));
    assert_eq!(verdict.decision, Decision::SteerNa);
}
