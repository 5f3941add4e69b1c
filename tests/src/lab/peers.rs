//! Other nodes of the cluster: hosts of their own on the wire, and the manifests that say so.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

use neighsteer::ids::Mac;
use serde_json::{Value, json};

use super::{
    Lab,
    error::{LabError, Result},
    namespace::Namespace,
    network::{BRIDGE, BRIDGE_MAC, EXTERNAL_INTERFACE, NODE, NODE_IPV4, NODE_IPV6},
};

const INTERFACE: &str = "eth0";

/// Another node: an interface with a MAC of its own beside the external host's.
#[derive(Debug, Clone)]
pub struct PeerNode {
    number: u8,
    mac: Mac,
    namespace: Namespace,
}

impl Lab {
    /// Puts another node on the wire; `number` tells it apart.
    ///
    /// # Errors
    /// When it is there already.
    pub fn add_peer_node(&self, number: u8) -> Result<PeerNode> {
        let peer = PeerNode {
            number,
            mac: Mac([0x02, 0x42, 0xac, 0x12, 0x01, number]),
            namespace: self.directory.namespace(&format!("peer{number}")),
        };
        let (made, mac) = (format!("peer{number}"), peer.mac);
        peer.namespace.create()?;
        // An interface of the external host must not answer for the peer's addresses.
        self.external.ip(&format!(
            "link add link {EXTERNAL_INTERFACE} name {made} address {mac} type macvlan mode bridge\n\
             link set {made} netns {} name {INTERFACE}\n",
            peer.namespace.name()
        ))?;
        peer.namespace.ip(&format!(
            "link set {INTERFACE} up\n\
             addr add {}/16 dev {INTERFACE}\n\
             addr add {}/64 dev {INTERFACE} nodad\n",
            peer.ipv4(),
            peer.ipv6()
        ))?;
        peer.namespace.disable_checksum_offload(INTERFACE)?;
        Ok(peer)
    }
}

impl PeerNode {
    /// The node's name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("ovn-worker{}.lab", self.number)
    }

    /// Its IPv4 address.
    #[must_use]
    pub fn ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(172, 18, 1, self.number)
    }

    /// Its IPv6 address.
    #[must_use]
    pub fn ipv6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 1, self.number.into())
    }

    /// Both addresses.
    #[must_use]
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.ipv4().into(), self.ipv6().into()]
    }

    /// The MAC that it has now.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Gives it another MAC. It announces nothing: only a manifest tells of it.
    ///
    /// # Errors
    /// When its interface is gone.
    pub fn set_mac(&mut self, mac: Mac) -> Result<()> {
        self.namespace.sysctl("net/ipv4/conf/all/arp_notify", "0")?;
        self.namespace
            .sysctl(&format!("net/ipv6/conf/{INTERFACE}/ndisc_notify"), "0")?;
        self.namespace
            .ip(&format!("link set {INTERFACE} address {mac}\n"))?;
        self.mac = mac;
        Ok(())
    }

    /// Takes it off the wire.
    ///
    /// # Errors
    /// When its namespace cannot be removed.
    pub fn remove(self) -> Result<()> {
        self.namespace.remove()
    }

    /// Its Node object.
    #[must_use]
    pub fn manifest(&self) -> Value {
        self.manifest_with(self.mac)
    }

    /// Its Node object, with another MAC than it has.
    #[must_use]
    pub fn manifest_with(&self, mac: Mac) -> Value {
        node_manifest(
            &self.name(),
            &format!("chassis-{}", self.number),
            mac,
            self.ipv4(),
            self.ipv6(),
        )
    }
}

/// A Node object, as far as it matters here.
#[must_use]
pub fn node_manifest(name: &str, chassis: &str, mac: Mac, ipv4: Ipv4Addr, ipv6: Ipv6Addr) -> Value {
    // The annotation is a text, and all that it holds is text again.
    let gateway = json!({"default": {
        "mode": "shared",
        "bridge-id": BRIDGE,
        "interface-id": format!("{BRIDGE}_{name}"),
        "mac-address": mac.to_string(),
        "ip-addresses": [format!("{ipv4}/16"), format!("{ipv6}/64")],
        "next-hops": [],
        "node-port-enable": "true",
        "vlan-id": "0",
    }});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {
                "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
                "k8s.ovn.org/node-chassis-id": chassis,
            },
        },
        "status": {"addresses": [
            {"type": "InternalIP", "address": ipv4.to_string()},
            {"type": "InternalIP", "address": ipv6.to_string()},
            {"type": "Hostname", "address": name},
        ]},
    })
}

/// An UplinkState object, as far as it matters here: a node's end of the uplink `up`.
#[must_use]
pub fn uplink_manifest(
    node: &str,
    bridge: &str,
    mac: Mac,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1alpha1",
        "kind": "UplinkState",
        "metadata": {"name": format!("up.{node}")},
        "spec": {"uplinkName": "up", "nodeName": node},
        "status": {
            "type": "OVSBridge",
            "ovsBridge": {"name": bridge},
            "macAddress": mac.to_string(),
            "ipAddresses": [format!("{ipv4}/16"), format!("{ipv6}/64")],
        },
    })
}

/// A directory of manifests, one file a node: what `--nodes` is directed at.
#[derive(Debug)]
pub struct Manifests {
    directory: PathBuf,
}

impl Lab {
    /// Makes the directory of manifests, with this node's own in it.
    ///
    /// # Errors
    /// When it exists, or cannot be written.
    pub fn manifests(&self) -> Result<Manifests> {
        let directory = self.directory().join("nodes");
        fs::create_dir(&directory).map_err(LabError::io("create", directory.display()))?;
        let manifests = Manifests { directory };
        let own = node_manifest(NODE, &self.chassis(), BRIDGE_MAC, NODE_IPV4, NODE_IPV6);
        manifests.write(NODE, &own)?;
        Ok(manifests)
    }
}

impl Manifests {
    /// Where they are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes an object's file, or replaces it: whole, so that no reader sees half of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, object: &Value) -> Result<()> {
        let new = self.directory.join(format!(".{name}.new"));
        let file = self.directory.join(format!("{name}.json"));
        fs::write(&new, format!("{object:#}"))
            .and_then(|()| fs::rename(&new, &file))
            .map_err(LabError::io("write", file.display()))
    }

    /// Writes a peer's Node object.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, peer: &PeerNode) -> Result<()> {
        self.write(&peer.name(), &peer.manifest())
    }

    /// Removes a node's file.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove(&self, name: &str) -> Result<()> {
        let file = self.directory.join(format!("{name}.json"));
        fs::remove_file(&file).map_err(LabError::io("remove", file.display()))
    }
}
