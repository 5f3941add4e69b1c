//! A node with real OVN on one machine: ovsdb-server, ovs-vswitchd with the userspace datapath,
//! ovn-northd and ovn-controller, network namespaces for the node, an external host and pods, and
//! N primary UDNs whose gateway routers share one MAC address and the node's addresses.
//!
//! A lab lives in one directory and in namespaces with names of its own, so that several can be
//! up at once. It ends with the value that owns it, also by a panic; what an owner that was killed
//! leaves behind is found by [`sweep`]. Needs root.

mod agent;
mod bridge;
mod command;
mod daemon;
mod database;
mod directory;
mod error;
mod flows;
mod namespace;
mod network;
mod node;
mod northbound;
mod packet;
mod rows;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use self::command::run;
use self::daemon::Process;
use self::directory::Directory;
use self::northbound::RouterOptions;

pub use self::agent::AgentProcess;
pub use self::daemon::{Daemon, resident_bytes};
pub use self::database::Database;
pub use self::directory::State;
pub use self::error::{LabError, Result, interrupt, wait_until};
pub use self::flows::FlowSet;
pub use self::namespace::Namespace;
pub use self::network::*;
pub use self::northbound::SecondaryLocalnet;
pub use self::packet::Capture;
pub use self::rows::MacBinding;
pub use self::trace::{Lookup, Trace};

/// How long OVN may take for a change.
const SYNC: Duration = Duration::from_secs(300);

/// How a lab is to be.
#[derive(Debug, Clone)]
pub struct Builder {
    udns: u16,
    pods: BTreeSet<Network>,
    age_threshold: u32,
    ipv6: bool,
    flows: FlowSet,
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

    /// Brings the lab up; returns once OVN has installed everything.
    ///
    /// # Errors
    /// When not root, or a program is missing, or a daemon does not come up. Nothing stays behind.
    pub fn start(self) -> Result<Lab> {
        if !nix::unistd::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let (directory, state) = Directory::create(|id| State {
            id: id.to_owned(),
            owner: directory::this_process(),
            udns: self.udns,
            pods: self.pods.iter().map(|network| network.0).collect(),
            ipv6: self.ipv6,
            age_threshold: self.age_threshold,
        })?;
        let mut lab = Lab {
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

/// A running lab. Dropping it ends all that it started and removes its namespaces and directory.
#[derive(Debug)]
pub struct Lab {
    directory: Directory,
    state: State,
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
        Builder {
            udns: 3,
            pods: BTreeSet::new(),
            age_threshold: 300,
            ipv6: true,
            flows: FlowSet::Legacy,
        }
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

    /// A command with the environment that OVS's and OVN's tools need for this lab.
    #[must_use]
    pub fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
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

    /// Runs `ovs-vsctl` on the lab's database.
    ///
    /// # Errors
    /// When it ends with an error.
    pub fn vsctl<S: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let mut command = self.tool("ovs-vsctl");
        command.arg(format!("--db={}", self.ovs_remote()));
        run(command.arg("--timeout=60").args(arguments))
    }

    /// Runs `ovs-appctl` on a daemon.
    ///
    /// # Errors
    /// When the daemon does not run, or refuses the command.
    pub fn appctl(&self, daemon: Daemon, arguments: &[&str]) -> Result<String> {
        let socket = daemon.control_socket(self.directory(), self.pid(daemon)?);
        let mut command = self.tool("ovs-appctl");
        run(command
            .arg("-t")
            .arg(socket)
            .arg("--timeout=60")
            .args(arguments))
    }

    /// Waits until ovn-controller has installed all that the northbound database says now.
    ///
    /// # Errors
    /// When that takes more than five minutes, or a daemon has ended meanwhile.
    pub fn sync(&self) -> Result<()> {
        self.wait_for_configuration("hv_cfg", "ovn-controller to install everything")
    }

    /// Waits until ovn-northd has translated all that the northbound database says now.
    ///
    /// # Errors
    /// As [`Lab::sync`].
    pub fn sync_northd(&self) -> Result<()> {
        self.wait_for_configuration("sb_cfg", "ovn-northd to translate everything")
    }

    /// Raises `nb_cfg` and waits until a column of `NB_Global` follows (ovn-nb(5)).
    fn wait_for_configuration(&self, column: &str, what: &str) -> Result<()> {
        let number = |rows: &[serde_json::Value], column: &str| {
            rows.first()
                .and_then(|row| row[column].as_i64())
                .unwrap_or_default()
        };
        let wanted = self.with_database(Daemon::Northbound, |northbound| {
            let results = northbound
                .transact(vec![json!({"op": "mutate", "table": "NB_Global",
                "where": [], "mutations": [["nb_cfg", "+=", 1]]})])?;
            if results.first().and_then(|result| result["count"].as_i64()) != Some(1) {
                return Err(LabError::Choice("NB_Global has no row".to_owned()));
            }
            let rows = northbound.select("NB_Global", json!([]), &["nb_cfg"])?;
            Ok(number(&rows, "nb_cfg"))
        })?;
        wait_until(SYNC, what, || {
            let rows = self.with_database(Daemon::Northbound, |northbound| {
                northbound.select("NB_Global", json!([]), &[column])
            });
            let reached = number(&rows.map_err(|error| error.to_string())?, column);
            if reached >= wanted {
                return Ok(Ok(()));
            }
            self.check_daemons(Err(format!("{column} {reached} instead of {wanted}")))
        })?
    }

    /// For probes: `not_yet`, unless a daemon has ended, so that there is nothing to wait for.
    fn check_daemons<E>(&self, not_yet: Result<(), E>) -> Result<Result<()>, E> {
        let ended = self.daemons.iter().find(|(_, process)| process.has_ended());
        match ended {
            Some((daemon, _)) => Ok(Err(LabError::DaemonGone {
                daemon: daemon.name(),
                log: self
                    .daemon_log(*daemon)
                    .map(|log| daemon::last_lines(&log))
                    .unwrap_or_default(),
            })),
            None => not_yet.map(Ok),
        }
    }

    /// A daemon's process number.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pid(&self, daemon: Daemon) -> Result<u32> {
        self.daemons
            .get(&daemon)
            .map(Process::pid)
            .ok_or_else(|| LabError::Choice(format!("{} does not run", daemon.name())))
    }

    /// The CPU time that a daemon has used since it started, to 10 ms.
    ///
    /// # Errors
    /// When it does not run.
    pub fn cpu(&self, daemon: Daemon) -> Result<Duration> {
        daemon::cpu_time(self.pid(daemon)?)
    }

    /// Starts a daemon that does not run, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_daemon(&mut self, daemon: Daemon) -> Result<()> {
        if self.daemons.contains_key(&daemon) {
            return Ok(());
        }
        let (program, in_node) = daemon.program();
        let mut command = if in_node {
            self.node.command(program)
        } else {
            Command::new(program)
        };
        command
            .args(daemon.arguments(self.directory()))
            .envs(self.environment());
        let output = self.directory().join(format!("{}.out", daemon.name()));
        let mut process = Process::spawn(command, self.directory(), &output)?;
        let ready = process.wait_ready(daemon, self.directory());
        self.daemons.insert(daemon, process);
        ready
    }

    /// Stops a daemon by SIGTERM.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop_daemon(&mut self, daemon: Daemon) -> Result<()> {
        self.disconnect(daemon);
        match self.daemons.remove(&daemon) {
            Some(mut process) => process.terminate(daemon.name()),
            None => Ok(()),
        }
    }

    /// Kills a daemon.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill_daemon(&mut self, daemon: Daemon) -> Result<()> {
        self.disconnect(daemon);
        match self.daemons.remove(&daemon) {
            Some(mut process) => process.kill(daemon.name()),
            None => Ok(()),
        }
    }

    /// Stops a daemon and starts it again; ovn-controller keeps its chassis and flows, as in an
    /// upgrade.
    ///
    /// # Errors
    /// When it does not end or does not come up.
    pub fn restart_daemon(&mut self, daemon: Daemon) -> Result<()> {
        if daemon == Daemon::Controller {
            self.appctl(daemon, &["exit", "--restart"])?;
        }
        self.stop_daemon(daemon)?;
        self.start_daemon(daemon)?;
        if daemon == Daemon::Vswitchd {
            self.configure_bridge_interface()?;
        }
        Ok(())
    }

    /// Sends a signal to a daemon (SIGSTOP makes one that hangs, SIGCONT frees it).
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal_daemon(&self, daemon: Daemon, signal: Signal) -> Result<()> {
        match self.daemons.get(&daemon) {
            Some(process) => {
                process.signal(signal);
                Ok(())
            }
            None => self.pid(daemon).map(drop),
        }
    }

    /// Takes the connection to a database server out of the pool.
    fn disconnect(&self, daemon: Daemon) -> Option<Database> {
        let mut databases = self
            .databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        databases.remove(&daemon)
    }

    fn router_options(&self) -> RouterOptions {
        RouterOptions {
            chassis: self.chassis(),
            age_threshold: self.state.age_threshold,
            ipv6: self.state.ipv6,
        }
    }

    /// Gives the lab up: it stays until [`Lab::attach`] and a drop, or `neighsteer-lab down`.
    ///
    /// # Errors
    /// When its directory cannot be written.
    pub fn detach(mut self) -> Result<State> {
        self.state.owner = None;
        self.directory.write_state(&self.state)?;
        let state = self.state.clone();
        // Drop would end it.
        std::mem::forget(self);
        Ok(state)
    }

    /// Takes over the lab with an ID that [`Lab::detach`] left.
    ///
    /// # Errors
    /// When there is none, or a process owns it.
    pub fn attach(id: &str) -> Result<Self> {
        let directory = Directory::all()
            .into_iter()
            .find(|directory| directory.id == id)
            .ok_or_else(|| LabError::Choice(format!("no lab {id} on this machine")))?;
        let mut state = directory.state()?;
        if let Some(owner) = state.owner
            && directory::is_alive(owner)
        {
            let (pid, _) = owner;
            return Err(LabError::Choice(format!("process {pid} owns lab {id}")));
        }
        state.owner = directory::this_process();
        let daemons = Daemon::ALL
            .into_iter()
            .filter_map(|daemon| {
                let file = directory.path.join(format!("{}.pid", daemon.name()));
                let pid = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
                Some((daemon, Process::existing(pid)))
            })
            .collect();
        let lab = Self {
            node: directory.namespace("node"),
            external: directory.namespace("ext"),
            networks: (0..=state.udns).map(Network).collect(),
            daemons,
            databases: Mutex::new(BTreeMap::new()),
            secondaries: Vec::new(),
            state,
            directory,
        };
        lab.directory.write_state(&lab.state)?;
        Ok(lab)
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

/// The labs on this machine: state, directory, and whether their owner (if any) runs.
#[must_use]
pub fn labs() -> Vec<(State, PathBuf, bool)> {
    Directory::all()
        .into_iter()
        .filter_map(|directory| {
            let state = directory.state().ok()?;
            let owned = state.owner.is_some_and(directory::is_alive);
            Some((state, directory.path, owned))
        })
        .collect()
}

/// Removes the labs for which `wanted` says so, however they were left.
///
/// # Errors
/// The first failure; the other labs are removed all the same.
pub fn remove_labs(mut wanted: impl FnMut(&State) -> bool) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let mut result = Ok(());
    for directory in Directory::all() {
        // Without a state it is half removed.
        let state = directory.state().unwrap_or_else(|_| State {
            id: directory.id.clone(),
            owner: Some((0, 0)),
            udns: 0,
            pods: Vec::new(),
            ipv6: false,
            age_threshold: 0,
        });
        if wanted(&state) {
            result = result.and(directory.remove());
            removed.push(state.id);
        }
    }
    result.map(|()| removed)
}

/// Removes what labs left whose owner was killed.
///
/// # Errors
/// The first failure; the other labs are removed all the same.
pub fn sweep() -> Result<Vec<String>> {
    remove_labs(|state| state.owner.is_some_and(|owner| !directory::is_alive(owner)))
}
