//! The daemons of a lab: how each is started, when it is ready, what it uses.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::directory::{MEMBER, pids_of_members};
use super::error::{LabError, Result, wait_until, wait_until_clean};

/// How long a daemon may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Clock ticks a second in /proc/PID/stat: fixed in the kernel's interface to user space.
const TICKS_PER_SECOND: u64 = 100;

/// A daemon of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Daemon {
    /// ovsdb-server with the Open_vSwitch database.
    OvsDatabase,
    /// ovsdb-server with the OVN_Northbound database.
    Northbound,
    /// ovsdb-server with the OVN_Southbound database.
    Southbound,
    /// ovs-vswitchd, with the userspace datapath.
    Vswitchd,
    /// ovn-northd.
    Northd,
    /// ovn-controller.
    Controller,
}

impl Daemon {
    /// All of them, in the order in which they start.
    pub const ALL: [Self; 6] = [
        Self::OvsDatabase,
        Self::Northbound,
        Self::Southbound,
        Self::Vswitchd,
        Self::Northd,
        Self::Controller,
    ];

    /// A name for messages and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OvsDatabase => "ovsdb-server-ovs",
            Self::Northbound => "ovsdb-server-nb",
            Self::Southbound => "ovsdb-server-sb",
            Self::Vswitchd => "ovs-vswitchd",
            Self::Northd => "ovn-northd",
            Self::Controller => "ovn-controller",
        }
    }

    /// The program, and whether it runs in the node's network namespace.
    pub(crate) fn program(self) -> (&'static str, bool) {
        match self {
            Self::OvsDatabase | Self::Northbound | Self::Southbound => ("ovsdb-server", false),
            Self::Vswitchd => ("ovs-vswitchd", true),
            Self::Northd => ("ovn-northd", false),
            Self::Controller => ("ovn-controller", true),
        }
    }

    /// The arguments, for the lab in `directory`.
    pub(crate) fn arguments(self, directory: &Path) -> Vec<String> {
        let path = |name: &str| directory.join(name).display().to_string();
        let mut arguments = vec![
            "--no-chdir".to_owned(),
            format!("--pidfile={}", path(&format!("{}.pid", self.name()))),
            format!("--log-file={}", path(&format!("{}.log", self.name()))),
            // The log file has it all; without a terminal nobody reads standard error.
            "-vconsole:off".to_owned(),
        ];
        let control = format!("--unixctl={}", path(&format!("{}.ctl", self.name())));
        if let Some((socket, database, _)) = self.serves() {
            arguments.push(control);
            arguments.push(format!("--remote=punix:{}", path(socket)));
            arguments.push(path(database));
            return arguments;
        }
        match self {
            Self::Vswitchd => arguments.extend([control, format!("unix:{}", path("db.sock"))]),
            Self::Northd => arguments.extend([
                control,
                format!("--ovnnb-db=unix:{}", path("nb.sock")),
                format!("--ovnsb-db=unix:{}", path("sb.sock")),
            ]),
            // ovn-controller 23.03 knows no --unixctl.
            _ => arguments.push(format!("unix:{}", path("db.sock"))),
        }
        arguments
    }

    /// For a database server: its socket, its file, its schema.
    pub(crate) fn serves(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::OvsDatabase => Some((
                "db.sock",
                "ovs.db",
                "/usr/share/openvswitch/vswitch.ovsschema",
            )),
            Self::Northbound => Some(("nb.sock", "nb.db", "/usr/share/ovn/ovn-nb.ovsschema")),
            Self::Southbound => Some(("sb.sock", "sb.db", "/usr/share/ovn/ovn-sb.ovsschema")),
            Self::Vswitchd | Self::Northd | Self::Controller => None,
        }
    }

    /// The socket for `ovs-appctl -t`.
    pub(crate) fn control_socket(self, directory: &Path, pid: u32) -> PathBuf {
        match self {
            Self::Controller => directory.join(format!("ovn-controller.{pid}.ctl")),
            _ => directory.join(format!("{}.ctl", self.name())),
        }
    }

    /// The socket that answers once the daemon is ready.
    fn ready_socket(self, directory: &Path, pid: u32) -> PathBuf {
        match self.serves() {
            Some((socket, ..)) => directory.join(socket),
            None => self.control_socket(directory, pid),
        }
    }
}

/// A process that the lab started, or found again.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    /// Absent when another process started it.
    child: Option<Child>,
}

impl Process {
    /// Starts a command as a member of the lab: detached from the terminal, output to a file.
    pub(crate) fn spawn(mut command: Command, directory: &Path, output: &Path) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(output)
            .map_err(LabError::io("open", output.display()))?;
        let errors = file
            .try_clone()
            .map_err(LabError::io("open", output.display()))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .env(MEMBER, directory)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            // ^C is for the lab's owner, who then ends its members in order.
            .process_group(0)
            .spawn()
            .map_err(|source| LabError::Spawn { program, source })?;
        Ok(Self {
            pid: child.id(),
            child: Some(child),
        })
    }

    /// A member that another process started.
    pub(crate) fn existing(pid: u32) -> Self {
        Self { pid, child: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // Until it is waited for, a child's number cannot be another process's.
        let _ = kill(pid(self.pid), signal);
    }

    /// The exit status, if it has ended. Always `None` for a process of another's.
    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => child.try_wait().map_err(LabError::io("wait for", self.pid)),
            None => Ok(None),
        }
    }

    /// Whether it has ended, waited for or not.
    pub(crate) fn has_ended(&self) -> bool {
        // A zombie is one that nobody has waited for.
        fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .ok()
            .and_then(|text| Some(text.rsplit_once(')')?.1.trim_start().starts_with('Z')))
            .unwrap_or(true)
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self, deadline: Duration, name: &str) -> Result<Option<ExitStatus>> {
        let process = self.pid;
        wait_until_clean(
            deadline,
            format_args!("{name} ({process}) to end"),
            || match &mut self.child {
                Some(child) => match child.try_wait() {
                    Ok(Some(status)) => Ok(Some(status)),
                    Ok(None) => Err("it runs".to_owned()),
                    Err(error) => Err(error.to_string()),
                },
                None if Self::existing(process).has_ended() => Ok(None),
                None => Err("it runs".to_owned()),
            },
        )
    }

    /// Ends it: SIGTERM, and SIGKILL when that does not do.
    pub(crate) fn terminate(&mut self, name: &str) -> Result<()> {
        self.signal(Signal::SIGTERM);
        if self.wait(PATIENCE, name).is_err() {
            self.kill(name)?;
        }
        Ok(())
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self, name: &str) -> Result<()> {
        self.signal(Signal::SIGKILL);
        self.wait(PATIENCE, name).map(drop)
    }

    /// Waits until the daemon answers on its socket, or has ended.
    pub(crate) fn wait_ready(&mut self, daemon: Daemon, directory: &Path) -> Result<()> {
        let socket = daemon.ready_socket(directory, self.pid);
        let what = format!("{} to open {}", daemon.name(), socket.display());
        wait_until(PATIENCE, what, || {
            if UnixStream::connect(&socket).is_ok() {
                return Ok(Ok(()));
            }
            match self.try_wait() {
                // Read only when it is needed.
                Ok(None) => Err(fmt::from_fn(|f| {
                    f.write_str(&last_words(directory, daemon))
                })),
                Ok(Some(status)) => Ok(Err(LabError::DaemonEnded {
                    daemon: daemon.name(),
                    status,
                    output: last_words(directory, daemon),
                })),
                Err(error) => Ok(Err(error)),
            }
        })?
    }
}

fn last_words(directory: &Path, daemon: Daemon) -> String {
    ["log", "out"]
        .map(|extension| {
            let file = directory.join(format!("{}.{extension}", daemon.name()));
            last_lines(&fs::read_to_string(file).unwrap_or_default())
        })
        .join("\n")
}

/// The end of a log.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines.split_at(lines.len().saturating_sub(8)).1.join("\n")
}

/// Kills every member of the lab in `directory`, and waits until none is left.
///
/// Members are known by their environment, so that none is missed, and no stranger hit that got
/// the number of one that is gone.
pub(crate) fn kill_members(directory: &Path) -> Result<()> {
    let ours = this_process_and_those_above();
    wait_until_clean(PATIENCE, "the lab's processes to end", || {
        let mut members = pids_of_members(directory);
        // Whoever ends a lab from a shell in it is one of them.
        members.retain(|member| !ours.contains(member));
        if members.is_empty() {
            return Ok(());
        }
        for member in &members {
            let _ = kill(pid(*member), Signal::SIGKILL);
        }
        Err(format!("{members:?} still there"))
    })
}

fn this_process_and_those_above() -> Vec<u32> {
    let parent = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the name, in parentheses: state, parent (proc(5)).
        let (_, fields) = text.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    };
    std::iter::successors(Some(std::process::id()), parent).collect()
}

/// A process's CPU time, all its threads', in user and kernel mode.
pub(crate) fn cpu_time(process: u32) -> Result<Duration> {
    let file = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&file).map_err(LabError::io("read", file))?;
    // The name, in parentheses, may hold anything; utime and stime are 14 and 15 (proc(5)).
    let fields = text.rsplit_once(')').map(|(_, rest)| rest);
    let ticks: Option<u64> = fields.map(|fields| {
        fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum()
    });
    match ticks {
        Some(ticks) => Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)),
        None => Err(LabError::Unexpected {
            what: "a process's stat file",
            text,
        }),
    }
}

/// A process's resident memory in bytes.
///
/// # Errors
/// When there is no such process.
pub fn resident_bytes(process: u32) -> Result<u64> {
    let file = format!("/proc/{process}/status");
    let text = fs::read_to_string(&file).map_err(LabError::io("read", file))?;
    let kib: Option<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next())
        .and_then(|value| value.parse().ok());
    kib.map(|kib| kib * 1024).ok_or(LabError::Unexpected {
        what: "a process's status file",
        text,
    })
}

#[expect(clippy::cast_possible_wrap, reason = "process numbers are below 2^22")]
fn pid(number: u32) -> Pid {
    Pid::from_raw(number as i32)
}
