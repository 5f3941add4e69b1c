//! One agent a node: a lock file that names its holder.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg};

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
    /// The file system refused.
    #[error("cannot lock {path}: {source}; is the state directory writable for this user?", path = .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The lock, held until it is dropped (or the process ends, however).
#[derive(Debug)]
pub struct NodeLock {
    _file: Flock<File>,
}

impl NodeLock {
    /// Takes the lock `agent.lock` in `directory`, which is made where it is missing.
    ///
    /// # Errors
    /// Where another process holds it or the file system refuses.
    pub fn acquire(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join("agent.lock");
        let error = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(directory).map_err(error)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(&path)
            .map_err(error)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(mut file) => {
                file.set_len(0).map_err(error)?;
                file.rewind().map_err(error)?;
                write!(file, "{}", std::process::id()).map_err(error)?;
                Ok(Self { _file: file })
            }
            Err((mut file, nix::errno::Errno::EAGAIN)) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(error)?;
                Err(LockError::Held { path, holder })
            }
            Err((_, errno)) => Err(error(errno.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_agent_is_refused_and_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let first = NodeLock::acquire(directory.path()).unwrap();
        let error = NodeLock::acquire(directory.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("pid {}", std::process::id())),
            "{error}"
        );
        drop(first);
        NodeLock::acquire(directory.path()).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = NodeLock::acquire(&file.path().join("below")).unwrap_err();
        assert!(matches!(error, LockError::Io { .. }));
    }
}
