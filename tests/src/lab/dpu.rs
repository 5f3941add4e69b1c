//! The lab's node as a DPU: the host is a namespace of its own, and a veth stands for its
//! representor.

use std::fs;
use std::path::PathBuf;

use super::Lab;
use super::error::{LabError, Result};
use super::namespace::{Namespace, veth};
use super::network::{BRIDGE, BRIDGE_MAC, NODE_IPV4};

/// The host's interface in its namespace.
pub const HOST_INTERFACE: &str = "eth0";
/// The address of the bridge's own port on a DPU: nobody else's.
const OWN_MAC: &str = "02:42:ac:12:00:fe";
/// `phys_switch_id` of the lab's ports.
const SWITCH: &str = "1c34da0003a1b2c0";

impl Lab {
    /// Makes the node a DPU: the bridge's own port has neither the address of the host nor its
    /// Ethernet address, no row says which port is the uplink, and `representor` leads to the host.
    ///
    /// # Errors
    /// When it was done before.
    pub fn become_dpu(&self, representor: &str) -> Result<()> {
        self.node.ip(&format!("addr flush dev {BRIDGE}\n"))?;
        self.vsctl([
            "set",
            "bridge",
            BRIDGE,
            &format!("other_config:hwaddr=\"{OWN_MAC}\""),
        ])?;
        self.vsctl(["remove", "bridge", BRIDGE, "external_ids", "bridge-uplink"])?;
        self.host_netns().create()?;
        self.make_representor(representor)?;
        self.vsctl(["add-port", BRIDGE, representor])?;
        self.describe_port(&self.uplink(), "p0")?;
        self.describe_port(representor, "c1pf0")
    }

    /// The network namespace of a DPU's host.
    #[must_use]
    pub fn host_netns(&self) -> Namespace {
        self.directory.namespace("host")
    }

    /// The directory that stands for sysfs: `--sysfs`.
    #[must_use]
    pub fn sysfs(&self) -> PathBuf {
        self.directory().join("sys")
    }

    /// Writes what sysfs says of a port of the embedded switch.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn describe_port(&self, interface: &str, port_name: &str) -> Result<()> {
        let directory = self.sysfs().join("class/net").join(interface);
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(directory.join("phys_port_name"), format!("{port_name}\n")))
            .and_then(|()| fs::write(directory.join("phys_switch_id"), format!("{SWITCH}\n")))
            .map_err(LabError::io("describe", directory.display()))
    }

    /// Makes the representor's interface, and the host's behind it with the node's addresses.
    ///
    /// # Errors
    /// When it is there.
    pub fn make_representor(&self, name: &str) -> Result<()> {
        let host = self.host_netns();
        self.node.ip(&veth(name, HOST_INTERFACE, &host))?;
        host.ip(&format!(
            "link set {HOST_INTERFACE} address {BRIDGE_MAC} up\n\
             addr add {NODE_IPV4}/16 dev {HOST_INTERFACE}\n"
        ))?;
        self.node.disable_checksum_offload(name)?;
        host.disable_checksum_offload(HOST_INTERFACE)
    }

    /// Removes the representor's interface, and with it the host's. The bridge's port stays, without a
    /// device.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove_representor(&self, name: &str) -> Result<()> {
        self.node.ip(&format!("link del {name}\n"))
    }

    /// Gives the representor another name, in the kernel and then on the bridge.
    ///
    /// # Errors
    /// When it is not there.
    pub fn rename_representor(&self, from: &str, to: &str) -> Result<()> {
        self.node.ip(&format!(
            "link set {from} down\nlink set {from} name {to}\nlink set {to} up\n"
        ))?;
        self.vsctl(["--", "del-port", BRIDGE, from, "--", "add-port", BRIDGE, to])
            .map(drop)
    }
}
