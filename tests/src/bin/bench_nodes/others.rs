//! The other nodes of a cluster, as their objects say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use neighsteer::{
    ids::Mac,
    nodes::{Inventory, Node},
};
use neighsteer_tests::lab::{BRIDGE_MAC, NODE, NODE_IPV4, NODE_IPV6, node_manifest};
use serde_json::{Value, json};

/// A node has one address of each family.
pub(crate) const FAMILIES: usize = 2;

/// Other nodes by their numbers, each with a MAC of its own.
#[derive(Clone)]
pub(crate) struct Others {
    macs: Vec<Mac>,
}

impl Others {
    /// So many of them.
    pub(crate) fn new(count: u16) -> Self {
        Self {
            macs: (0..count).map(|number| mac(number, 0)).collect(),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.macs.len()
    }

    /// One node shows up with another MAC, its `turn`th.
    pub(crate) fn change_mac(&mut self, number: u16, turn: u8) {
        if let Some(known) = self.macs.get_mut(usize::from(number)) {
            *known = mac(number, turn);
        }
    }

    /// One more joins.
    pub(crate) fn join(&mut self) {
        let number = u16::try_from(self.macs.len()).unwrap_or(u16::MAX);
        self.macs.push(mac(number, 0));
    }

    /// Every address with its MAC.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = (IpAddr, Mac)> {
        (0..).zip(&self.macs).flat_map(|(number, mac)| {
            let addresses = [IpAddr::V4(ipv4(number)), IpAddr::V6(ipv6(number))];
            addresses.map(|ip| (ip, *mac))
        })
    }

    fn objects(&self) -> impl Iterator<Item = Value> {
        (0..).zip(&self.macs).map(|(number, mac)| {
            let name = format!("ovn-worker{number}.others");
            let chassis = format!("chassis-other-{number}");
            node_manifest(&name, &chassis, *mac, ipv4(number), ipv6(number))
        })
    }

    /// All of their objects in one list, as `kubectl get nodes -o json` prints them.
    pub(crate) fn list(&self) -> Value {
        let items: Vec<Value> = self.objects().collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// What is known of them and of this node.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub(crate) fn inventory(&self, own_chassis: &str) -> anyhow::Result<Inventory> {
        let own = node_manifest(NODE, own_chassis, BRIDGE_MAC, NODE_IPV4, NODE_IPV6);
        let mut inventory = Inventory::default();
        for object in self.objects().chain([own]) {
            let (name, node) = Node::read(&object)?;
            inventory.nodes.insert(name, node);
        }
        Ok(inventory)
    }
}

fn mac(number: u16, turn: u8) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([0x02, 0x42, 0xad, turn, high, low])
}

/// On the node's network, which has 16 bits for hosts.
fn ipv4(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(172, 18, 32_u8.wrapping_add(high), low)
}

fn ipv6(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 2, number)
}
