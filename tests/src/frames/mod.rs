//! Frames for tests, from the ordinary to the malformed.
//!
//! Every builder starts from what a well-behaved host sends; its fields are public, so that a test
//! can spoil exactly one of them. Nothing here knows how the classifier reads a frame.

pub mod arp;
pub mod ethernet;
pub mod ipv6;
pub mod ndp;
pub mod tcp;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use arp::Arp;
pub use ethernet::{EthernetFrame, Framing, Tag};
pub use ipv6::{Extension, Ipv6};
pub use ndp::{Ndp, NdpOption};
pub use neighsteer::ids::Mac;

/// `ff:ff:ff:ff:ff:ff`.
pub const BROADCAST: Mac = Mac([0xff; 6]);
/// Six zero bytes: what the target hardware address of an ARP request holds.
pub const ZERO_MAC: Mac = Mac([0; 6]);
/// The MAC address that the bridge and its gateway routers share, in tests without a lab.
pub const BRIDGE_MAC: Mac = Mac([0x02, 0x42, 0xac, 0x12, 0x00, 0x03]);
/// A host on the external network, in tests without a lab.
pub const HOST_MAC: Mac = Mac([0x02, 0x42, 0xac, 0x12, 0x00, 0x63]);
/// The node's address.
pub const NODE_IP: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 3);
/// The external host's address.
pub const HOST_IP: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 99);
/// The node's IPv6 address.
pub const NODE_IP6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3);
/// The external host's IPv6 address.
pub const HOST_IP6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x99);

/// Bytes as hex digits, as `ovs-appctl ofproto/trace` takes a frame.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A unicast ARP reply: `from_ip` is at `from_mac`.
#[must_use]
pub fn arp_reply(from_mac: Mac, from_ip: Ipv4Addr, to_mac: Mac, to_ip: Ipv4Addr) -> Vec<u8> {
    Arp::reply(from_mac, from_ip, to_mac, to_ip)
        .frame(to_mac)
        .to_bytes()
}

/// A broadcast ARP request: who has `wanted`?
#[must_use]
pub fn who_has(from_mac: Mac, from_ip: Ipv4Addr, wanted: Ipv4Addr) -> Vec<u8> {
    Arp::request(from_mac, from_ip, wanted)
        .frame(BROADCAST)
        .to_bytes()
}

/// A broadcast ARP announcement (gratuitous ARP, RFC 5227, 3): `ip` is at `mac`.
#[must_use]
pub fn arp_announcement(mac: Mac, ip: Ipv4Addr) -> Vec<u8> {
    Arp::announcement(mac, ip).frame(BROADCAST).to_bytes()
}

/// A solicited unicast Neighbor Advertisement: `target` (also the source address) is at `from_mac`.
#[must_use]
pub fn neighbor_advertisement(
    from_mac: Mac,
    target: Ipv6Addr,
    to_mac: Mac,
    to_ip: Ipv6Addr,
) -> Vec<u8> {
    Ndp::advertisement(target, true, from_mac)
        .packet(target, to_ip)
        .frame(from_mac, to_mac)
        .to_bytes()
}

/// An unsolicited Neighbor Advertisement to all nodes (RFC 4861, 7.2.6): `target` is at `from_mac`.
#[must_use]
pub fn unsolicited_advertisement(from_mac: Mac, target: Ipv6Addr) -> Vec<u8> {
    Ndp::advertisement(target, false, from_mac)
        .packet(target, ndp::ALL_NODES)
        .frame(from_mac, ethernet::multicast_mac(ndp::ALL_NODES))
        .to_bytes()
}

/// A Neighbor Solicitation to the solicited-node multicast group of `target`.
#[must_use]
pub fn neighbor_solicitation(from_mac: Mac, from_ip: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let group = ndp::solicited_node(target);
    Ndp::solicitation(target, from_mac)
        .packet(from_ip, group)
        .frame(from_mac, ethernet::multicast_mac(group))
        .to_bytes()
}

/// A unicast Neighbor Solicitation (reachability probe, RFC 4861, 7.3.3).
#[must_use]
pub fn unicast_solicitation(
    from_mac: Mac,
    from_ip: Ipv6Addr,
    to_mac: Mac,
    target: Ipv6Addr,
) -> Vec<u8> {
    Ndp::solicitation(target, from_mac)
        .packet(from_ip, target)
        .frame(from_mac, to_mac)
        .to_bytes()
}

#[cfg(test)]
mod tests;
