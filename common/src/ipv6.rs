//! IPv6 extension headers (RFC 8200) and NDP (RFC 4861).
//!
//! The walk is the one of Open vSwitch's kernel datapath: it ignores version and payload length, and
//! any fragment header, an atomic one too, hides the ICMPv6 fields from the flows.

use crate::{Frame, Kind, Notes, wire};

/// What an IPv6 packet is to a flow that matches NDP. It begins at `offset`, which is left where its
/// ICMPv6 message begins.
#[inline(always)]
pub(crate) fn read<F: Frame>(frame: &F, offset: &mut usize, notes: &mut Notes) -> Kind {
    let Some(header): Option<[u8; wire::IPV6_HEADER]> = frame.load(*offset) else {
        *notes |= Notes::TRUNCATED;
        return Kind::NotNeighbour;
    };
    let [_, _, _, _, length0, length1, next, hop_limit, ..] = header;
    let body = *offset + wire::IPV6_HEADER;
    let length = usize::from(u16::from_be_bytes([length0, length1]));
    let message = if next == wire::NEXT_ICMPV6 {
        *offset = body;
        Message::read(frame.load(body), length, |at| frame.load(body + at))
    } else if is_extension_header(next) {
        let Some(icmpv6) = walk(frame, next, body, notes) else {
            return Kind::NotNeighbour;
        };
        *offset = icmpv6;
        let length = length.saturating_sub(icmpv6 - body);
        if notes.contains(Notes::FRAGMENTED) {
            // No flow sees behind a fragment header; whoever puts the packet together must not.
            if length > 0
                && let Some([kind]) = frame.load_computed(icmpv6)
                && !matches!(ndp(kind).0, Kind::NotNeighbour)
            {
                *notes |= Notes::FRAGMENTED_NDP;
            }
            return Kind::NotNeighbour;
        }
        Message::read(frame.load_computed(icmpv6), length, |at| {
            frame.load_computed(icmpv6 + at)
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
    if message.has_multicast_target {
        *notes |= Notes::MULTICAST_TARGET;
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

/// Walks extension headers from the first one, of type `next` at `offset`, to ICMPv6. Behind a
/// fragment header it goes on where the packet begins there, and notes nothing more.
#[inline(always)]
fn walk<F: Frame>(frame: &F, mut next: u8, mut offset: usize, notes: &mut Notes) -> Option<usize> {
    for _ in 0..wire::MAX_EXTENSION_HEADERS {
        // No more of a header is read, as in the kernel: ICMPv6 must follow anyway.
        let Some([following, length]) = frame.load_computed(offset) else {
            if !notes.contains(Notes::FRAGMENTED) {
                *notes |= Notes::TRUNCATED;
            }
            return None;
        };
        let length = usize::from(length);
        offset += match next {
            wire::NEXT_FRAGMENT => {
                *notes |= Notes::FRAGMENTED;
                let [high, low] = frame.load_computed(offset + 2)?;
                if u16::from_be_bytes([high, low]) & wire::FRAGMENT_OFFSET_MASK != 0 {
                    return None;
                }
                wire::FRAGMENT_HEADER
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
    if !notes.contains(Notes::FRAGMENTED) {
        *notes |= Notes::TOO_MANY_EXTENSION_HEADERS;
    }
    None
}

/// The NDP message of an ICMPv6 type, if it is one, and the length of its fixed part (RFC 4861, 4).
#[inline(always)]
const fn ndp(icmpv6_type: u8) -> (Kind, usize) {
    match icmpv6_type {
        wire::ICMPV6_ROUTER_SOLICITATION => (Kind::RouterSolicitation, 8),
        wire::ICMPV6_ROUTER_ADVERTISEMENT => (Kind::RouterAdvertisement, 16),
        wire::ICMPV6_NEIGHBOR_SOLICITATION => (Kind::NeighborSolicitation, 24),
        wire::ICMPV6_NEIGHBOR_ADVERTISEMENT => {
            (Kind::NeighborAdvertisement, wire::NDP_ADVERTISEMENT)
        }
        wire::ICMPV6_REDIRECT => (Kind::Redirect, 40),
        _ => (Kind::NotNeighbour, 0),
    }
}

/// An ICMPv6 message.
struct Message {
    /// What NDP it is, if any.
    kind: Kind,
    code: u8,
    /// Whether all of the type's fixed part is there.
    is_complete: bool,
    /// Whether it has a target address that is a multicast one.
    has_multicast_target: bool,
}

impl Message {
    /// Reads the least that Open vSwitch takes for ICMPv6. `length` is what the IPv6 header says of
    /// the message, `byte` one byte of it as far as the frame has it.
    #[inline(always)]
    fn read(
        start: Option<[u8; wire::ICMPV6_MIN]>,
        length: usize,
        byte: impl Fn(usize) -> Option<[u8; 1]>,
    ) -> Option<Self> {
        let [kind, code, ..] = start?;
        let (kind, fixed) = ndp(kind);
        let is_complete = fixed == 0 || (length >= fixed && byte(fixed - 1).is_some());
        let has_target = matches!(
            kind,
            Kind::NeighborSolicitation | Kind::NeighborAdvertisement
        );
        Some(Self {
            kind,
            code,
            is_complete,
            has_multicast_target: has_target
                && is_complete
                && matches!(byte(wire::NDP_TARGET), Some([wire::IPV6_MULTICAST])),
        })
    }
}
