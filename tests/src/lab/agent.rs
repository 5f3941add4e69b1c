//! The real `neighsteer` binary, run against a lab.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::Lab;
use super::daemon::{Daemon, Process, cpu_time, last_lines, resident_bytes};
use super::directory::{MEMBER, pins};
use super::error::{LabError, Result, wait_until};

impl Lab {
    /// A command that runs `neighsteer` with a subcommand in the node's network namespace.
    ///
    /// # Errors
    /// When the binary is not built.
    pub fn neighsteer(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.node_netns().command(binary()?);
        command.args(arguments);
        Ok(command)
    }

    /// The flags that direct the agent to this lab's databases and run directory.
    #[must_use]
    pub fn agent_flags(&self) -> Vec<String> {
        let directory = self.directory().display().to_string();
        [
            ("--ovs-db", self.ovs_remote()),
            ("--ovn-nb", self.northbound_remote()),
            ("--ovn-sb", self.southbound_remote()),
            ("--ovs-rundir", directory),
            ("--state-dir", self.state_directory().display().to_string()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
    }

    /// [`Lab::environment`], and what directs `neighsteer` to this lab and finds it by its name.
    #[must_use]
    pub fn shell_environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = self.environment();
        variables.extend([
            ("NEIGHSTEER_OVS_DB", self.ovs_remote()),
            ("NEIGHSTEER_OVN_NB", self.northbound_remote()),
            ("NEIGHSTEER_OVN_SB", self.southbound_remote()),
            (
                "NEIGHSTEER_OVS_RUNDIR",
                self.directory().display().to_string(),
            ),
            (
                "NEIGHSTEER_STATE_DIR",
                self.state_directory().display().to_string(),
            ),
            // Interfaces of two labs may have one name, and `cleanup` takes off whatever it finds.
            (
                "NEIGHSTEER_BPFFS",
                pins(&self.state.id).display().to_string(),
            ),
            // What is started in the shell ends with the lab.
            (MEMBER, self.directory().display().to_string()),
        ]);
        let binary = binary().ok();
        let folders = [
            self.programs.folder(),
            binary.as_deref().and_then(Path::parent),
        ];
        let mut path = std::env::var("PATH").unwrap_or_default();
        for folder in folders.into_iter().flatten() {
            path = format!("{}:{path}", folder.display());
        }
        variables.push(("PATH", path));
        variables
    }

    /// Gives control sockets the names by which `ovs-appctl` and `ovn-appctl` look for them.
    ///
    /// # Errors
    /// When a daemon has ended, or a link cannot be made.
    pub fn link_control_sockets(&self) -> Result<()> {
        for daemon in [Daemon::Vswitchd, Daemon::Northd] {
            let pid = self.pid(daemon)?;
            let link = self
                .directory()
                .join(format!("{}.{pid}.ctl", daemon.name()));
            if !link.exists() {
                let socket = daemon.control_socket(self.directory(), pid);
                symlink(socket, &link).map_err(LabError::io("make", link.display()))?;
            }
        }
        Ok(())
    }

    /// The directory that is given to the agent as `--state-dir`.
    #[must_use]
    pub fn state_directory(&self) -> PathBuf {
        self.directory().join("state")
    }

    /// Starts `neighsteer agent` in the node's network namespace, with [`Lab::agent_flags`] and
    /// further arguments. It runs when this returns; whether it is ready is the caller's to wait
    /// for.
    ///
    /// # Errors
    /// When the binary is not built, or cannot be run.
    pub fn agent<S: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<AgentProcess> {
        let mut command = self.neighsteer(&["agent"])?;
        command.args(self.agent_flags()).args(arguments);
        let log = (0..)
            .map(|nth| self.directory().join(format!("agent-{nth}.log")))
            .find(|log| !log.exists())
            .unwrap_or_default();
        let process = Process::spawn(command, self.directory(), &log)?;
        Ok(AgentProcess { process, log })
    }
}

/// A running agent; dropping it kills it.
#[derive(Debug)]
pub struct AgentProcess {
    process: Process,
    log: PathBuf,
}

impl AgentProcess {
    /// The process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What the agent has written to standard output and error so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it has not ended at the deadline.
    pub fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let status = self.process.wait(deadline, "the agent");
        status?.ok_or_else(|| LabError::Choice("the agent is another process's child".to_owned()))
    }

    /// Asks it to end (SIGTERM) and waits for that.
    ///
    /// # Errors
    /// When it has not ended at the deadline.
    pub fn terminate(&mut self, deadline: Duration) -> Result<ExitStatus> {
        self.process.signal(Signal::SIGTERM);
        self.wait(deadline)
    }

    /// Kills it, as a crash would.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill("the agent")
    }

    /// Waits until its log holds a text.
    ///
    /// # Errors
    /// When it ends first, or the deadline is over: with the end of the log.
    pub fn wait_for_log(&mut self, text: &str, deadline: Duration) -> Result<()> {
        let (process, log) = (&mut self.process, &self.log);
        let read = || fs::read_to_string(log).unwrap_or_default();
        wait_until(
            deadline,
            format_args!("`{text}` in the agent's log"),
            || {
                // Looked at first, so that an agent's last words are not missed.
                let ended = process.try_wait().map_err(|error| error.to_string())?;
                if read().contains(text) {
                    return Ok(Ok(()));
                }
                match ended {
                    Some(status) => Ok(Err(LabError::Command {
                        command: "neighsteer agent".to_owned(),
                        status,
                        stderr: last_lines(&read()),
                    })),
                    None => Err(last_lines(&read())),
                }
            },
        )?
    }

    /// Its CPU time so far, to 10 ms.
    ///
    /// # Errors
    /// When it has ended.
    pub fn cpu(&self) -> Result<Duration> {
        cpu_time(self.pid())
    }

    /// Its resident memory in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.pid())
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill("the agent");
        }
    }
}

/// The agent's binary: named in `NEIGHSTEER_BIN`, or in the target directory of this executable.
fn binary() -> Result<PathBuf> {
    let path = match std::env::var_os("NEIGHSTEER_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let executable =
                std::env::current_exe().map_err(LabError::io("find", "this executable"))?;
            let beside = executable.parent().unwrap_or(Path::new("/"));
            // Test executables are one level down.
            let beside = match beside.file_name() {
                Some(name) if name == "deps" => beside.parent().unwrap_or(beside),
                _ => beside,
            };
            beside.join("neighsteer")
        }
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(LabError::NoAgent { path })
    }
}
