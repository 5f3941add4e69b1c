//! Who announces which address.

use std::net::IpAddr;

use etherparse::ArpPacketSlice;
use neighsteer_common::{Kind, Policy};

use super::ipv6;

/// An address that a frame announces, and the Ethernet addresses at which it says that is.
pub(super) struct Announced {
    address: IpAddr,
    macs: Vec<Vec<u8>>,
}

impl Announced {
    /// The sender of ARP that tells an operation of its own (RFC 826; RFC 5227, 1.1).
    pub(super) fn by_arp(kind: Kind, body: &[u8]) -> Option<Self> {
        if !matches!(
            kind,
            Kind::ArpRequest | Kind::ArpReply | Kind::ArpAnnouncement
        ) {
            return None;
        }
        let arp = ArpPacketSlice::from_slice(body).ok()?;
        let address: [u8; 4] = arp.sender_protocol_addr().try_into().ok()?;
        Some(Self {
            address: address.into(),
            macs: vec![arp.sender_hw_addr().to_vec()],
        })
    }

    /// The target of an advertisement: at the frame's source, and where its first option says.
    pub(super) fn by_advertisement(kind: Kind, message: &[u8], source: [u8; 6]) -> Option<Self> {
        if kind != Kind::NeighborAdvertisement {
            return None;
        }
        let mut macs = vec![source.to_vec()];
        if let Some([2, 1, mac @ ..]) = message.get(24..32) {
            macs.push(mac.to_vec());
        }
        Some(Self {
            address: ipv6::target(message).into(),
            macs,
        })
    }

    /// Whether that is an address of the node and somebody else, on the network of the policy.
    pub(super) fn is_of_node_elsewhere(&self, vlan_id: Option<u16>, policy: &Policy) -> bool {
        let known = match self.address {
            IpAddr::V4(address) => address == policy.node_addresses.ipv4(),
            IpAddr::V6(address) => policy.node_addresses.ipv6().contains(&address),
        };
        // A priority tag is of no VLAN.
        let vlan_id = vlan_id.filter(|id| *id != 0 || policy.gateway_vlan.is_some());
        known
            && !self.address.is_unspecified()
            && vlan_id == policy.gateway_vlan
            && self.macs.iter().any(|mac| *mac != policy.bridge_mac)
    }
}
