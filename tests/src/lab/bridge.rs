//! The external bridge as its manager would leave it, and what it does with a frame.

use std::fmt::Write as _;
use std::fs;

use super::Lab;
use super::command::{run, run_with_input};
use super::daemon::Daemon;
use super::error::{LabError, Result};
use super::flows::{BridgePorts, FlowSet, render};
use super::network::{BRIDGE, BRIDGE_MAC, Network};
use super::trace::Trace;

impl Lab {
    /// Replaces all flows of the external bridge, as `ovnkube-node` does every 15 seconds: flows
    /// that others installed go as well.
    ///
    /// [`FlowSet::Legacy`] also sets no-flood on the UDNs' patch ports and the static FDB entry;
    /// [`FlowSet::Base`] leaves both as they are.
    ///
    /// # Errors
    /// When a port is missing, or Open vSwitch refuses the flows.
    pub fn set_flows(&self, set: FlowSet) -> Result<()> {
        let ports = self.bridge_ports()?;
        if set == FlowSet::Legacy {
            for (network, number) in &ports.patches {
                if !network.is_default() {
                    self.modify_port(*number, true)?;
                }
            }
            self.add_static_fdb_entry()?;
        }
        self.replace_flows(&render(set, &ports))
    }

    /// Makes the external bridge drop whatever comes in.
    pub(super) fn drop_everything(&self) -> Result<()> {
        self.replace_flows("priority=0,actions=drop\n")
    }

    pub(super) fn replace_flows(&self, flows: &str) -> Result<()> {
        let mut command = self.ofctl();
        command.args(["--bundle", "replace-flows"]);
        command.arg(self.management_remote(BRIDGE)).arg("-");
        run_with_input(&mut command, flows).map(drop)
    }

    pub(super) fn bridge_ports(&self) -> Result<BridgePorts> {
        let ports = self.openflow_ports()?;
        let number = |name: String| {
            ports
                .get(&name)
                .copied()
                .ok_or_else(|| LabError::Choice(format!("no port {name} on the lab's bridges")))
        };
        Ok(BridgePorts {
            uplink: number(self.uplink())?,
            patches: self
                .networks()
                .map(|network| Ok((network, number(network.patch_port())?)))
                .collect::<Result<_>>()?,
        })
    }

    /// A bridge's management socket as `ovs-ofctl` takes it.
    #[must_use]
    pub fn management_remote(&self, bridge: &str) -> String {
        format!("unix:{}", self.management_socket(bridge).display())
    }

    fn ofctl(&self) -> std::process::Command {
        self.tool("ovs-ofctl")
    }

    /// The flows of a bridge, one a line, without statistics and names.
    ///
    /// # Errors
    /// When the bridge does not answer.
    pub fn flows(&self, bridge: &str) -> Result<Vec<String>> {
        let mut command = self.ofctl();
        command.args(["--no-stats", "--no-names", "dump-flows"]);
        let text = run(command.arg(self.management_remote(bridge)))?;
        Ok(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Sets or clears no-flood on a network's patch port.
    ///
    /// # Errors
    /// When there is no such port.
    pub fn set_no_flood(&self, network: Network, no_flood: bool) -> Result<()> {
        let ports = self.openflow_ports()?;
        let name = network.patch_port();
        let Some(number) = ports.get(&name) else {
            return Err(LabError::Choice(format!("no port {name}")));
        };
        self.modify_port(*number, no_flood)
    }

    fn modify_port(&self, number: u32, no_flood: bool) -> Result<()> {
        // By number: OpenFlow cuts names at 15 characters.
        let mut command = self.ofctl();
        command.arg("mod-port").arg(self.management_remote(BRIDGE));
        command.arg(number.to_string());
        run(command.arg(if no_flood { "no-flood" } else { "flood" })).map(drop)
    }

    /// The names of the external bridge's ports that are no-flood.
    ///
    /// # Errors
    /// When the bridge does not answer.
    pub fn no_flood_ports(&self) -> Result<Vec<String>> {
        let mut command = self.ofctl();
        command.arg("dump-ports-desc");
        let text = run(command.arg(self.management_remote(BRIDGE)))?;
        let names = self.openflow_ports()?;
        let mut current = None;
        let mut found = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some((number, _)) = line.split_once('(')
                && let Ok(number) = number.parse::<u32>()
            {
                current = Some(number);
            } else if line.starts_with("config:") && line.contains("NO_FLOOD") {
                let named = names.iter().find(|(name, number)| {
                    Some(**number) == current
                        && name.starts_with("patch-")
                        && name.ends_with("-to-br-int")
                });
                found.extend(named.map(|(name, _)| name.clone()));
            }
        }
        Ok(found)
    }

    /// Adds the static FDB entry that keeps the bridge's address on its own port.
    ///
    /// # Errors
    /// When ovs-vswitchd refuses it.
    pub fn add_static_fdb_entry(&self) -> Result<()> {
        // The port is the bridge's name: `LOCAL` is refused.
        self.add_static_fdb_entry_to(BRIDGE)
    }

    /// Adds a static FDB entry of the bridge's address that leads to this port.
    ///
    /// # Errors
    /// When ovs-vswitchd refuses it.
    pub fn add_static_fdb_entry_to(&self, port: &str) -> Result<()> {
        let arguments = ["fdb/add", BRIDGE, port, "0", &BRIDGE_MAC.to_string()];
        self.appctl(Daemon::Vswitchd, &arguments).map(drop)
    }

    /// Removes that entry.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove_static_fdb_entry(&self) -> Result<()> {
        let arguments = ["fdb/del", BRIDGE, "0", &BRIDGE_MAC.to_string()];
        self.appctl(Daemon::Vswitchd, &arguments).map(drop)
    }

    /// Whether that entry is there.
    ///
    /// # Errors
    /// When ovs-vswitchd does not answer.
    pub fn has_static_fdb_entry(&self) -> Result<bool> {
        Ok(self.static_fdb_entry()?.is_some())
    }

    /// The port, a number or `LOCAL`, that a static entry of the bridge's address leads to.
    ///
    /// # Errors
    /// When ovs-vswitchd does not answer.
    pub fn static_fdb_entry(&self) -> Result<Option<String>> {
        let mac = BRIDGE_MAC.to_string();
        let text = self.appctl(Daemon::Vswitchd, &["fdb/show", BRIDGE])?;
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains(&mac) && line.contains("static"));
        let port = line.and_then(|line| line.split_whitespace().next());
        Ok(port.map(ToOwned::to_owned))
    }

    /// Forgets learned addresses; static entries stay.
    ///
    /// # Errors
    /// When ovs-vswitchd does not answer.
    pub fn flush_fdb(&self) -> Result<()> {
        self.appctl(Daemon::Vswitchd, &["fdb/flush", BRIDGE])
            .map(drop)
    }

    /// What the external bridge would do with a frame that comes in by a port.
    ///
    /// # Errors
    /// When there is no such port, or ovs-vswitchd refuses the frame.
    pub fn trace(&self, port: &str, frame: &[u8]) -> Result<Trace> {
        let ports = self.openflow_ports()?;
        let Some(number) = ports.get(port) else {
            return Err(LabError::Choice(format!("no port {port}")));
        };
        let hex = frame.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let in_port = format!("in_port={number}");
        let arguments = ["ofproto/trace", "--names", BRIDGE, &in_port, &hex];
        let text = self.appctl(Daemon::Vswitchd, &arguments)?;
        Ok(Trace::parse(BRIDGE, text))
    }

    /// The end of a daemon's log.
    ///
    /// # Errors
    /// When there is none.
    pub fn daemon_log(&self, daemon: Daemon) -> Result<String> {
        let file = self.directory().join(format!("{}.log", daemon.name()));
        fs::read_to_string(&file).map_err(LabError::io("read", file.display()))
    }
}
