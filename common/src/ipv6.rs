//! IPv6 extension headers (RFC 8200) and NDP (RFC 4861).
//!
//! The walk is the one of Open vSwitch's kernel datapath: it ignores version and payload length, and
//! any fragment header, an atomic one too, hides the ICMPv6 fields from the flows.

use crate::{Frame, Kind, Notes, wire};

/// What an IPv6 packet at `offset` is to a flow that matches NDP.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F, offset: usize, notes: &mut Notes) -> Kind {
    let Some(header): Option<[u8; wire::IPV6_HEADER]> = frame.load(offset) else {
        *notes |= Notes::TRUNCATED;
        return Kind::NotNeighbour;
    };
    let [_, _, _, _, length0, length1, next, hop_limit, ..] = header;
    let body = offset + wire::IPV6_HEADER;
    let length = usize::from(u16::from_be_bytes([length0, length1]));
    let message = if next == wire::NEXT_ICMPV6 {
        Message::read(frame.load(body), length, |last| {
            frame.load::<1>(body + last).is_some()
        })
    } else if is_extension_header(next) {
        let Some(icmpv6) = walk(frame, next, body, notes) else {
            return Kind::NotNeighbour;
        };
        let length = length.saturating_sub(icmpv6 - body);
        Message::read(frame.load_computed(icmpv6), length, |last| {
            frame.load_computed::<1>(icmpv6 + last).is_some()
        })
    } else {
        return Kind::NotNeighbour;
    };
    let Some(message) = message else {
        *notes |= Notes::TRUNCATED;
        return Kind::NotNeighbour;
    };
    if matches!(message.kind, Kind::NotNeighbour) {
        return message.kind;
    }
    if !message.is_complete {
        *notes |= Notes::TOO_SHORT;
    }
    if hop_limit != wire::NDP_HOP_LIMIT {
        *notes |= Notes::HOP_LIMIT_NOT_255;
    }
    if message.code != 0 {
        *notes |= Notes::CODE_NOT_ZERO;
    }
    message.kind
}

/// Whether the walk goes on behind a header of this type. ESP, mobility and the like end it, as they
/// do in Linux and in Open vSwitch.
#[inline(always)]
const fn is_extension_header(next: u8) -> bool {
    matches!(
        next,
        wire::NEXT_HOP_BY_HOP
            | wire::NEXT_ROUTING
            | wire::NEXT_FRAGMENT
            | wire::NEXT_AUTHENTICATION
            | wire::NEXT_DESTINATION
    )
}

/// Walks extension headers from the first one, of type `next` at `offset`, to ICMPv6.
#[inline(always)]
fn walk<F: Frame>(frame: &F, mut next: u8, mut offset: usize, notes: &mut Notes) -> Option<usize> {
    for _ in 0..wire::MAX_EXTENSION_HEADERS {
        // No more of a header is read, as in the kernel: ICMPv6 must follow anyway.
        let Some([following, length]) = frame.load_computed(offset) else {
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
        if next == wire::NEXT_ICMPV6 {
            return Some(offset);
        }
        if !is_extension_header(next) {
            return None;
        }
    }
    *notes |= Notes::TOO_MANY_EXTENSION_HEADERS;
    None
}

/// An ICMPv6 message.
struct Message {
    /// What NDP it is, if any.
    kind: Kind,
    code: u8,
    /// Whether all of the type's fixed part is there.
    is_complete: bool,
}

impl Message {
    /// Reads the least that Open vSwitch takes for ICMPv6. `length` is what the IPv6 header says of
    /// the message, `has` whether the frame holds a byte of it.
    #[inline(always)]
    fn read(
        start: Option<[u8; wire::ICMPV6_MIN]>,
        length: usize,
        has: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let [kind, code, ..] = start?;
        let (kind, fixed) = match kind {
            wire::ICMPV6_ROUTER_SOLICITATION => (Kind::RouterSolicitation, 8),
            wire::ICMPV6_ROUTER_ADVERTISEMENT => (Kind::RouterAdvertisement, 16),
            wire::ICMPV6_NEIGHBOR_SOLICITATION => (Kind::NeighborSolicitation, 24),
            wire::ICMPV6_NEIGHBOR_ADVERTISEMENT => (Kind::NeighborAdvertisement, 24),
            wire::ICMPV6_REDIRECT => (Kind::Redirect, 40),
            _ => (Kind::NotNeighbour, 0),
        };
        Some(Self {
            kind,
            code,
            is_complete: fixed == 0 || (length >= fixed && has(fixed - 1)),
        })
    }
}
