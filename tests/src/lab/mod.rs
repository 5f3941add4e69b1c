//! A node with real OVN on one machine: ovsdb-server, ovs-vswitchd with the userspace datapath,
//! ovn-northd and ovn-controller, network namespaces for the node, an external host and pods, and
//! N primary UDNs whose gateway routers share one MAC address and the node's addresses.
//!
//! A lab lives in one directory and in namespaces with names of its own, so that several can be
//! up at once. It ends with the value that owns it, also by a panic; what an owner that was killed
//! leaves behind is found by [`sweep`]. Needs root.

mod agent;
mod bridge;
mod builder;
mod command;
mod control;
mod daemon;
mod database;
mod directory;
mod dpu;
mod error;
mod flows;
mod labs;
mod manager;
mod namespace;
mod network;
mod node;
mod northbound;
mod packet;
mod peers;
mod programs;
mod rows;
mod signals;
mod sockets;
mod static_rows;
mod trace;
mod uplink;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use self::daemon::Process;
use self::directory::Directory;
use self::northbound::RouterOptions;
use self::programs::Programs;

pub use self::agent::AgentProcess;
pub use self::builder::Builder;
pub(crate) use self::command::run;
pub use self::daemon::{Daemon, resident_bytes};
pub use self::database::Database;
pub use self::directory::{Datapath, State};
pub use self::dpu::HOST_INTERFACE;
pub use self::error::{LabError, Result, interrupt, wait_until};
pub use self::flows::FlowSet;
pub use self::labs::{labs, remove_labs, sweep};
pub use self::manager::Manager;
pub use self::namespace::Namespace;
pub use self::network::*;
pub use self::northbound::SecondaryLocalnet;
pub use self::packet::Capture;
pub use self::peers::{Manifests, PeerNode, node_manifest, uplink_manifest};
pub use self::programs::{OvnVersion, VERSION_VARIABLE, Versions};
pub use self::rows::MacBinding;
pub use self::signals::end_labs_on_signals;
pub use self::static_rows::StaticBinding;
pub use self::trace::{Lookup, Trace};
pub use self::uplink::UPLINK_BRIDGE;

/// A running lab. Dropping it ends all that it started and removes its namespaces and directory.
#[derive(Debug)]
pub struct Lab {
    directory: Directory,
    state: State,
    programs: Programs,
    node: Namespace,
    external: Namespace,
    networks: BTreeSet<Network>,
    daemons: BTreeMap<Daemon, Process>,
    databases: Mutex<BTreeMap<Daemon, Database>>,
    secondaries: Vec<SecondaryLocalnet>,
}

impl Lab {
    /// A lab's description, to be filled in and started.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The directory of sockets, databases and logs; also `OVS_RUNDIR`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory.path
    }

    /// What the lab's directory says about it.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The networks that exist, the default one first.
    pub fn networks(&self) -> impl DoubleEndedIterator<Item = Network> {
        self.networks.iter().copied()
    }

    /// The primary UDNs that exist.
    pub fn udns(&self) -> impl DoubleEndedIterator<Item = Network> {
        self.networks().filter(|network| !network.is_default())
    }

    /// The socket of a database server.
    fn socket(&self, daemon: Daemon) -> PathBuf {
        let (socket, ..) = daemon.serves().unwrap_or_default();
        self.directory().join(socket)
    }

    /// Where the Open_vSwitch database listens, as an OVSDB remote (`unix:…`).
    #[must_use]
    pub fn ovs_remote(&self) -> String {
        format!("unix:{}", self.socket(Daemon::OvsDatabase).display())
    }

    /// Where the northbound database listens, as an OVSDB remote.
    #[must_use]
    pub fn northbound_remote(&self) -> String {
        format!("unix:{}", self.socket(Daemon::Northbound).display())
    }

    /// Where the southbound database listens, as an OVSDB remote.
    #[must_use]
    pub fn southbound_remote(&self) -> String {
        format!("unix:{}", self.socket(Daemon::Southbound).display())
    }

    /// The socket for OpenFlow with a bridge.
    #[must_use]
    pub fn management_socket(&self, bridge: &str) -> PathBuf {
        self.directory().join(format!("{bridge}.mgmt"))
    }

    /// The node's network namespace: uplink, bridge and agent are in it.
    #[must_use]
    pub fn node_netns(&self) -> &Namespace {
        &self.node
    }

    /// The external host's network namespace.
    #[must_use]
    pub fn external_netns(&self) -> &Namespace {
        &self.external
    }

    /// The network namespace of a network's pod.
    #[must_use]
    pub fn pod_netns(&self, network: Network) -> Namespace {
        self.directory.namespace(&format!("pod{}", network.0))
    }

    /// The uplink's interface in the node's namespace; unique to the lab.
    #[must_use]
    pub fn uplink(&self) -> String {
        self.directory.uplink()
    }

    /// The chassis' name: `options:chassis` of the routers, `system-id` of Open vSwitch.
    #[must_use]
    pub fn chassis(&self) -> String {
        format!("chassis-{}", self.state.id)
    }

    /// A command that runs a tool of Open vSwitch's or OVN's, of the lab's version, with the
    /// environment that it needs for this lab.
    #[must_use]
    pub fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.path(program));
        command.envs(self.environment());
        command
    }

    /// Variables that direct OVS's and OVN's tools to this lab.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let directory = self.directory().display().to_string();
        let mut variables: Vec<_> = [
            "OVS_RUNDIR",
            "OVS_LOGDIR",
            "OVS_DBDIR",
            "OVS_SYSCONFDIR",
            "OVN_RUNDIR",
            "OVN_LOGDIR",
            "OVN_DBDIR",
        ]
        .map(|name| (name, directory.clone()))
        .to_vec();
        variables.push(("OVN_NB_DB", self.northbound_remote()));
        variables.push(("OVN_SB_DB", self.southbound_remote()));
        variables
    }

    fn router_options(&self) -> RouterOptions {
        RouterOptions {
            chassis: self.chassis(),
            age_threshold: self.state.age_threshold,
            ipv6: self.state.ipv6,
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for (daemon, process) in &mut self.daemons {
            // Children must be waited for; the rest is found by its environment.
            let _ = process.kill(daemon.name());
        }
        if let Err(error) = self.directory.remove() {
            // A drop cannot fail, and hiding what stays behind would be worse than a line.
            eprintln!("neighsteer-lab: {}: {error}", self.directory.path.display());
        }
    }
}
