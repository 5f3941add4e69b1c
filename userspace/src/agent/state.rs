//! The state file: what this node's agent changed outside its own flows, so that `cleanup` undoes
//! that and nothing else; and what has to survive a restart.
//!
//! No-flood flags and static FDB entries carry no cookie: without this file nobody could tell ours
//! from those that OVN-Kubernetes set.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{ids::Mac, plain_file, topology::Incumbents};

/// Bytes; a thousand ports take some tens of thousands.
const LIMIT: u64 = 64 << 20;

/// The version that this agent writes. It reads 1 as well, which had neither `paused` nor `sources`.
const FORMAT: u32 = 2;
/// The oldest version that this agent reads.
const OLDEST: u32 = 1;

/// What was changed, by bridge name, and what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Version of the file's format.
    pub format: u32,
    /// Changes by bridge name.
    pub bridges: BTreeMap<String, BridgeState>,
    /// Whether steering and mirroring were paused by hand.
    #[serde(default)]
    pub paused: bool,
    /// The source of each bridge's group, by bridge name.
    #[serde(default)]
    pub sources: BTreeMap<Arc<str>, Arc<str>>,
    /// External ports that northbound `Static_MAC_Binding` rows of ours may name: a row says neither
    /// whose it is nor, once its port is gone, that the port was this node's. Written only where there
    /// is one, so that an older agent reads the file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub static_ports: BTreeSet<Arc<str>>,
}

/// What was changed on one bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BridgeState {
    /// Names of ports whose no-flood flag was clear before we set it.
    pub no_flood_set: BTreeSet<String>,
    /// Names of ports whose no-flood flag was set before we cleared it.
    pub no_flood_cleared: BTreeSet<String>,
    /// Static FDB entries that were not there before we added them.
    pub static_fdb: BTreeSet<FdbEntry>,
    /// Static FDB entries of others that led elsewhere and that ours took the place of. Written only
    /// where there is one, so that an older agent reads the file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub static_fdb_replaced: BTreeSet<FdbEntry>,
}

impl BridgeState {
    /// Whether nothing is left to undo.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.no_flood_set.is_empty()
            && self.no_flood_cleared.is_empty()
            && self.static_fdb.is_empty()
            && self.static_fdb_replaced.is_empty()
    }
}

/// One static entry of a bridge's forwarding database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FdbEntry {
    /// The address that the entry is for.
    pub mac: Mac,
    /// VLAN ID, 0 = none.
    pub vlan: u16,
    /// The port it leads to, as `fdb/add` takes it (the bridge's own name for LOCAL).
    pub port: String,
}

impl FdbEntry {
    /// Whether both are for one address in one VLAN, so that only one of them can be installed.
    #[must_use]
    pub fn is_about(&self, other: &Self) -> bool {
        (self.mac, self.vlan) == (other.mac, other.vlan)
    }
}

/// A state file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file system refused.
    #[error("cannot {action} {path}: {source}; is the state directory there and writable?", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The content is not ours.
    #[error(
        "{path} is not a state file of this version: {source}; move it away if no flag or FDB entry \
         of an earlier run is left on the bridge",
        path = .path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A newer or older format.
    #[error("{path} has format {found}, this version reads {OLDEST} to {FORMAT}", path = .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// The file, and what it says. Copies share both.
#[derive(Clone, Debug)]
pub struct StateFile(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: State,
}

impl StateFile {
    /// Reads `state.json` in `directory`; a file that is not there means that nothing was changed.
    ///
    /// # Errors
    /// Where the file is there and cannot be read or is not ours.
    pub fn open(directory: &Path) -> Result<Self, StateError> {
        let path = directory.join("state.json");
        let state = match plain_file::read(&path, LIMIT) {
            Ok(text) => read(&path, &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(source) => {
                return Err(StateError::Io {
                    action: "read",
                    path,
                    source,
                });
            }
        };
        let state = State {
            format: FORMAT,
            ..state
        };
        Ok(Self(Arc::new(Mutex::new(Shared { path, state }))))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that the file says.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared().state.clone()
    }

    /// What was changed on one bridge.
    #[must_use]
    pub fn bridge(&self, name: &str) -> BridgeState {
        let shared = self.shared();
        shared.state.bridges.get(name).cloned().unwrap_or_default()
    }

    /// Replaces what is known of one bridge; the file is written, and only then the change holds.
    ///
    /// Call it *before* touching the bridge: a crash in between then leaves a record too many,
    /// never one too few.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn record(&self, name: &str, bridge: BridgeState) -> Result<(), StateError> {
        self.shared().change(|state| {
            if bridge.is_empty() {
                state.bridges.remove(name);
            } else {
                state.bridges.insert(name.to_owned(), bridge);
            }
        })
    }

    /// Whether steering and mirroring are paused.
    #[must_use]
    pub fn paused(&self) -> bool {
        self.shared().state.paused
    }

    /// Pauses or resumes, for later runs too; whether that is a change.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn set_paused(&self, paused: bool) -> Result<bool, StateError> {
        let mut shared = self.shared();
        let changes = shared.state.paused != paused;
        shared.change(|state| state.paused = paused)?;
        Ok(changes)
    }

    /// The sources that were chosen last.
    #[must_use]
    pub fn sources(&self) -> Incumbents {
        self.shared().state.sources.clone()
    }

    /// The external ports that static rows of ours may name.
    #[must_use]
    pub fn static_ports(&self) -> BTreeSet<Arc<str>> {
        self.shared().state.static_ports.clone()
    }

    /// Replaces them. Call it *before* the first row of a port is written.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn set_static_ports(&self, ports: BTreeSet<Arc<str>>) -> Result<(), StateError> {
        self.shared().change(|state| state.static_ports = ports)
    }

    /// Keeps the sources for later runs.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn set_sources(&self, sources: Incumbents) -> Result<(), StateError> {
        self.shared().change(|state| state.sources = sources)
    }
}

fn read(path: &Path, text: &[u8]) -> Result<State, StateError> {
    let path = path.to_owned();
    match serde_json::from_slice::<State>(text) {
        Ok(state) if (OLDEST..=FORMAT).contains(&state.format) => Ok(state),
        Ok(State { format: found, .. }) => Err(StateError::Version { path, found }),
        Err(source) => Err(StateError::Format { path, source }),
    }
}

impl Shared {
    fn change(&mut self, change: impl FnOnce(&mut State)) -> Result<(), StateError> {
        let mut state = self.state.clone();
        change(&mut state);
        if state != self.state {
            self.write(&state)?;
            self.state = state;
        }
        Ok(())
    }

    /// Writes beside the file and renames, so that a crash leaves the old one or the new one.
    fn write(&self, state: &State) -> Result<(), StateError> {
        let error = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StateError::Io {
                action,
                path,
                source,
            }
        };
        let temporary = self.path.with_extension("json.new");
        let text = serde_json::to_vec_pretty(state).map_err(|source| StateError::Format {
            path: self.path.clone(),
            source,
        })?;
        // Whatever is in the way, such as a FIFO that would have us wait, is not written to.
        match fs::remove_file(&temporary) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(error("remove", &temporary)(source));
            }
            _ => {}
        }
        let mut file = fs::File::create_new(&temporary).map_err(error("create", &temporary))?;
        file.write_all(&text).map_err(error("write", &temporary))?;
        file.sync_all().map_err(error("write", &temporary))?;
        fs::rename(&temporary, &self.path).map_err(error("replace", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed() -> BridgeState {
        BridgeState {
            no_flood_set: ["patch-a".to_owned()].into(),
            no_flood_cleared: BTreeSet::new(),
            static_fdb: [FdbEntry {
                mac: Mac([2, 0, 0, 0, 0, 1]),
                vlan: 0,
                port: "br-ex".to_owned(),
            }]
            .into(),
            static_fdb_replaced: BTreeSet::new(),
        }
    }

    #[test]
    fn what_was_recorded_is_read_back_by_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::open(directory.path()).unwrap();
        file.record("br-ex", changed()).unwrap();
        assert_eq!(
            StateFile::open(directory.path()).unwrap().bridge("br-ex"),
            changed()
        );
    }

    #[test]
    fn a_fifo_in_the_place_of_a_file_holds_nobody_up() {
        let fifo = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fifo(&directory.path().join("state.json"));
        let error = StateFile::open(directory.path()).unwrap_err();
        assert!(matches!(error, StateError::Io { .. }), "{error}");
        fs::remove_file(directory.path().join("state.json")).unwrap();
        fifo(&directory.path().join("state.json.new"));
        let file = StateFile::open(directory.path()).unwrap();
        file.record("br-ex", changed()).unwrap();
        let next = StateFile::open(directory.path()).unwrap();
        assert_eq!(next.bridge("br-ex"), changed());
    }

    #[test]
    fn a_bridge_with_nothing_to_undo_leaves_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::open(directory.path()).unwrap();
        file.record("br-ex", changed()).unwrap();
        file.record("br-ex", BridgeState::default()).unwrap();
        assert!(
            StateFile::open(directory.path())
                .unwrap()
                .state()
                .bridges
                .is_empty()
        );
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(
            directory.path().join("state.json"),
            "{\"format\":1,\"bridges\":{},\"extra\":1}",
        )
        .unwrap();
        let error = StateFile::open(directory.path()).unwrap_err().to_string();
        assert!(
            error.contains("state.json is not a state file of this version"),
            "{error}"
        );
        fs::write(
            directory.path().join("state.json"),
            "{\"format\":9,\"bridges\":{}}",
        )
        .unwrap();
        let error = StateFile::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("format 9"), "{error}");
    }

    #[test]
    fn a_file_of_the_first_format_is_read_and_pausing_and_sources_are_kept_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let bridges = serde_json::to_string(&BTreeMap::from([("br-ex", changed())])).unwrap();
        let first = format!("{{\"format\":1,\"bridges\":{bridges}}}");
        fs::write(directory.path().join("state.json"), first).unwrap();
        let file = StateFile::open(directory.path()).unwrap();
        assert_eq!(file.bridge("br-ex"), changed());
        assert!(!file.paused());
        assert!(file.set_paused(true).unwrap());
        assert!(!file.set_paused(true).unwrap(), "it was paused already");
        let sources = Incumbents::from([("br-up".into(), "GR_blue".into())]);
        file.set_sources(sources.clone()).unwrap();
        let ports = BTreeSet::from(["rtoe-GR_blue".into()]);
        file.set_static_ports(ports.clone()).unwrap();

        let again = StateFile::open(directory.path()).unwrap();
        assert!(again.paused());
        assert_eq!(again.sources(), sources);
        assert_eq!(again.static_ports(), ports);
        assert_eq!(again.bridge("br-ex"), changed());
    }

    #[test]
    fn a_change_that_could_not_be_written_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let file = StateFile::open(directory.path()).unwrap();
        drop(directory);
        assert!(file.record("br-ex", changed()).is_err());
        assert_eq!(file.bridge("br-ex"), BridgeState::default());
    }
}
