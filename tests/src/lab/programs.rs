//! Which Open vSwitch and OVN a lab runs: the machine's, or those of a tree beside it.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Lab;
use super::daemon::Daemon;
use super::error::{LabError, Result};

/// Names a lab's versions where its [`super::Builder`] does not.
pub const VERSION_VARIABLE: &str = "NEIGHSTEER_LAB_OVN";
/// The folder of trees, where it is not `trees` in the target directory.
const TREES: &str = "NEIGHSTEER_TREES";
/// Where a tree's programs are. Nothing of a tree is configured, so that what Debian's
/// alternatives would link is looked for where it lies.
const FOLDERS: [&str; 3] = ["usr/bin", "usr/sbin", "usr/lib/openvswitch-switch"];
/// How the programs' names begin.
const PREFIXES: [&str; 3] = ["ovs-", "ovsdb-", "ovn-"];
/// The first bytes of a program that the loader takes; scripts are left out.
const ELF: &[u8] = b"\x7fELF";

/// A pair of versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OvnVersion {
    /// OVN 23.03 and Open vSwitch 3.1, Debian 12's; on another system, whatever is installed.
    #[default]
    #[serde(rename = "23.03")]
    V23_03,
    /// OVN 25.03 and Open vSwitch 3.5, from the Debian 13 tree that `cargo xtask setup` makes.
    #[serde(rename = "25.03")]
    V25_03,
}

impl OvnVersion {
    /// Both, the older one first.
    pub const ALL: [Self; 2] = [Self::V23_03, Self::V25_03];

    /// The OVN release, as `--ovn` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V23_03 => "23.03",
            Self::V25_03 => "25.03",
        }
    }

    /// Its tree; `None` for the machine's own packages.
    ///
    /// # Errors
    /// When the tree is not there.
    pub(crate) fn find(self) -> Result<Option<PathBuf>> {
        match self {
            Self::V23_03 => Ok(None),
            Self::V25_03 => find_tree("trixie").map(Some),
        }
    }

    /// What the environment asks for, or else the machine's.
    pub(crate) fn of_environment() -> Result<Self> {
        std::env::var(VERSION_VARIABLE).map_or(Ok(Self::default()), |name| name.parse())
    }
}

impl std::fmt::Display for OvnVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for OvnVersion {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|version| version.name() == name);
        found.ok_or_else(|| {
            LabError::Choice(format!("no OVN {name} for labs; there are 23.03 and 25.03"))
        })
    }
}

/// What the running daemons say of themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// ovn-controller's release.
    pub ovn: String,
    /// ovs-vswitchd's release.
    pub open_vswitch: String,
}

impl Lab {
    /// Asks the running daemons for their versions.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn versions(&self) -> Result<Versions> {
        let ask = |daemon| -> Result<String> {
            let text = self.appctl(daemon, &["version"])?;
            // `ovs-vswitchd (Open vSwitch) 3.1.0`, and perhaps lines on libraries.
            let first = text.lines().next().unwrap_or_default();
            match first.rsplit_once(' ') {
                Some((_, version)) => Ok(version.to_owned()),
                None => Err(LabError::Unexpected {
                    what: "a daemon's version",
                    text,
                }),
            }
        };
        Ok(Versions {
            ovn: ask(Daemon::Controller)?,
            open_vswitch: ask(Daemon::Vswitchd)?,
        })
    }
}

/// The programs and schemas of a version, for one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Programs {
    tree: Option<Tree>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tree {
    root: PathBuf,
    /// Scripts by the programs' names, each of which becomes its program.
    wrappers: PathBuf,
}

impl Programs {
    /// The programs in a version's tree (see [`OvnVersion::find`]), for the lab in `directory`.
    pub(crate) fn new(tree: Option<PathBuf>, directory: &Path) -> Self {
        Self {
            tree: tree.map(|root| Tree {
                root,
                wrappers: directory.join("bin"),
            }),
        }
    }

    /// Writes what the lab's directory has to hold for them.
    pub(crate) fn prepare(&self) -> Result<()> {
        match &self.tree {
            Some(tree) => tree.write_wrappers(),
            None => Ok(()),
        }
    }

    /// What to run for a program of Open vSwitch's or OVN's.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        match self.folder() {
            Some(folder) => folder.join(program),
            None => PathBuf::from(program),
        }
    }

    /// The folder to be first in `PATH`; `None` when the machine's programs are meant.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.tree.as_ref().map(|tree| tree.wrappers.as_path())
    }

    /// A file by its path on a system with the packages installed.
    pub(crate) fn file(&self, installed: &str) -> PathBuf {
        match &self.tree {
            Some(tree) => tree.root.join(installed.trim_start_matches('/')),
            None => PathBuf::from(installed),
        }
    }
}

impl Tree {
    /// The programs run with the tree's own loader and libraries, and with this machine's files
    /// otherwise: nothing is mounted, and paths mean the same to everybody.
    fn write_wrappers(&self) -> Result<()> {
        fs::create_dir_all(&self.wrappers)
            .map_err(LabError::io("create", self.wrappers.display()))?;
        let libraries = self.libraries()?;
        let loader = entries(&libraries)?
            .into_iter()
            .find(|path| has_prefix(path, &["ld-linux"]))
            .ok_or_else(|| self.incomplete("no loader"))?;
        let mut names = 0;
        for folder in FOLDERS {
            for program in entries(&self.root.join(folder))? {
                let name = program.file_name().unwrap_or_default();
                if !has_prefix(&program, &PREFIXES) || !is_elf(&program) {
                    continue;
                }
                let mut script = "#!/bin/sh\nexec".to_owned();
                for word in [
                    loader.as_os_str(),
                    "--library-path".as_ref(),
                    libraries.as_os_str(),
                    program.as_os_str(),
                ] {
                    let _ = write!(script, " '{}'", word.display());
                }
                script.push_str(" \"$@\"\n");
                let wrapper = self.wrappers.join(name);
                fs::write(&wrapper, script)
                    .and_then(|()| fs::set_permissions(&wrapper, Permissions::from_mode(0o755)))
                    .map_err(LabError::io("write", wrapper.display()))?;
                names += 1;
            }
        }
        match names {
            0 => Err(self.incomplete("no program of Open vSwitch's")),
            _ => Ok(()),
        }
    }

    /// The folder of the one architecture's libraries.
    fn libraries(&self) -> Result<PathBuf> {
        entries(&self.root.join("usr/lib"))?
            .into_iter()
            .find(|path| path.to_string_lossy().ends_with("-linux-gnu"))
            .ok_or_else(|| self.incomplete("no folder of libraries"))
    }

    fn incomplete(&self, what: &str) -> LabError {
        LabError::Unexpected {
            what: "a tree",
            text: format!("{what} in {}", self.root.display()),
        }
    }
}

/// The tree with a name: in the folder that the environment names, or beside this executable's build.
fn find_tree(name: &str) -> Result<PathBuf> {
    let mut candidates: Vec<PathBuf> = Vec::new();
    match std::env::var_os(TREES) {
        Some(folder) => candidates.push(PathBuf::from(folder)),
        None => {
            let executable =
                std::env::current_exe().map_err(LabError::io("find", "this executable"))?;
            candidates.extend(executable.ancestors().map(|above| above.join("trees")));
        }
    }
    candidates
        .into_iter()
        .map(|trees| trees.join(name))
        .find(|tree| tree.is_dir())
        .ok_or_else(|| LabError::NoTree {
            name: name.to_owned(),
        })
}

/// What a folder holds; a folder that is not there holds nothing.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(LabError::io("list", folder.display())(error)),
    }
}

fn has_prefix(path: &Path, prefixes: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; ELF.len()];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok_and(|()| start == ELF)
}
