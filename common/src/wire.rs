//! Numbers of the protocols, each with its source.

/// Length of an Ethernet header without tags.
pub const ETHERNET_HEADER: usize = 14;
/// Where the Ethernet type stands in an untagged frame.
pub const ETHERNET_TYPE_OFFSET: usize = 12;
/// Length of one VLAN tag (IEEE 802.1Q): TPID and TCI.
pub const VLAN_TAG: usize = 4;
/// TPID of a customer tag (IEEE 802.1Q).
pub const TPID_8021Q: u16 = 0x8100;
/// TPID of a service tag (IEEE 802.1ad).
pub const TPID_8021AD: u16 = 0x88a8;
/// The VLAN ID's bits of a TCI; 0 is a priority tag and names no VLAN.
pub const VLAN_ID_MASK: u16 = 0x0fff;
/// How many tags Open vSwitch reads (`other_config:vlan-limit`, 0 as ovn-controller keeps it; its
/// kernel datapath reads two whatever the limit).
pub const TAGS_READ: usize = 2;

/// The lowest Ethernet type: anything below is an IEEE 802.3 length.
pub const ETHERNET_TYPE_MIN: u16 = 0x0600;
/// Length of the LLC and SNAP headers (IEEE 802.2; RFC 1042).
pub const LLC_SNAP: usize = 8;
/// DSAP and SSAP of SNAP.
pub const LLC_SAP_SNAP: u8 = 0xaa;

/// Ethernet type of ARP (RFC 826).
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// Ethernet type of IPv4, also ARP's protocol type.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// Ethernet type of IPv6 (RFC 2464, 3).
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Length of an ARP body of Ethernet and IPv4 addresses (RFC 826).
pub const ARP_BODY: usize = 28;
/// Where the sender's hardware address stands in such a body, its protocol address behind it.
pub const ARP_SENDER: usize = 8;
/// ARP hardware type of Ethernet.
pub const ARP_HARDWARE_ETHERNET: u16 = 1;
/// ARP operation "request".
pub const ARP_REQUEST: u16 = 1;
/// ARP operation "reply".
pub const ARP_REPLY: u16 = 2;

/// Length of the fixed IPv6 header (RFC 8200, 3).
pub const IPV6_HEADER: usize = 40;
/// Next header: hop-by-hop options (RFC 8200, 4.3).
pub const NEXT_HOP_BY_HOP: u8 = 0;
/// Next header: routing (RFC 8200, 4.4).
pub const NEXT_ROUTING: u8 = 43;
/// Next header: fragment (RFC 8200, 4.5).
pub const NEXT_FRAGMENT: u8 = 44;
/// Length of a fragment header.
pub const FRAGMENT_HEADER: usize = 8;
/// The fragment offset's bits in the header's third and fourth byte (RFC 8200, 4.5).
pub const FRAGMENT_OFFSET_MASK: u16 = 0xfff8;
/// Next header: authentication (RFC 4302).
pub const NEXT_AUTHENTICATION: u8 = 51;
/// Next header: ICMPv6 (RFC 4443).
pub const NEXT_ICMPV6: u8 = 58;
/// Next header: destination options (RFC 8200, 4.6).
pub const NEXT_DESTINATION: u8 = 60;
/// How many extension headers the classifier walks before it gives up.
///
/// The newest Linux kernels bound their own walk at the same number (`IP6_MAX_EXT_HDRS_CNT`); older
/// ones and Open vSwitch's userspace datapath have no bound.
pub const MAX_EXTENSION_HEADERS: usize = 12;

/// The least of ICMPv6 that Open vSwitch takes for ICMPv6: its header and one word.
pub const ICMPV6_MIN: usize = 8;
/// ICMPv6 type of a Router Solicitation (RFC 4861, 4.1).
pub const ICMPV6_ROUTER_SOLICITATION: u8 = 133;
/// ICMPv6 type of a Router Advertisement (RFC 4861, 4.2).
pub const ICMPV6_ROUTER_ADVERTISEMENT: u8 = 134;
/// ICMPv6 type of a Neighbor Solicitation (RFC 4861, 4.3).
pub const ICMPV6_NEIGHBOR_SOLICITATION: u8 = 135;
/// ICMPv6 type of a Neighbor Advertisement (RFC 4861, 4.4).
pub const ICMPV6_NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// ICMPv6 type of a Redirect (RFC 4861, 4.5).
pub const ICMPV6_REDIRECT: u8 = 137;
/// The hop limit of every valid NDP packet (RFC 4861, 6.1 and 7.1).
pub const NDP_HOP_LIMIT: u8 = 255;

/// Where the target address stands in a Neighbor Solicitation and Advertisement (RFC 4861, 4.3 and
/// 4.4).
pub const NDP_TARGET: usize = 8;
/// Length of a Neighbor Advertisement without options (RFC 4861, 4.4).
pub const NDP_ADVERTISEMENT: usize = 24;
/// Type of the option with the target's link-layer address (RFC 4861, 4.6.1).
pub const NDP_TARGET_LINK_LAYER: u8 = 2;
/// The first byte of every multicast address (RFC 4291, 2.7).
pub const IPV6_MULTICAST: u8 = 0xff;

/// Whether a TPID is one that Open vSwitch reads as a tag.
#[inline(always)]
#[must_use]
pub const fn is_tag(tpid: u16) -> bool {
    tpid == TPID_8021Q || tpid == TPID_8021AD
}
