use super::*;

/// An ARP reply to the bridge behind tags `(tpid, tci)`.
fn tagged(tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = join(&[&BRIDGE, &SENDER]);
    for (tpid, tci) in tags {
        frame.extend_from_slice(&tpid.to_be_bytes());
        frame.extend_from_slice(&tci.to_be_bytes());
    }
    frame.extend_from_slice(ARP_TYPE);
    frame.extend_from_slice(&arp_reply());
    frame
}

/// The same frame as XDP and as tc see it: the outer tag in the frame, or beside it.
fn decisions(tags: &[(u16, u16)], gateway_vlan: Option<u16>) -> (Verdict, Verdict) {
    let policy = policy(gateway_vlan);
    let in_frame = classify(&Bytes::from(&tagged(tags)[..]), Some(&policy));
    let beside = match tags {
        [] => in_frame,
        [(tpid, tci), inner @ ..] => classify(
            &Bytes {
                frame: &tagged(inner),
                outer_tag: Some(OuterTag {
                    tpid: *tpid,
                    tci: *tci,
                }),
            },
            Some(&policy),
        ),
    };
    (in_frame, beside)
}

#[test]
fn a_tag_beside_the_frame_counts_like_one_in_it() {
    const PRIORITY: u16 = 0xe000;
    let customer = 0x8100;
    let service = 0x88a8;
    let steered = Decision::SteerArp;
    let normal = Decision::Normal;
    for (tags, any, five) in [
        (&[][..], steered, normal),
        (&[(customer, 0)], steered, normal),
        (&[(customer, PRIORITY)], steered, normal),
        (&[(customer, 5)], steered, steered),
        (&[(service, PRIORITY | 5)], steered, steered),
        (&[(customer, 7)], steered, normal),
        (&[(service, 5), (customer, 9)], steered, steered),
        (&[(customer, 5), (customer, 0)], steered, steered),
        (&[(customer, 7), (service, 5)], steered, normal),
        (
            &[(customer, 5), (customer, 5), (customer, 5)],
            normal,
            normal,
        ),
        (&[(0x9100, 5)], normal, normal),
        (&[(customer, 5), (0x9100, 5)], normal, normal),
    ] {
        for (gateway_vlan, expected) in [(None, any), (Some(5), five)] {
            // The kernel takes only 0x8100 and 0x88a8 off.
            let (in_frame, beside) = decisions(tags, gateway_vlan);
            assert_eq!(in_frame.decision, expected, "{tags:x?} {gateway_vlan:?}");
            if tags.first().is_none_or(|(tpid, _)| *tpid != 0x9100) {
                assert_eq!(beside, in_frame, "{tags:x?} {gateway_vlan:?}");
            }
        }
    }
}

#[test]
fn a_frame_that_ends_inside_its_tags_is_truncated() {
    let frame = tagged(&[(0x8100, 5), (0x8100, 6)]);
    for end in 14..22 {
        let verdict = verdict_of(&frame[..end]);
        assert_eq!(verdict.kind, Kind::NotNeighbour, "{end}");
        assert_eq!(verdict.notes, Notes::TRUNCATED, "{end}");
    }
    assert_eq!(verdict_of(&frame[..22]).kind, Kind::ArpOther);
}

#[test]
fn ndp_and_llc_snap_are_found_behind_tags() {
    let tags = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6];
    let snap = [0, 80, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd];
    for frame in [
        join(&[&BRIDGE, &SENDER, &tags, IPV6_TYPE, &advertisement()]),
        join(&[&BRIDGE, &SENDER, &tags, &snap, &advertisement()]),
    ] {
        let verdict = classify(&Bytes::from(&frame[..]), Some(&policy(Some(5))));
        assert_eq!(verdict.decision, Decision::SteerNa);
    }
}

#[test]
fn multicast_is_flooded_in_any_vlan() {
    let mut frame = tagged(&[(0x8100, 7)]);
    frame[..6].copy_from_slice(&BROADCAST);
    let verdict = classify(&Bytes::from(&frame[..]), Some(&policy(Some(5))));
    assert_eq!(verdict.decision, Decision::Flood);
}
