//! ARP (RFC 826, RFC 5227).

use crate::{
    Frame, Kind, Notes,
    ethernet::{self, is_odd_sender},
    wire,
};

/// What an ARP body at `offset` says.
///
/// Open vSwitch takes the operation of a body of Ethernet and IPv4 addresses only; any other body
/// is ARP all the same.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F, offset: usize, notes: &mut Notes) -> Kind {
    let Some(body): Option<[u8; wire::ARP_BODY]> = frame.load(offset) else {
        *notes |= Notes::TRUNCATED;
        if let Some(sizes) = frame.load(offset)
            && !is_ethernet_and_ipv4(sizes)
        {
            *notes |= Notes::ODD_ARP_SIZES;
        }
        return Kind::ArpOther;
    };
    let [h0, h1, p0, p1, hlen, plen, op0, op1, addresses @ ..] = body;
    if !is_ethernet_and_ipv4([h0, h1, p0, p1, hlen, plen]) {
        *notes |= Notes::ODD_ARP_SIZES;
        return Kind::ArpOther;
    }
    let [
        m0,
        m1,
        m2,
        m3,
        m4,
        m5,
        s0,
        s1,
        s2,
        s3,
        _,
        _,
        _,
        _,
        _,
        _,
        t0,
        t1,
        t2,
        t3,
    ] = addresses;
    let sender_mac = [m0, m1, m2, m3, m4, m5];
    if ethernet::source(frame) != Some(sender_mac) {
        *notes |= Notes::SENDER_MAC_DIFFERS;
    }
    if is_odd_sender(sender_mac) {
        *notes |= Notes::ODD_SENDER;
    }
    kind(
        u16::from_be_bytes([op0, op1]),
        u32::from_be_bytes([s0, s1, s2, s3]),
        u32::from_be_bytes([t0, t1, t2, t3]),
    )
}

/// The kind that operation, sender and target protocol address make.
#[inline(always)]
const fn kind(operation: u16, sender: u32, target: u32) -> Kind {
    match operation {
        wire::ARP_REQUEST if sender == 0 => Kind::ArpProbe,
        wire::ARP_REQUEST | wire::ARP_REPLY if sender == target && sender != 0 => {
            Kind::ArpAnnouncement
        }
        wire::ARP_REQUEST => Kind::ArpRequest,
        wire::ARP_REPLY => Kind::ArpReply,
        _ => Kind::ArpOther,
    }
}

/// Whether types and lengths are those of Ethernet and IPv4.
#[inline(always)]
const fn is_ethernet_and_ipv4(sizes: [u8; 6]) -> bool {
    let [h0, h1, p0, p1, hlen, plen] = sizes;
    u16::from_be_bytes([h0, h1]) == wire::ARP_HARDWARE_ETHERNET
        && u16::from_be_bytes([p0, p1]) == wire::ETHERTYPE_IPV4
        && hlen == 6
        && plen == 4
}
