use super::*;

fn arp(destination: [u8; 6], body: &[u8]) -> Verdict {
    verdict_of(&join(&[&destination, &SENDER, ARP_TYPE, body]))
}

#[test]
fn operation_and_addresses_make_the_kind() {
    let node = [172, 18, 0, 3];
    let other = [172, 18, 0, 1];
    for (operation, sender, target, kind) in [
        (1, other, node, Kind::ArpRequest),
        (2, other, node, Kind::ArpReply),
        (1, [0; 4], node, Kind::ArpProbe),
        (1, [0; 4], [0; 4], Kind::ArpProbe),
        (1, other, other, Kind::ArpAnnouncement),
        (2, other, other, Kind::ArpAnnouncement),
        (2, [0; 4], [0; 4], Kind::ArpReply),
        (3, other, node, Kind::ArpOther),
        (0x0101, other, node, Kind::ArpOther),
    ] {
        let verdict = arp(BRIDGE, &arp_body(operation, sender, target));
        assert_eq!(verdict.kind, kind, "{operation} {sender:?} {target:?}");
        assert_eq!(verdict.decision, Decision::SteerArp);
        assert!(verdict.notes.is_empty());
    }
}

#[test]
fn only_unicast_to_the_bridge_is_steered() {
    assert_eq!(arp(BROADCAST, &arp_reply()).decision, Decision::Flood);
    assert_eq!(arp(ALL_NODES, &arp_reply()).decision, Decision::Flood);
    assert_eq!(arp(SENDER, &arp_reply()).decision, Decision::Normal);
}

#[test]
fn a_short_or_odd_body_is_still_arp() {
    let body = arp_reply();
    for end in 0..body.len() {
        let verdict = arp(BRIDGE, &body[..end]);
        assert_eq!(verdict.kind, Kind::ArpOther, "{end}");
        assert_eq!(verdict.decision, Decision::SteerArp, "{end}");
        assert_eq!(verdict.notes, Notes::TRUNCATED, "{end}");
    }
    for (index, value) in [(1, 6), (2, 9), (4, 8), (5, 16)] {
        let mut body = body.clone();
        body[index] = value;
        let verdict = arp(BRIDGE, &body);
        assert_eq!(verdict.kind, Kind::ArpOther);
        assert_eq!(verdict.decision, Decision::SteerArp);
        assert_eq!(verdict.notes, Notes::ODD_ARP_SIZES);
        let verdict = arp(BRIDGE, &body[..20]);
        assert_eq!(verdict.notes, Notes::ODD_ARP_SIZES | Notes::TRUNCATED);
    }
}

#[test]
fn odd_senders_are_noted() {
    let mut body = arp_reply();
    body[8] = 0x54;
    assert_eq!(arp(BRIDGE, &body).notes, Notes::SENDER_MAC_DIFFERS);
    body[8..14].fill(0);
    let expected = Notes::SENDER_MAC_DIFFERS | Notes::ODD_SENDER;
    assert_eq!(arp(BRIDGE, &body).notes, expected);
    let frame = join(&[&BRIDGE, &[0; 6], ARP_TYPE, &arp_reply()]);
    assert_eq!(verdict_of(&frame).notes, expected);
}

#[test]
fn llc_snap_arp_is_arp() {
    let snap =
        |header: &[u8]| verdict_of(&join(&[&BRIDGE, &SENDER, &[0, 36], header, &arp_reply()]));
    let verdict = snap(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 6]);
    assert_eq!(verdict.kind, Kind::ArpReply);
    assert_eq!(verdict.decision, Decision::SteerArp);
    // The kernel's parser does not look at the control byte.
    assert_eq!(snap(&[0xaa, 0xaa, 0, 0, 0, 0, 8, 6]).kind, Kind::ArpReply);
    for header in [
        [0xaa, 0xab, 3, 0, 0, 0, 8, 6],
        [0xab, 0xaa, 3, 0, 0, 0, 8, 6],
        [0xaa, 0xaa, 3, 0, 0, 1, 8, 6],
        [0xaa, 0xaa, 3, 0xf8, 0, 0, 8, 6],
    ] {
        assert_eq!(snap(&header).kind, Kind::NotNeighbour, "{header:02x?}");
    }
}
