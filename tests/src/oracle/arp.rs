//! ARP.

use etherparse::ArpPacketSlice;
use neighsteer_common::{Kind, Notes};

/// Any frame of the type is ARP to the flows, whatever its body. What the body says counts only
/// where it is that of Ethernet and IPv4, as for Open vSwitch.
pub(super) fn read(body: &[u8], source: [u8; 6]) -> (Kind, Notes) {
    let mut notes = Notes::default();
    if body.len() < 28 {
        notes |= Notes::TRUNCATED;
    }
    // Type and lengths stand in the first six bytes, even if the rest is missing.
    let odd = body
        .get(..6)
        .is_some_and(|sizes| sizes != [0, 1, 8, 0, 6, 4]);
    if odd {
        notes |= Notes::ODD_ARP_SIZES;
    }
    if odd || body.len() < 28 {
        return (Kind::ArpOther, notes);
    }
    let Ok(arp) = ArpPacketSlice::from_slice(body) else {
        return (Kind::ArpOther, notes);
    };

    let sender = arp.sender_hw_addr();
    if sender != source {
        notes |= Notes::SENDER_MAC_DIFFERS;
    }
    if sender.first().is_some_and(|byte| byte & 1 == 1) || sender.iter().all(|byte| *byte == 0) {
        notes |= Notes::ODD_SENDER;
    }

    let (from, to) = (arp.sender_protocol_addr(), arp.target_protocol_addr());
    let kind = match arp.operation().0 {
        1 if from == [0; 4] => Kind::ArpProbe,
        1 | 2 if from == to && from != [0; 4] => Kind::ArpAnnouncement,
        1 => Kind::ArpRequest,
        2 => Kind::ArpReply,
        _ => Kind::ArpOther,
    };
    (kind, notes)
}
