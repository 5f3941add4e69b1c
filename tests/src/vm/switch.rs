//! An Open vSwitch with the kernel's own datapath, in the network namespace of the calling thread.

use std::fmt::Write as _;

use crate::dummy_switch::{DummySwitch, DummySwitchError};

/// ovsdb-server and ovs-vswitchd; both end when it is dropped, and the datapath with the namespace.
#[derive(Debug)]
pub struct KernelSwitch(DummySwitch);

impl KernelSwitch {
    /// Starts both daemons, which then read two VLAN tags as ovn-controller has it.
    ///
    /// `settings` are further ones of the Open_vSwitch table, such as `other_config:hw-offload=true`:
    /// some are read only when ovs-vswitchd starts.
    ///
    /// # Errors
    /// Where a daemon does not start.
    pub fn start(settings: &[&str]) -> Result<Self, DummySwitchError> {
        let vlan_limit = ["other_config:vlan-limit=0"];
        let settings: Vec<&str> = vlan_limit.iter().chain(settings).copied().collect();
        DummySwitch::start_on_system(&settings).map(Self)
    }

    /// The daemons.
    #[must_use]
    pub fn daemons(&self) -> &DummySwitch {
        &self.0
    }

    /// The daemons, to be ended or started.
    pub fn daemons_mut(&mut self) -> &mut DummySwitch {
        &mut self.0
    }

    /// Makes a bridge with the given Ethernet address, which learns as a switch does, and adds
    /// interfaces that exist.
    ///
    /// # Errors
    /// Where ovs-vsctl fails.
    pub fn add_bridge(
        &self,
        bridge: &str,
        mac: &str,
        interfaces: &[&str],
    ) -> Result<(), DummySwitchError> {
        let mut text = format!(
            "add-br {bridge} -- set bridge {bridge} datapath_type=system fail_mode=standalone \
             other_config:hwaddr=\"{mac}\""
        );
        for interface in interfaces {
            let _ = write!(text, " -- add-port {bridge} {interface}");
        }
        self.vsctl(&text)
    }

    /// Connects two bridges by pairs of patch ports, named as they are given.
    ///
    /// # Errors
    /// Where ovs-vsctl fails.
    pub fn add_patches(
        &self,
        bridges: [&str; 2],
        pairs: &[(String, String)],
    ) -> Result<(), DummySwitchError> {
        let mut text = String::new();
        for (here, there) in pairs {
            for (bridge, port, peer) in [(bridges[0], here, there), (bridges[1], there, here)] {
                let _ = write!(
                    text,
                    " -- add-port {bridge} {port} \
                     -- set interface {port} type=patch options:peer={peer}"
                );
            }
        }
        self.vsctl(&text)
    }

    fn vsctl(&self, text: &str) -> Result<(), DummySwitchError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        self.0.vsctl(&words).map(drop)
    }
}
