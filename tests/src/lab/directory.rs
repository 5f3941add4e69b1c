//! A lab's directory, and finding labs whose owner is gone.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::daemon::kill_members;
use super::error::{LabError, Result};
use super::namespace::Namespace;
use super::programs::OvnVersion;

/// In the environment of every process that belongs to a lab: the lab's directory.
pub(crate) const MEMBER: &str = "NEIGHSTEER_LAB_MEMBER";
const PREFIX: &str = "neighsteer-lab-";
const STATE: &str = "lab.json";
/// Where the agent pins its programs and maps.
const PINS: &str = "/sys/fs/bpf/neighsteer";

/// What a lab's directory says about it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct State {
    /// Six characters that make names unique.
    pub id: String,
    /// The process that owns the lab, as (number, start time in clock ticks since boot): the lab
    /// ends with it. `None` when the lab is to stay until `neighsteer-lab down`.
    pub owner: Option<(u32, u64)>,
    /// How many UDNs it was started with.
    pub udns: u16,
    /// Networks that have a pod.
    pub pods: Vec<u16>,
    /// Whether routers and pods have IPv6 addresses.
    pub ipv6: bool,
    /// `mac_binding_age_threshold` in seconds.
    pub age_threshold: u32,
    /// The versions of Open vSwitch and OVN.
    // A lab of an older build says nothing of it, and must not be taken for half removed.
    #[serde(default)]
    pub ovn: OvnVersion,
    /// What forwards frames.
    #[serde(default)]
    pub datapath: Datapath,
}

/// What forwards frames between the ports of a lab's bridges.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// ovs-vswitchd.
    #[default]
    Userspace,
    /// The kernel's openvswitch module.
    Kernel,
}

impl Datapath {
    /// As `Bridge.datapath_type` has it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Userspace => "netdev",
            Self::Kernel => "system",
        }
    }
}

/// A lab's directory: sockets, databases, logs, its [`State`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) id: String,
}

impl Directory {
    /// Makes one with an ID of its own, in which `state` puts what the directory is to say.
    pub(crate) fn create(state: impl Fn(&str) -> State) -> Result<(Self, State)> {
        let id: String = std::iter::repeat_with(fastrand::alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .take(6)
            .collect();
        let path = std::env::temp_dir().join(format!("{PREFIX}{id}"));
        // Under another name until its state is there: without an owner it would be swept.
        let unfinished = Self {
            path: std::env::temp_dir().join(format!(".{PREFIX}{id}")),
            id,
        };
        let state = state(&unfinished.id);
        DirBuilder::new()
            .mode(0o700)
            .create(&unfinished.path)
            .map_err(LabError::io("create", unfinished.path.display()))?;
        unfinished.write_state(&state)?;
        fs::rename(&unfinished.path, &path).map_err(LabError::io("create", path.display()))?;
        let id = unfinished.id;
        Ok((Self { path, id }, state))
    }

    /// All labs on this machine.
    pub(crate) fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let id = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.to_owned();
                path.is_dir().then_some(Self { path, id })
            })
            .collect()
    }

    pub(crate) fn write_state(&self, state: &State) -> Result<()> {
        let file = self.path.join(STATE);
        let text = serde_json::to_vec_pretty(state)
            .map_err(|error| LabError::io("write", file.display())(error.into()))?;
        // A reader never sees half a file.
        let new = self.path.join("lab.json.new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &file))
            .map_err(LabError::io("write", file.display()))
    }

    pub(crate) fn state(&self) -> Result<State> {
        let file = self.path.join(STATE);
        let text = fs::read(&file).map_err(LabError::io("read", file.display()))?;
        serde_json::from_slice(&text)
            .map_err(|error| LabError::io("read", file.display())(error.into()))
    }

    /// The name that starts those of the lab's namespaces.
    pub(crate) fn namespace_prefix(&self) -> String {
        format!("nsl{}-", self.id)
    }

    pub(crate) fn namespace(&self, role: &str) -> Namespace {
        Namespace::named(format!("{}{role}", self.namespace_prefix()))
    }

    /// The uplink's name: the lab's own, as pins are named after it and are not per namespace.
    pub(crate) fn uplink(&self) -> String {
        format!("eth{}", self.id)
    }

    /// Ends the lab's processes and removes its namespaces, its pins and itself.
    ///
    /// Goes on after an error, and returns the first.
    pub(crate) fn remove(&self) -> Result<()> {
        let mut result = kill_members(&self.path);
        for namespace in Namespace::with_prefix(&self.namespace_prefix()) {
            result = result.and(namespace.remove());
        }
        let _ = fs::remove_dir_all(pins(&self.id));
        if let Ok(versions) = fs::read_dir(PINS) {
            for version in versions.flatten() {
                let _ = fs::remove_dir_all(version.path().join(self.uplink()));
            }
        }
        result.and(
            fs::remove_dir_all(&self.path).map_err(LabError::io("remove", self.path.display())),
        )
    }
}

/// Where a lab's shell has its pins.
pub(crate) fn pins(id: &str) -> PathBuf {
    PathBuf::from(format!("{PINS}-lab-{id}"))
}

/// The processes whose environment says that they belong to the lab in `directory`.
pub(crate) fn pids_of_members(directory: &Path) -> Vec<u32> {
    let wanted = format!("{MEMBER}={}", directory.display());
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // Zombies have no environment any more.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
                .then_some(pid)
        })
        .collect()
}

/// This process as an owner.
pub(crate) fn this_process() -> Option<(u32, u64)> {
    let pid = std::process::id();
    Some((pid, start_time(pid)?))
}

/// Whether a lab's owner still runs.
pub(crate) fn is_alive((pid, started): (u32, u64)) -> bool {
    start_time(pid) == Some(started)
}

/// When a process started, in clock ticks since boot: field 22 of /proc/PID/stat.
fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
