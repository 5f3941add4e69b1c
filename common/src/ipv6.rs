//! IPv6 extension headers (RFC 8200) and NDP (RFC 4861).
//!
//! The walk is the one of Open vSwitch's kernel datapath: it ignores version and payload length, and
//! any fragment header, an atomic one too, hides the ICMPv6 fields from the flows.

use crate::{Frame, Kind, Notes, wire};

/// The running offset stays under this, so that the verifier can bound a packet pointer. Twelve
/// headers of the longest length (2,048 bytes) end before.
const MAX_OFFSET: usize = 0x7fff;

/// What an IPv6 packet at `offset` is to a flow that matches NDP.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F, offset: usize, notes: &mut Notes) -> Kind {
    let Some(header): Option<[u8; wire::IPV6_HEADER]> = frame.load(offset) else {
        *notes |= Notes::TRUNCATED;
        return Kind::NotNeighbour;
    };
    let [_, _, _, _, length0, length1, next, hop_limit, ..] = header;
    let icmpv6 = match next {
        wire::NEXT_ICMPV6 => offset + wire::IPV6_HEADER,
        wire::NEXT_HOP_BY_HOP
        | wire::NEXT_ROUTING
        | wire::NEXT_FRAGMENT
        | wire::NEXT_AUTHENTICATION
        | wire::NEXT_DESTINATION => match walk(frame, next, offset + wire::IPV6_HEADER, notes) {
            Some(icmpv6) => icmpv6,
            None => return Kind::NotNeighbour,
        },
        _ => return Kind::NotNeighbour,
    };
    let payload = usize::from(u16::from_be_bytes([length0, length1]));
    let headers = icmpv6 - (offset + wire::IPV6_HEADER);
    read_icmpv6(
        frame,
        icmpv6,
        payload.saturating_sub(headers),
        hop_limit,
        notes,
    )
}

/// Walks extension headers from the first one, of type `next` at `offset`, to ICMPv6.
#[inline(always)]
fn walk<F: Frame>(frame: &F, mut next: u8, mut offset: usize, notes: &mut Notes) -> Option<usize> {
    for _ in 0..wire::MAX_EXTENSION_HEADERS {
        if offset > MAX_OFFSET {
            break;
        }
        // Open vSwitch's kernel datapath reads two bytes; no header is shorter than eight, and
        // ICMPv6 must follow.
        let Some([following, length]) = frame.load(offset) else {
            *notes |= Notes::TRUNCATED;
            return None;
        };
        let length = usize::from(length);
        offset += match next {
            wire::NEXT_FRAGMENT => {
                *notes |= Notes::FRAGMENTED;
                return None;
            }
            wire::NEXT_AUTHENTICATION => (length + 2) * 4,
            _ => (length + 1) * 8,
        };
        next = following;
        match next {
            wire::NEXT_ICMPV6 => return Some(offset),
            wire::NEXT_HOP_BY_HOP
            | wire::NEXT_ROUTING
            | wire::NEXT_FRAGMENT
            | wire::NEXT_AUTHENTICATION
            | wire::NEXT_DESTINATION => {}
            _ => return None,
        }
    }
    *notes |= Notes::TOO_MANY_EXTENSION_HEADERS;
    None
}

/// The kind of an ICMPv6 message of `length` bytes by the IPv6 header.
#[inline(always)]
fn read_icmpv6<F: Frame>(
    frame: &F,
    offset: usize,
    length: usize,
    hop_limit: u8,
    notes: &mut Notes,
) -> Kind {
    if offset > MAX_OFFSET {
        *notes |= Notes::TOO_MANY_EXTENSION_HEADERS;
        return Kind::NotNeighbour;
    }
    let Some([kind, code, ..]): Option<[u8; wire::ICMPV6_MIN]> = frame.load(offset) else {
        *notes |= Notes::TRUNCATED;
        return Kind::NotNeighbour;
    };
    // Loads one byte, the last of the fixed part, to see whether all of it is there.
    let (kind, fixed, complete) = match kind {
        wire::ICMPV6_ROUTER_SOLICITATION => (Kind::RouterSolicitation, 8, true),
        wire::ICMPV6_ROUTER_ADVERTISEMENT => {
            (Kind::RouterAdvertisement, 16, has(frame, offset + 15))
        }
        wire::ICMPV6_NEIGHBOR_SOLICITATION => {
            (Kind::NeighborSolicitation, 24, has(frame, offset + 23))
        }
        wire::ICMPV6_NEIGHBOR_ADVERTISEMENT => {
            (Kind::NeighborAdvertisement, 24, has(frame, offset + 23))
        }
        wire::ICMPV6_REDIRECT => (Kind::Redirect, 40, has(frame, offset + 39)),
        _ => return Kind::NotNeighbour,
    };
    if !complete || length < fixed {
        *notes |= Notes::TOO_SHORT;
    }
    if hop_limit != wire::NDP_HOP_LIMIT {
        *notes |= Notes::HOP_LIMIT_NOT_255;
    }
    if code != 0 {
        *notes |= Notes::CODE_NOT_ZERO;
    }
    kind
}

#[inline(always)]
fn has<F: Frame>(frame: &F, offset: usize) -> bool {
    frame.load::<1>(offset).is_some()
}
