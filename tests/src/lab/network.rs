//! What OVN-Kubernetes calls things, and the lab's addresses.
//!
//! Names follow its `GetNetworkScopedName`: the network's name with `-` and `/` replaced by `.`,
//! an underscore, and the object's name. The node's and the networks' names hold `-` and `.` on
//! purpose: whoever takes the names apart by splitting must fail here.

use std::net::{Ipv4Addr, Ipv6Addr};

use neighsteer::ids::Mac;

/// The node's name in Kubernetes.
pub const NODE: &str = "ovn-worker.lab";
/// The external bridge.
pub const BRIDGE: &str = "br-ex";
/// The physical network's name in `ovn-bridge-mappings`.
pub const PHYSICAL_NETWORK: &str = "physnet";
/// The MAC address that the bridge, the host and every gateway router share.
pub const BRIDGE_MAC: Mac = Mac([0x02, 0x42, 0xac, 0x12, 0x00, 0x03]);
/// The node's IPv4 address, on the bridge and on every `rtoe-` port; the prefix has 16 bits.
pub const NODE_IPV4: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 3);
/// The node's IPv6 address, on the bridge and on every `rtoe-` port; the prefix has 64 bits.
pub const NODE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 3);
/// The external host's MAC address.
pub const GATEWAY_MAC: Mac = Mac([0x02, 0x42, 0xac, 0x12, 0x00, 0x01]);
/// The external host's first IPv4 address: the default gateway of every gateway router.
pub const GATEWAY_IPV4: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 1);
/// The external host's first IPv6 address: the default gateway of every gateway router.
pub const GATEWAY_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 1);
/// The external host's interface.
pub const EXTERNAL_INTERFACE: &str = "ext0";
/// A pod's IPv4 address: the same in every network, as UDN subnets may overlap.
pub const POD_IPV4: Ipv4Addr = Ipv4Addr::new(10, 100, 0, 2);
/// A pod's IPv6 address: the same in every network.
pub const POD_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd10, 0, 0, 0, 0, 0, 0, 2);
/// A pod's MAC address: the same in every network.
pub const POD_MAC: Mac = Mac([0x0a, 0x58, 0x0a, 0x64, 0x00, 0x02]);

/// A network: 0 is the cluster's default one, the others are primary layer-3 UDNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(pub u16);

impl Network {
    /// The cluster's default network.
    pub const DEFAULT: Self = Self(0);

    /// Whether it is the cluster's default network.
    #[must_use]
    pub fn is_default(self) -> bool {
        self == Self::DEFAULT
    }

    /// The network's name (`k8s.ovn.org/network`) as for a ClusterUserDefinedNetwork.
    #[must_use]
    pub fn name(self) -> String {
        if self.is_default() {
            return "default".to_owned();
        }
        format!("cluster_udn_tenant-{}", self.0)
    }

    /// What stands before the names of the network's objects; empty for the default network.
    #[must_use]
    pub fn prefix(self) -> String {
        if self.is_default() {
            return String::new();
        }
        self.name().replace(['-', '/'], ".") + "_"
    }

    /// The gateway router.
    #[must_use]
    pub fn gateway_router(self) -> String {
        format!("GR_{}{NODE}", self.prefix())
    }

    /// The gateway router's external port.
    #[must_use]
    pub fn external_port(self) -> String {
        format!("rtoe-{}", self.gateway_router())
    }

    /// The gateway router's port towards the pods.
    #[must_use]
    pub fn join_port(self) -> String {
        format!("rtoj-{}", self.gateway_router())
    }

    /// The external switch.
    #[must_use]
    pub fn external_switch(self) -> String {
        format!("ext_{}{NODE}", self.prefix())
    }

    /// The localnet port of the external switch, which is the network's interface ID.
    #[must_use]
    pub fn localnet_port(self) -> String {
        format!("{BRIDGE}_{}{NODE}", self.prefix())
    }

    /// The patch port on the external bridge.
    #[must_use]
    pub fn patch_port(self) -> String {
        format!("patch-{}-to-br-int", self.localnet_port())
    }

    /// The switch of the pods.
    #[must_use]
    pub fn pod_switch(self) -> String {
        format!("{}{NODE}", self.prefix())
    }

    /// The pod's logical switch port.
    #[must_use]
    pub fn pod_port(self) -> String {
        format!("{}lab_pod", self.prefix())
    }

    /// What pods' packets leave the gateway router with: the node's address in the default
    /// network, a masquerade address in a UDN (OVN-Kubernetes: base + 10 + 2 × ID − 1).
    #[must_use]
    pub fn snat_ipv4(self) -> Ipv4Addr {
        if self.is_default() {
            return NODE_IPV4;
        }
        let base = u32::from(Ipv4Addr::new(169, 254, 0, 0));
        Ipv4Addr::from(base + 9 + 2 * u32::from(self.0))
    }

    /// As [`Self::snat_ipv4`], for IPv6.
    #[must_use]
    pub fn snat_ipv6(self) -> Ipv6Addr {
        if self.is_default() {
            return NODE_IPV6;
        }
        let base = u128::from(Ipv6Addr::new(0xfd69, 0, 0, 0, 0, 0, 0, 0));
        Ipv6Addr::from(base + 9 + 2 * u128::from(self.0))
    }

    /// The conntrack mark of the network's connections on the external bridge.
    #[must_use]
    pub fn conntrack_mark(self) -> u32 {
        if self.is_default() {
            1
        } else {
            3 + u32::from(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_ovn_kubernetes() {
        let default = Network::DEFAULT;
        assert_eq!(default.external_port(), "rtoe-GR_ovn-worker.lab");
        assert_eq!(default.patch_port(), "patch-br-ex_ovn-worker.lab-to-br-int");
        let udn = Network(7);
        assert_eq!(
            udn.gateway_router(),
            "GR_cluster_udn_tenant.7_ovn-worker.lab"
        );
        assert_eq!(
            udn.patch_port(),
            "patch-br-ex_cluster_udn_tenant.7_ovn-worker.lab-to-br-int"
        );
    }

    #[test]
    fn masquerade_addresses_start_after_the_ten_reserved_ones() {
        assert_eq!(Network(1).snat_ipv4(), Ipv4Addr::new(169, 254, 0, 11));
        assert_eq!(Network(200).snat_ipv4(), Ipv4Addr::new(169, 254, 1, 153));
        assert_eq!(Network(1).snat_ipv6().to_string(), "fd69::b");
    }
}
