//! IPv6 down to the Neighbor Discovery message.

use std::net::Ipv6Addr;

use etherparse::{
    Icmpv6Slice, IpAuthHeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
};
use neighsteer_common::{Kind, Notes, wire::MAX_EXTENSION_HEADERS};

use super::Datapath;

const NOT_NDP: Kind = Kind::NotNeighbour;

/// What the packet is, and the message where it is NDP.
pub(super) fn read(packet: &[u8], datapath: Datapath) -> (Kind, Notes, &[u8]) {
    if packet.len() < 40 {
        return (NOT_NDP, Notes::TRUNCATED, &[]);
    }
    // etherparse refuses another version, at which neither datapath looks.
    let mut header_bytes = packet[..40].to_vec();
    header_bytes[0] = 0x60 | (header_bytes[0] & 0x0f);
    let Ok(header) = Ipv6HeaderSlice::from_slice(&header_bytes) else {
        return (NOT_NDP, Notes::TRUNCATED, &[]);
    };

    let promised = usize::from(header.payload_length());
    let payload = &packet[40..];
    let payload = match datapath {
        // The kernel does not look at the length.
        Datapath::Kernel => payload,
        // Userspace refuses a length beyond the frame, and reads no padding.
        Datapath::Userspace => match payload.get(..promised) {
            Some(payload) => payload,
            None => return (NOT_NDP, Notes::default(), &[]),
        },
    };
    // Where the payload ends by its own account.
    let promised = promised.min(payload.len());
    let mut headers = 0;
    match walk(header.next_header().0, payload, datapath, &mut headers) {
        Ok(message) => {
            let before = payload.len() - message.len();
            let promised = promised.saturating_sub(before);
            let (kind, notes) = ndp(message, promised, header.hop_limit());
            (kind, notes, message)
        }
        Err(Ended::At(notes)) => (NOT_NDP, notes, &[]),
        Err(Ended::AtFragment(behind)) => {
            let mut notes = Notes::FRAGMENTED;
            // RFC 6980 is about the five messages, by the type that the first fragment shows.
            let shown = behind.and_then(|message| {
                let is_promised = payload.len() - message.len() < promised;
                message.first().filter(|_| is_promised)
            });
            if matches!(shown, Some(133..=137)) {
                notes |= Notes::FRAGMENTED_NDP;
            }
            (NOT_NDP, notes, &[])
        }
    }
}

/// Where a walk ended before it came to ICMPv6 that a flow sees.
enum Ended<'a> {
    /// With these notes.
    At(Notes),
    /// At a fragment header; a first fragment's ICMPv6 behind it, as far as it is there.
    AtFragment(Option<&'a [u8]>),
}

/// Finds the ICMPv6 part behind the extension headers.
fn walk<'a>(
    first: u8,
    payload: &'a [u8],
    datapath: Datapath,
    headers: &mut usize,
) -> Result<&'a [u8], Ended<'a>> {
    let mut next = first;
    let mut rest = payload;
    loop {
        let is_extension = matches!(next, 0 | 43 | 44 | 51 | 60);
        if is_extension && *headers == MAX_EXTENSION_HEADERS && datapath == Datapath::Kernel {
            return Err(Ended::At(Notes::TOO_MANY_EXTENSION_HEADERS));
        }
        *headers += 1;
        let length = match next {
            58 => return Ok(rest),
            0 | 43 | 60 => match Ipv6RawExtHeaderSlice::from_slice(rest) {
                Ok(header) => {
                    next = header.next_header().0;
                    header.slice().len()
                }
                Err(_) => {
                    next = cut(rest)?;
                    rest.len()
                }
            },
            51 => match (IpAuthHeaderSlice::from_slice(rest), rest.get(..8)) {
                (Ok(header), _) => {
                    next = header.next_header().0;
                    header.slice().len()
                }
                // Shorter than its own fields, which etherparse refuses; Open vSwitch goes by
                // the length field.
                (Err(_), Some([number, 0, ..])) => {
                    next = *number;
                    8
                }
                (Err(_), _) => {
                    next = cut(rest)?;
                    rest.len()
                }
            },
            44 => {
                cut(rest)?;
                // Offset, both reserved bits and "more": all zero in an atomic fragment.
                let atomic = rest.get(2..4) == Some(&[0, 0]);
                let Ok(header) = Ipv6FragmentHeaderSlice::from_slice(rest) else {
                    return Err(Ended::AtFragment(None));
                };
                if datapath == Datapath::Kernel || !atomic {
                    return Err(Ended::AtFragment(behind(&header, rest, datapath, headers)));
                }
                next = header.next_header().0;
                8
            }
            _ => return Err(Ended::At(Notes::default())),
        };
        rest = rest.get(length..).ok_or(Ended::At(Notes::TRUNCATED))?;
    }
}

/// The ICMPv6 part behind a fragment header, and more of them: of a first fragment, which has the
/// headers that say so (RFC 7112).
fn behind<'a>(
    header: &Ipv6FragmentHeaderSlice<'_>,
    fragment: &'a [u8],
    datapath: Datapath,
    headers: &mut usize,
) -> Option<&'a [u8]> {
    if header.fragment_offset().value() != 0 {
        return None;
    }
    let rest = fragment.get(8..)?;
    match walk(header.next_header().0, rest, datapath, headers) {
        Ok(message) => Some(message),
        Err(Ended::AtFragment(behind)) => behind,
        Err(Ended::At(_)) => None,
    }
}

/// The next header of an extension header that the frame cuts short. Two bytes of it are enough for
/// the kernel's walk to go on, to what is then found missing.
fn cut<'a>(rest: &[u8]) -> Result<u8, Ended<'a>> {
    match rest {
        [next, _, ..] => Ok(*next),
        _ => Err(Ended::At(Notes::TRUNCATED)),
    }
}

/// The message; `promised` of its bytes are so by the IPv6 payload length too.
fn ndp(message: &[u8], promised: usize, hop_limit: u8) -> (Kind, Notes) {
    // Fewer than 8 bytes are not ICMPv6 to a flow.
    let Ok(icmp) = Icmpv6Slice::from_slice(message) else {
        return (NOT_NDP, Notes::TRUNCATED);
    };
    // Fixed parts by RFC 4861, 4.1 to 4.5.
    let (kind, fixed) = match icmp.type_u8() {
        133 => (Kind::RouterSolicitation, 8),
        134 => (Kind::RouterAdvertisement, 16),
        135 => (Kind::NeighborSolicitation, 24),
        136 => (Kind::NeighborAdvertisement, 24),
        137 => (Kind::Redirect, 40),
        _ => return (NOT_NDP, Notes::default()),
    };
    let mut notes = Notes::default();
    if message.len().min(promised) < fixed {
        notes |= Notes::TOO_SHORT;
    }
    if icmp.code_u8() != 0 {
        notes |= Notes::CODE_NOT_ZERO;
    }
    if hop_limit != 255 {
        notes |= Notes::HOP_LIMIT_NOT_255;
    }
    // RFC 4861, 7.1.1 and 7.1.2; of a whole message alone.
    let has_target = matches!(
        kind,
        Kind::NeighborSolicitation | Kind::NeighborAdvertisement
    );
    if has_target && !notes.contains(Notes::TOO_SHORT) && target(message).is_multicast() {
        notes |= Notes::MULTICAST_TARGET;
    }
    (kind, notes)
}

/// The target address of a solicitation or an advertisement.
pub(super) fn target(message: &[u8]) -> Ipv6Addr {
    let octets = message.get(8..24).and_then(|octets| octets.try_into().ok());
    octets.map_or(Ipv6Addr::UNSPECIFIED, |octets: [u8; 16]| octets.into())
}
