//! The bridge that these tests use, and what ovs-ofctl says of it.

use std::path::Path;

use neighsteer_tests::dummy_switch::DummySwitch;

pub const BRIDGE: &str = "br-ex";

/// An ovs-vswitchd with one bridge.
pub struct Ovs(DummySwitch);

impl Ovs {
    /// With a bridge that has no flow and no port but its own.
    pub fn start() -> Self {
        let ovs = Self(DummySwitch::start().unwrap());
        ovs.add_bridge();
        ovs
    }

    pub fn add_bridge(&self) {
        self.0.add_bridge(BRIDGE, "02:42:ac:12:00:03").unwrap();
        // A bridge begins with NORMAL for everything.
        self.ofctl(&["del-flows"], &[]);
    }

    /// Adds ports with these numbers, named after them. In portions: ovs-vsctl takes a time that is
    /// the square of their number.
    pub fn add_ports(&self, numbers: impl Iterator<Item = u16>) {
        let ports: Vec<(String, u16)> = numbers
            .map(|number| (format!("p{number}"), number))
            .collect();
        let ports: Vec<(&str, u16)> = ports
            .iter()
            .map(|(name, number)| (name.as_str(), *number))
            .collect();
        for portion in ports.chunks(125) {
            self.0.add_ports(BRIDGE, portion).unwrap();
        }
    }

    pub fn rundir(&self) -> &Path {
        self.0.run_directory()
    }

    pub fn kill_switch(&mut self) {
        self.0.kill_vswitchd();
    }

    pub fn vsctl(&self, arguments: &[&str]) {
        self.0.vsctl(arguments).unwrap();
    }

    /// Runs ovs-ofctl on the bridge with OpenFlow 1.3: `command` before its name, `arguments` after.
    pub fn ofctl(&self, command: &[&str], arguments: &[&str]) -> String {
        let options = [&["-O", "OpenFlow13"], command].concat();
        self.0.ofctl(&options, BRIDGE, arguments).unwrap()
    }

    /// Sets or clears no-flood by way of ovs-ofctl.
    pub fn mod_port(&self, port: &str, flag: &str) {
        let options = ["-O", "OpenFlow10", "mod-port"];
        self.0.ofctl(&options, BRIDGE, &[port, flag]).unwrap();
    }

    /// The flows as ovs-ofctl lists them, without counters and ages, sorted.
    pub fn dump(&self) -> Vec<String> {
        let text = self.ofctl(&["--no-stats", "--no-names", "dump-flows"], &[]);
        let flows = text.lines().filter(|line| line.contains("actions="));
        let mut flows: Vec<String> = flows.map(|line| line.trim().to_owned()).collect();
        flows.sort();
        flows
    }
}
