//! How a lab is to be, and its start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::Lab;
use super::directory::{Datapath, Directory, State, this_process};
use super::error::{LabError, Result};
use super::flows::FlowSet;
use super::network::Network;
use super::programs::{OvnVersion, Programs};

/// How a lab is to be.
#[derive(Debug, Clone)]
pub struct Builder {
    udns: u16,
    pods: BTreeSet<Network>,
    age_threshold: u32,
    ipv6: bool,
    flows: FlowSet,
    version: Option<OvnVersion>,
    datapath: Datapath,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            udns: 3,
            pods: BTreeSet::new(),
            age_threshold: 300,
            ipv6: true,
            flows: FlowSet::Legacy,
            version: None,
            datapath: Datapath::default(),
        }
    }
}

impl Builder {
    /// Primary UDNs besides the default network (default 3).
    #[must_use]
    pub fn udns(mut self, udns: u16) -> Self {
        self.udns = udns;
        self
    }

    /// The networks that get a pod; 0 is the default network (default: none).
    #[must_use]
    pub fn pods(mut self, networks: impl IntoIterator<Item = u16>) -> Self {
        self.pods = networks.into_iter().map(Network).collect();
        self
    }

    /// `mac_binding_age_threshold` of the routers in seconds (default 300, as upstream).
    #[must_use]
    pub fn age_threshold(mut self, seconds: u32) -> Self {
        self.age_threshold = seconds;
        self
    }

    /// Whether routers and pods have IPv6 addresses (default yes).
    #[must_use]
    pub fn ipv6(mut self, ipv6: bool) -> Self {
        self.ipv6 = ipv6;
        self
    }

    /// The flows on the external bridge to begin with (default [`FlowSet::Legacy`]).
    #[must_use]
    pub fn flows(mut self, flows: FlowSet) -> Self {
        self.flows = flows;
        self
    }

    /// The versions of Open vSwitch and OVN (default: what `NEIGHSTEER_LAB_OVN` names, or else the
    /// machine's own).
    #[must_use]
    pub fn version(mut self, version: OvnVersion) -> Self {
        self.version = Some(version);
        self
    }

    /// Lets the kernel forward frames, which few machines' kernels can (default: ovs-vswitchd does).
    #[must_use]
    pub fn kernel_datapath(mut self) -> Self {
        self.datapath = Datapath::Kernel;
        self
    }

    /// Brings the lab up; returns once OVN has installed everything.
    ///
    /// # Errors
    /// When not root, or a program is missing, or a daemon does not come up. Nothing stays behind.
    pub fn start(self) -> Result<Lab> {
        if !nix::unistd::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let version = match self.version {
            Some(version) => version,
            None => OvnVersion::of_environment()?,
        };
        let tree = version.find()?;
        let (directory, state) = Directory::create(|id| State {
            id: id.to_owned(),
            owner: this_process(),
            udns: self.udns,
            pods: self.pods.iter().map(|network| network.0).collect(),
            ipv6: self.ipv6,
            age_threshold: self.age_threshold,
            ovn: version,
            datapath: self.datapath,
        })?;
        let mut lab = Lab {
            programs: Programs::new(tree, &directory.path),
            state,
            node: directory.namespace("node"),
            external: directory.namespace("ext"),
            networks: (0..=self.udns).map(Network).collect(),
            directory,
            daemons: BTreeMap::new(),
            databases: Mutex::new(BTreeMap::new()),
            secondaries: Vec::new(),
        };
        lab.bring_up(&self.pods, self.flows)?;
        Ok(lab)
    }
}
