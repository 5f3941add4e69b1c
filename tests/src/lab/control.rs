//! The lab's daemons: starting and stopping them, asking them, waiting for OVN.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::PoisonError;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::command::run;
use super::daemon::{Daemon, Process, cpu_time, last_lines};
use super::error::{LabError, Result, wait_until};
use super::network::BRIDGE;
use super::{Database, Lab};

/// How long OVN may take for a change.
const SYNC: Duration = Duration::from_secs(300);

impl Lab {
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
    pub(super) fn check_daemons<E>(&self, not_yet: Result<(), E>) -> Result<Result<()>, E> {
        let ended = self.daemons.iter().find(|(_, process)| process.has_ended());
        match ended {
            Some((daemon, _)) => Ok(Err(LabError::DaemonGone {
                daemon: daemon.name(),
                log: self
                    .daemon_log(*daemon)
                    .map(|log| last_lines(&log))
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
        cpu_time(self.pid(daemon)?)
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
            self.node.command(self.programs.path(program))
        } else {
            Command::new(self.programs.path(program))
        };
        command
            .args(daemon.arguments(self.directory()))
            .envs(self.environment());
        let output = self.directory().join(format!("{}.out", daemon.name()));
        let mut process = Process::spawn(command, self.directory(), &output)?;
        let ready = process.wait_ready(daemon, self.directory());
        self.daemons.insert(daemon, process);
        ready?;
        if daemon == Daemon::Vswitchd {
            self.wait_for_bridges()?;
        }
        Ok(())
    }

    /// Waits until a switch that was started again has made the bridges that the database names.
    fn wait_for_bridges(&self) -> Result<()> {
        let bridges = self.vsctl(["list-br"])?;
        for bridge in bridges.lines() {
            let socket = self.management_socket(bridge);
            wait_until(SYNC, format_args!("{bridge} to be there again"), || {
                UnixStream::connect(&socket).map(drop)
            })?;
        }
        if bridges.lines().any(|bridge| bridge == BRIDGE) {
            self.configure_bridge_interface()?;
        }
        Ok(())
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
        self.start_daemon(daemon)
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
    pub(super) fn disconnect(&self, daemon: Daemon) -> Option<Database> {
        let mut databases = self
            .databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        databases.remove(&daemon)
    }
}
