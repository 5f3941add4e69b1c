//! IPv6 down to the Neighbor Discovery message.

use etherparse::{
    Icmpv6Slice, IpAuthHeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
};
use neighsteer_common::{Kind, Notes, wire::MAX_EXTENSION_HEADERS};

use super::Datapath;

const NOT_NDP: Kind = Kind::NotNeighbour;

pub(super) fn read(packet: &[u8], datapath: Datapath) -> (Kind, Notes) {
    if packet.len() < 40 {
        return (NOT_NDP, Notes::TRUNCATED);
    }
    // etherparse refuses another version, at which neither datapath looks.
    let mut header_bytes = packet[..40].to_vec();
    header_bytes[0] = 0x60 | (header_bytes[0] & 0x0f);
    let Ok(header) = Ipv6HeaderSlice::from_slice(&header_bytes) else {
        return (NOT_NDP, Notes::TRUNCATED);
    };

    let promised = usize::from(header.payload_length());
    let payload = &packet[40..];
    let payload = match datapath {
        // The kernel does not look at the length.
        Datapath::Kernel => payload,
        // Userspace refuses a length beyond the frame, and reads no padding.
        Datapath::Userspace => match payload.get(..promised) {
            Some(payload) => payload,
            None => return (NOT_NDP, Notes::default()),
        },
    };
    // Where the payload ends by its own account.
    let promised = promised.min(payload.len());
    let (message, before) = match walk(header.next_header().0, payload, datapath) {
        Ok(found) => found,
        Err(notes) => return (NOT_NDP, notes),
    };
    ndp(message, promised.saturating_sub(before), header.hop_limit())
}

/// Finds the ICMPv6 part behind the extension headers: it, and how many bytes were before it.
fn walk(first: u8, payload: &[u8], datapath: Datapath) -> Result<(&[u8], usize), Notes> {
    let mut next = first;
    let mut rest = payload;
    let mut headers = 0;
    loop {
        let is_extension = matches!(next, 0 | 43 | 44 | 51 | 60);
        if is_extension && headers == MAX_EXTENSION_HEADERS && datapath == Datapath::Kernel {
            return Err(Notes::TOO_MANY_EXTENSION_HEADERS);
        }
        headers += 1;
        let length = match next {
            58 => return Ok((rest, payload.len() - rest.len())),
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
                    return Err(Notes::FRAGMENTED);
                };
                if datapath == Datapath::Kernel || !atomic {
                    return Err(Notes::FRAGMENTED);
                }
                next = header.next_header().0;
                8
            }
            _ => return Err(Notes::default()),
        };
        rest = rest.get(length..).ok_or(Notes::TRUNCATED)?;
    }
}

/// The next header of an extension header that the frame cuts short. Two bytes of it are enough for
/// the kernel's walk to go on, to what is then found missing.
fn cut(rest: &[u8]) -> Result<u8, Notes> {
    match rest {
        [next, _, ..] => Ok(*next),
        _ => Err(Notes::TRUNCATED),
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
    (kind, notes)
}
