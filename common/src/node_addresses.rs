//! The node's own addresses, and who else announces them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Frame, Kind, Policy, ethernet, wire};

/// The node's addresses on the bridge's network, which its gateway routers share with it: nobody
/// else should announce them there.
///
/// In words of four bytes, each in the byte order of a frame: an eBPF program that puts words together
/// of bytes runs out of registers and stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NodeAddresses {
    /// 0 for none.
    ipv4: u32,
    /// All zero for none.
    ipv6: [[u32; 4]; Self::IPV6],
}

impl NodeAddresses {
    /// None known: nothing is said about their announcements.
    pub const NONE: Self = Self {
        ipv4: 0,
        ipv6: [[0; 4]; Self::IPV6],
    };
    /// How many IPv6 addresses there is room for.
    pub const IPV6: usize = 2;

    /// These addresses; 0.0.0.0 and `::` stand for none.
    #[must_use]
    pub const fn new(ipv4: Ipv4Addr, ipv6: [Ipv6Addr; Self::IPV6]) -> Self {
        let [first, second] = ipv6;
        Self {
            ipv4: u32::from_ne_bytes(ipv4.octets()),
            ipv6: [words(first.octets()), words(second.octets())],
        }
    }

    /// Whether no address is known.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [[a, b, c, d], [e, f, g, h]] = self.ipv6;
        self.ipv4 | a | b | c | d | e | f | g | h == 0
    }

    /// The IPv4 address; 0.0.0.0 for none.
    #[must_use]
    pub fn ipv4(&self) -> Ipv4Addr {
        self.ipv4.to_ne_bytes().into()
    }

    /// The IPv6 addresses; `::` for none.
    #[must_use]
    pub fn ipv6(&self) -> [Ipv6Addr; Self::IPV6] {
        self.ipv6.map(|words| octets(words).into())
    }

    #[inline(always)]
    const fn has_ipv4(&self, address: u32) -> bool {
        address != 0 && address == self.ipv4
    }
}

/// An address as words.
const fn words(address: [u8; 16]) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address;
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
        u32::from_ne_bytes([i, j, k, l]),
        u32::from_ne_bytes([m, n, o, p]),
    ]
}

/// Words as an address.
fn octets(words: [u32; 4]) -> [u8; 16] {
    let mut octets = [0; 16];
    for (four, word) in octets.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_ne_bytes());
    }
    octets
}

/// The first IPv4 address and the first [`NodeAddresses::IPV6`] IPv6 ones, those of one link
/// (`fe80::/10`) not among them: there is no room for more.
impl FromIterator<IpAddr> for NodeAddresses {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        let mut ipv4 = Ipv4Addr::UNSPECIFIED;
        let mut ipv6 = [Ipv6Addr::UNSPECIFIED; Self::IPV6];
        for address in addresses {
            match address {
                IpAddr::V4(address) if ipv4.is_unspecified() => ipv4 = address,
                IpAddr::V6(address)
                    if !address.is_unicast_link_local() && !ipv6.contains(&address) =>
                {
                    if let Some(free) = ipv6.iter_mut().find(|slot| slot.is_unspecified()) {
                        *free = address;
                    }
                }
                IpAddr::V4(_) | IpAddr::V6(_) => {}
            }
        }
        Self::new(ipv4, ipv6)
    }
}

/// Whether an ARP body or NDP message at `offset` announces an address of the node with another MAC
/// address than the bridge's: an ARP request or reply by its sender, a Neighbor Advertisement by its
/// target. The latter's MAC address is the frame's source, and that in a target link-layer
/// address option where it is the first option.
#[inline(always)]
pub(crate) fn announced_elsewhere<F: Frame>(
    frame: &F,
    kind: Kind,
    offset: usize,
    policy: &Policy,
) -> bool {
    match kind {
        Kind::ArpRequest | Kind::ArpReply | Kind::ArpAnnouncement => arp(frame, offset, policy),
        Kind::NeighborAdvertisement => advertisement(frame, offset, policy),
        _ => false,
    }
}

#[inline(always)]
fn arp<F: Frame>(frame: &F, offset: usize, policy: &Policy) -> bool {
    let Some([m0, m1, m2, m3, m4, m5, s0, s1, s2, s3]) =
        frame.load_computed(offset + wire::ARP_SENDER)
    else {
        return false;
    };
    policy
        .node_addresses
        .has_ipv4(u32::from_ne_bytes([s0, s1, s2, s3]))
        && [m0, m1, m2, m3, m4, m5] != policy.bridge_mac
}

#[inline(always)]
fn advertisement<F: Frame>(frame: &F, offset: usize, policy: &Policy) -> bool {
    let [first, second] = policy.node_addresses.ipv6;
    let target = offset + wire::NDP_TARGET;
    if !has(frame, target, first) && !has(frame, target, second) {
        return false;
    }
    if ethernet::source(frame) != Some(policy.bridge_mac) {
        return true;
    }
    match frame.load_computed(offset + wire::NDP_ADVERTISEMENT) {
        Some([wire::NDP_TARGET_LINK_LAYER, 1, m0, m1, m2, m3, m4, m5]) => {
            [m0, m1, m2, m3, m4, m5] != policy.bridge_mac
        }
        _ => false,
    }
}

/// Whether a frame has this address, other than `::`, at `offset`.
#[inline(always)]
fn has<F: Frame>(frame: &F, offset: usize, address: [u32; 4]) -> bool {
    let [a, b, c, d] = address;
    let at = |index: usize| {
        frame
            .load_computed(offset + 4 * index)
            .map(u32::from_ne_bytes)
    };
    a | b | c | d != 0
        && at(0) == Some(a)
        && at(1) == Some(b)
        && at(2) == Some(c)
        && at(3) == Some(d)
}
