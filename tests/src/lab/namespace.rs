//! Network namespaces of a lab: the node, the external host, one for each pod.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::command::{run, run_with_input};
use super::error::{LabError, Result};

/// Where iproute2 keeps named network namespaces.
const DIRECTORY: &str = "/run/netns";

/// A named network namespace. Removing it is its lab's business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A handle on a namespace that exists or will be created.
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Makes the namespace, with its loopback interface up and duplicate address detection off.
    pub(crate) fn create(&self) -> Result<()> {
        run(Command::new("ip").args(["netns", "add", &self.name]))?;
        self.ip("link set lo up")?;
        // Addresses are used at once, and the lab's are unique by construction.
        self.sysctl("net/ipv6/conf/all/accept_dad", "0")?;
        self.sysctl("net/ipv6/conf/default/accept_dad", "0")
    }

    /// Removes the namespace if it is there.
    pub(crate) fn remove(&self) -> Result<()> {
        if !self.path().exists() {
            return Ok(());
        }
        run(Command::new("ip").args(["netns", "del", &self.name])).map(drop)
    }

    /// The namespaces on this machine whose name starts with `prefix`.
    pub(crate) fn with_prefix(prefix: &str) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(DIRECTORY) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(prefix))
            .map(Self::named)
            .collect()
    }

    /// The name, as `ip netns` prints it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that stands for the namespace.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(DIRECTORY).join(&self.name)
    }

    /// A command that will run inside. Only the network changes: `ip netns exec` would also mount
    /// another /sys, and BPF pins would be out of sight.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.path().display()))
            .arg("--")
            .arg(program);
        command
    }

    /// Runs lines of `ip` commands inside, in one process; the first that fails ends it.
    pub(crate) fn ip(&self, lines: &str) -> Result<()> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name, "-batch", "-"]);
        run_with_input(&mut command, lines).map(drop)
    }

    /// Sets a kernel parameter of the namespace; `key` is its path below /proc/sys.
    pub(crate) fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let file = format!("/proc/sys/{key}");
        let value = value.to_owned();
        self.enter(move || fs::write(&file, value).map_err(LabError::io("write", file)))?
    }

    /// Lets the sender fill in checksums of one interface: a userspace datapath forwards frames
    /// as it reads them, and a checksum left to hardware that is not there would be wrong.
    pub(crate) fn disable_checksum_offload(&self, interface: &str) -> Result<()> {
        run(self.command("ethtool").args(["-K", interface, "tx", "off"])).map(drop)
    }

    /// Runs a closure in a thread inside the namespace, and waits for it.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    /// If the closure does: its panic goes on here.
    pub fn enter<T: Send>(&self, closure: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                self.move_this_thread()?;
                Ok(closure())
            });
            match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread into the namespace, for good.
    pub(crate) fn move_this_thread(&self) -> Result<()> {
        let file = File::open(self.path()).map_err(LabError::io("open", self.path().display()))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(LabError::errno("enter", &self.name))
    }
}

/// `ip` lines that make a veth pair: `inside` here, `outside` in the namespace `peer`.
pub(crate) fn veth(inside: &str, outside: &str, peer: &Namespace) -> String {
    let mut lines = String::new();
    let _ = writeln!(
        lines,
        "link add {inside} type veth peer name {outside} netns {}",
        peer.name()
    );
    let _ = writeln!(lines, "link set {inside} up");
    lines
}
