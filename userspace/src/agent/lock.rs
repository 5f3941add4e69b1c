//! One agent a node: a lock file that names its holder, and a lock on the switch's run directory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::plain_file;

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent holds it.
    #[error("another agent runs on this node (pid {holder}): it holds {path}; stop that one first", path = .path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it.
        holder: String,
    },
    /// Something else has its name.
    #[error("{path} is no ordinary file, and that is where the lock goes: remove it, or name another --state-dir", path = .path.display())]
    NoFile {
        /// The lock file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot lock {path}: {source}; is its file system writable for this user (root may), and not full?", path = .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The locks, held until they are dropped (or the process ends, however).
#[derive(Debug)]
pub struct NodeLock {
    _state: Flock<File>,
    _switch: Option<Flock<File>>,
}

impl NodeLock {
    /// Takes `agent.lock` in `directory` alone, where there is no switch to write to.
    ///
    /// # Errors
    /// As [`NodeLock::acquire`].
    pub fn without_switch(directory: &Path) -> Result<Self, LockError> {
        Ok(Self {
            _state: take_in(directory)?,
            _switch: None,
        })
    }

    /// Takes `agent.lock` in `directory`, which is made where it is missing, and locks the switch's
    /// run directory: two agents with state directories of their own would still write to one
    /// switch. Where there is no such run directory there is no switch to write to.
    ///
    /// # Errors
    /// Where another process holds one of them or the file system refuses.
    pub fn acquire(directory: &Path, ovs_run_directory: &Path) -> Result<Self, LockError> {
        let state = take_in(directory)?;
        let switch = match ovs_run_directory.is_dir() {
            true => Some(lock_directory(ovs_run_directory)?),
            false => None,
        };
        Ok(Self {
            _state: state,
            _switch: switch,
        })
    }
}

fn take_in(directory: &Path) -> Result<Flock<File>, LockError> {
    let path = directory.join("agent.lock");
    if let Err(source) = fs::create_dir_all(directory) {
        return Err(LockError::Io { path, source });
    }
    take(path)
}

fn take(path: PathBuf) -> Result<Flock<File>, LockError> {
    let error = |source| LockError::Io {
        path: path.clone(),
        source,
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        // The file is written to: not one that a link leads to.
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(&path)
        .map_err(error)?;
    if !file.metadata().map_err(error)?.is_file() {
        return Err(LockError::NoFile { path });
    }
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            file.set_len(0).map_err(error)?;
            file.rewind().map_err(error)?;
            write!(file, "{}", std::process::id()).map_err(error)?;
            Ok(file)
        }
        Err((mut file, nix::errno::Errno::EAGAIN)) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(error)?;
            Err(LockError::Held { path, holder })
        }
        Err((_, errno)) => Err(error(errno.into())),
    }
}

/// Locks the directory itself: we may not be allowed to write a file there, and need not be.
fn lock_directory(path: &Path) -> Result<Flock<File>, LockError> {
    let error = |source| LockError::Io {
        path: path.to_owned(),
        source,
    };
    let directory = File::open(path).map_err(error)?;
    match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
        Ok(directory) => Ok(directory),
        Err((directory, nix::errno::Errno::EAGAIN)) => {
            let inode = directory.metadata().map_err(error)?.ino();
            let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
            Err(LockError::Held {
                path: path.to_owned(),
                holder: holder(&locks, inode).unwrap_or("unknown").to_owned(),
            })
        }
        Err((_, errno)) => Err(error(errno.into())),
    }
}

/// The process that wrote itself into the lock file of a directory; whether it still runs is another
/// matter.
#[must_use]
pub fn holder_in(directory: &Path) -> Option<u32> {
    let path = directory.join("agent.lock");
    plain_file::read_text(&path, 64).ok()?.trim().parse().ok()
}

/// The process that holds the lock of a file, by /proc/locks (proc(5)): `1: FLOCK ADVISORY WRITE
/// pid major:minor:inode start end`. The device is left aside: some file systems show another one
/// there than stat(2) does.
fn holder(locks: &str, inode: u64) -> Option<&str> {
    let ending = format!(":{inode}");
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let kind = words.next()?;
        let (pid, file) = (words.nth(2)?, words.next()?);
        (kind == "FLOCK" && file.ends_with(&ending)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(directory: &Path, switch: &Path) {
        let error = NodeLock::acquire(directory, switch).unwrap_err();
        let me = format!("pid {}", std::process::id());
        assert!(error.to_string().contains(&me), "{error}");
    }

    #[test]
    fn the_second_agent_is_refused_and_told_who_the_first_is() {
        let (state, switch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let other = tempfile::tempdir().unwrap();
        let first = NodeLock::acquire(state.path(), switch.path()).unwrap();
        refused(state.path(), other.path());
        refused(other.path(), switch.path());
        drop(first);
        NodeLock::acquire(state.path(), switch.path()).unwrap();
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_another_agents_lock() {
        let (state, switch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = state.path().join("agent.lock");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = NodeLock::acquire(state.path(), switch.path()).unwrap_err();
        assert!(matches!(error, LockError::NoFile { .. }), "{error}");
        fs::remove_file(path).unwrap();
        NodeLock::acquire(state.path(), switch.path()).unwrap();
    }

    #[test]
    fn the_holder_is_found_by_the_files_number() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 00:1a:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 00:1a:177 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 00:1a:77 0 EOF\n";
        assert_eq!(holder(locks, 77), Some("13"));
        assert_eq!(holder(locks, 7), None);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = file.path().join("below");
        let error = NodeLock::acquire(&below, &below).unwrap_err();
        assert!(matches!(error, LockError::Io { .. }));
    }
}
