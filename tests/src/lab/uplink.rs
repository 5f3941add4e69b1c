//! Networks on a bridge with an uplink of its own, beside the default network's bridge.

use std::time::Duration;

use serde_json::json;

use super::Lab;
use super::command::run;
use super::daemon::Daemon;
use super::database::map;
use super::error::{LabError, Result, wait_until};
use super::namespace::veth;
use super::network::{BRIDGE, BRIDGE_MAC, Network, PHYSICAL_NETWORK};

/// The bridge that [`Lab::move_to_uplink`] makes.
pub const UPLINK_BRIDGE: &str = "br-up";
const UPLINK_NETWORK: &str = "physnet-up";
/// How long ovn-controller may take to move patch ports.
const PORTS: Duration = Duration::from_secs(60);

impl Lab {
    /// The interface of [`UPLINK_BRIDGE`] in the node's namespace.
    #[must_use]
    pub fn second_uplink(&self) -> String {
        self.uplink().replacen("eth", "upl", 1)
    }

    /// Makes a bridge with an uplink of its own and moves UDNs' external switches there; waits until
    /// their patch ports have followed.
    ///
    /// # Errors
    /// When it was done before, or OVN does not follow.
    pub fn move_to_uplink(&self, networks: &[u16]) -> Result<()> {
        self.add_uplink_bridge(&format!("{UPLINK_NETWORK}:{UPLINK_BRIDGE}"))?;
        self.move_more_to_uplink(networks)
    }

    /// The same, each by a physical network of its own name, as OVN-Kubernetes does for networks that
    /// name an uplink.
    ///
    /// # Errors
    /// The same.
    pub fn move_to_named_uplink(&self, networks: &[u16]) -> Result<()> {
        let mappings = networks
            .iter()
            .map(|id| format!("{}:{UPLINK_BRIDGE}", Network(*id).name()));
        let mappings: Vec<String> = mappings.collect();
        self.add_uplink_bridge(&mappings.join(","))?;
        self.move_networks(networks, Network::name)
    }

    fn add_uplink_bridge(&self, mappings: &str) -> Result<()> {
        let uplink = self.second_uplink();
        let peer = format!("{uplink}p");
        self.node.ip(&veth(&uplink, &peer, &self.external))?;
        let datapath = self.state.datapath.kind();
        let text = format!(
            "-- add-br {UPLINK_BRIDGE} -- set bridge {UPLINK_BRIDGE} datapath_type={datapath} \
             fail_mode=standalone other_config:hwaddr=\"{BRIDGE_MAC}\" \
             other_config:disable-in-band=true -- add-port {UPLINK_BRIDGE} {uplink} \
             -- set open . external_ids:ovn-bridge-mappings=\
             \"{PHYSICAL_NETWORK}:{BRIDGE},{mappings}\""
        );
        self.vsctl(text.split_whitespace()).map(drop)
    }

    /// Moves further UDNs there.
    ///
    /// # Errors
    /// When OVN does not follow.
    pub fn move_more_to_uplink(&self, networks: &[u16]) -> Result<()> {
        self.move_networks(networks, |_| UPLINK_NETWORK.to_owned())
    }

    fn move_networks(&self, networks: &[u16], physical: impl Fn(Network) -> String) -> Result<()> {
        for network in networks {
            let name = Network(*network).localnet_port();
            self.with_database(Daemon::Northbound, |northbound| {
                let options = map([("network_name", physical(Network(*network)))]);
                northbound.transact(vec![json!({
                    "op": "update", "table": "Logical_Switch_Port",
                    "where": [["name", "==", name]], "row": {"options": options},
                })])
            })?;
        }
        self.sync()?;
        let wanted: Vec<String> = networks
            .iter()
            .map(|id| Network(*id).patch_port())
            .collect();
        // ovn-controller 23.03 makes what is missing, and leaves what has its name on another bridge;
        // 25.03 has moved the ports already.
        let left = self.vsctl(["list-ports", BRIDGE])?;
        for port in left
            .lines()
            .filter(|left| wanted.iter().any(|it| it == left))
        {
            self.vsctl(["--if-exists", "del-port", port])?;
        }
        wait_until(PORTS, "patch ports to move", || {
            self.sync().map_err(|error| error.to_string())?;
            let there = self.vsctl(["list-ports", UPLINK_BRIDGE]);
            let there = there.map_err(|error| error.to_string())?;
            let missing = |port: &&String| !there.lines().any(|line| line == **port);
            match wanted.iter().find(missing) {
                None => Ok(()),
                Some(missing) => Err(format!("{missing} is not there")),
            }
        })
    }

    /// Runs `ovs-ofctl` on a bridge: a command, and what comes after the bridge.
    ///
    /// # Errors
    /// When it fails.
    pub fn ofctl_on(&self, bridge: &str, command: &[&str], arguments: &[&str]) -> Result<String> {
        let mut tool = self.tool("ovs-ofctl");
        tool.args(command).arg(self.management_remote(bridge));
        run(tool.args(arguments))
    }

    /// The OpenFlow number of a port.
    ///
    /// # Errors
    /// When it has none.
    pub fn ofport(&self, port: &str) -> Result<u32> {
        let ports = self.openflow_ports()?;
        let number = ports.get(port).copied();
        number.ok_or_else(|| LabError::Choice(format!("no port {port}")))
    }
}
