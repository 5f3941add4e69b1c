//! What can go wrong in a lab, and the one way to wait in it.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::vm;

/// Why the lab could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Network namespaces and veth pairs need root.
    #[error("the lab makes network namespaces and bridges: run it as root")]
    NotRoot,
    /// A program is missing or may not be executed.
    #[error("cannot run {program}: {source}; `cargo xtask setup` installs what the lab needs")]
    Spawn {
        /// The program's name.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A command ended with an exit code other than 0.
    #[error("`{command}` ended with {status}: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// A file, socket or system call failed.
    #[error("cannot {action} {object}: {source}")]
    Io {
        /// What was tried (`read`, `connect to`, …).
        action: &'static str,
        /// On which file, socket or interface.
        object: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A condition did not come true in time.
    #[error("waited {} s for {what}; last seen: {last}", waited.as_secs_f32())]
    Deadline {
        /// The condition.
        what: String,
        /// How long it was waited for.
        waited: Duration,
        /// What the last look at it found instead.
        last: String,
    },
    /// A daemon ended by itself.
    #[error("{daemon} ended with {status} while it started; its output ends with:\n{output}")]
    DaemonEnded {
        /// The daemon's name.
        daemon: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote.
        output: String,
    },
    /// A daemon is gone that something is expected from.
    #[error("{daemon} has ended; its log ends with:\n{log}")]
    DaemonGone {
        /// The daemon's name.
        daemon: &'static str,
        /// The end of its log.
        log: String,
    },
    /// The database server refused a transaction.
    #[error("{database} refused a transaction: {error}")]
    Transaction {
        /// The database.
        database: &'static str,
        /// The server's error object.
        error: serde_json::Value,
    },
    /// Something answered in a form that the lab does not know.
    #[error("cannot make sense of {what}: {text}")]
    Unexpected {
        /// What was read.
        what: &'static str,
        /// The part that is not understood.
        text: String,
    },
    /// The agent's binary is not built.
    #[error(
        "no neighsteer binary at {}: run `cargo build -p neighsteer`, or name one in NEIGHSTEER_BIN",
        path.display()
    )]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The tree with other versions is not made.
    #[error("no tree {name} with its Open vSwitch and OVN: run `cargo xtask setup` as root")]
    NoTree {
        /// The tree's name.
        name: String,
    },
    /// There is no such lab, or more than one to choose from.
    #[error("{0}")]
    Choice(String),
    /// The user pressed ^C or the process got SIGTERM.
    #[error("interrupted")]
    Interrupted,
}

/// Shorthand for the lab's results.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

impl LabError {
    /// For `map_err`: names what was tried on which object.
    pub(crate) fn io(
        action: &'static str,
        object: impl Display,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let object = object.to_string();
        move |source| Self::Io {
            action,
            object,
            source,
        }
    }

    /// For `map_err` on `nix` calls.
    pub(crate) fn errno(
        action: &'static str,
        object: impl Display,
    ) -> impl FnOnce(nix::errno::Errno) -> Self {
        let convert = Self::io(action, object);
        move |errno| convert(errno.into())
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes every wait in this process end with [`LabError::Interrupted`], so that labs are dropped.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Fails if [`interrupt`] was called.
pub(crate) fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    Ok(())
}

/// Looks at a condition until it holds or the deadline is over.
///
/// The probe returns `Ok` with its finding when the condition holds, and `Err` with what it saw
/// instead when not: that text is in the error of a wait that fails.
///
/// # Errors
/// [`LabError::Deadline`] when time is over, [`LabError::Interrupted`] after [`interrupt`].
pub fn wait_until<T, E: Display>(
    deadline: Duration,
    what: impl Display,
    mut probe: impl FnMut() -> std::result::Result<T, E>,
) -> Result<T> {
    poll(deadline, what, || {
        check_interrupted()?;
        Ok(probe())
    })
}

/// As [`wait_until`], for cleaning up: an interruption does not end it.
pub(crate) fn wait_until_clean<T, E: Display>(
    deadline: Duration,
    what: impl Display,
    mut probe: impl FnMut() -> std::result::Result<T, E>,
) -> Result<T> {
    poll(deadline, what, || Ok(probe()))
}

fn poll<T, E: Display>(
    deadline: Duration,
    what: impl Display,
    mut probe: impl FnMut() -> Result<std::result::Result<T, E>>,
) -> Result<T> {
    let start = Instant::now();
    let deadline = vm::patience(deadline);
    let mut pause = Duration::from_millis(2);
    loop {
        let seen = match probe()? {
            Ok(found) => return Ok(found),
            Err(seen) => seen,
        };
        if start.elapsed() >= deadline {
            return Err(LabError::Deadline {
                what: what.to_string(),
                waited: start.elapsed(),
                last: seen.to_string(),
            });
        }
        // The one place where tests wait: between two looks, until the deadline above.
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
