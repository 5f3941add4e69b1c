//! A database server of one's own, to be killed, paused and started again.

use std::{
    fs, io,
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use neighsteer::ovsdb::Remote;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::lab::wait_until;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// An ovsdb-server with one database in a directory of its own; both go with it.
#[derive(Debug)]
pub struct DatabaseServer {
    directory: TempDir,
    port: u16,
    process: Option<Child>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A file or a process could not be made.
    #[error("{what} for a database server")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A tool said no.
    #[error("{tool} failed: {message}")]
    Tool {
        /// Its name.
        tool: &'static str,
        /// What it printed.
        message: String,
    },
}

/// What fails with which words.
fn failed(what: &'static str) -> impl FnOnce(io::Error) -> DatabaseError {
    move |source| DatabaseError::Io { what, source }
}

impl DatabaseServer {
    /// The schema of the database of ovs-vswitchd.
    pub const OPEN_VSWITCH: &str = "/usr/share/openvswitch/vswitch.ovsschema";
    /// The schema of the northbound database.
    pub const NORTHBOUND: &str = "/usr/share/ovn/ovn-nb.ovsschema";
    /// The schema of the southbound database.
    pub const SOUTHBOUND: &str = "/usr/share/ovn/ovn-sb.ovsschema";

    /// Starts a server with an empty standalone database of this schema.
    ///
    /// # Errors
    /// Where a tool is missing or fails.
    pub fn start(schema: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::create(schema.as_ref(), false)
    }

    /// The same as the only member of a cluster, which remembers its last transactions.
    ///
    /// # Errors
    /// Where a tool is missing or fails.
    pub fn start_clustered(schema: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::create(schema.as_ref(), true)
    }

    fn create(schema: &Path, clustered: bool) -> Result<Self, DatabaseError> {
        let directory = tempfile::Builder::new()
            .prefix("neighsteer-db-")
            .tempdir()
            .map_err(failed("make a directory"))?;
        let mut create = Command::new("ovsdb-tool");
        create
            .arg(if clustered {
                "create-cluster"
            } else {
                "create"
            })
            .arg(directory.path().join("database"))
            .arg(schema);
        if clustered {
            create.arg(format!("unix:{}", directory.path().join("raft").display()));
        }
        let output = create.output().map_err(failed("run ovsdb-tool"))?;
        if !output.status.success() {
            return Err(DatabaseError::Tool {
                tool: "ovsdb-tool",
                message: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        // The port is free again before the server takes it; nobody else wants it meanwhile.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .map_err(failed("find a free port"))?
            .port();
        let mut server = Self {
            directory,
            port,
            process: None,
        };
        server.resurrect()?;
        Ok(server)
    }

    /// Starts the server again with the data that it had.
    ///
    /// # Errors
    /// Where it does not listen in time.
    pub fn resurrect(&mut self) -> Result<(), DatabaseError> {
        let directory = self.directory.path();
        let log = fs::File::create(directory.join("log")).map_err(failed("make a log"))?;
        let mut process = Command::new("ovsdb-server")
            .arg(directory.join("database"))
            .arg(format!("--remote=punix:{}", self.socket().display()))
            .arg(format!("--remote=ptcp:{}:127.0.0.1", self.port))
            .arg(format!("--unixctl={}", directory.join("ctl").display()))
            // After a restart, 3.1 takes the difference to the default of a set with at least one
            // member for the whole: of [0] changed to [-1] it makes [-1, 0]. Write wholes.
            .arg("--disable-file-column-diff")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(failed("run ovsdb-server"))?;
        let started = wait_until(START, "ovsdb-server to accept or to end", || {
            if UnixStream::connect(self.socket()).is_ok() {
                return Ok(true);
            }
            match process.try_wait() {
                Ok(None) => Err("neither yet"),
                Ok(Some(_)) | Err(_) => Ok(false),
            }
        });
        if !matches!(started, Ok(true)) {
            let _already_gone = process.kill();
            return Err(DatabaseError::Tool {
                tool: "ovsdb-server",
                message: fs::read_to_string(directory.join("log")).unwrap_or_default(),
            });
        }
        self.process = Some(process);
        Ok(())
    }

    /// Kills the server, as a crash would.
    ///
    /// # Errors
    /// Where it cannot be waited for.
    pub fn kill(&mut self) -> Result<(), DatabaseError> {
        if let Some(mut process) = self.process.take() {
            process.kill().map_err(failed("kill the process"))?;
            process.wait().map_err(failed("wait for the process"))?;
        }
        Ok(())
    }

    /// Stops the server in its tracks; its connections stay open.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn pause(&self) -> Result<(), DatabaseError> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn resume(&self) -> Result<(), DatabaseError> {
        self.signal(Signal::SIGCONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), DatabaseError> {
        let pid = self
            .process
            .as_ref()
            .and_then(|process| i32::try_from(process.id()).ok())
            .ok_or(io::ErrorKind::NotFound.into())
            .map_err(failed("signal the process"))?;
        kill(Pid::from_raw(pid), signal)
            .map_err(io::Error::from)
            .map_err(failed("signal the process"))
    }

    /// The path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// The socket as a remote.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::Unix(self.socket())
    }

    /// The same server over TCP.
    #[must_use]
    pub fn tcp_remote(&self) -> Remote {
        Remote::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.port,
        }
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        let _already_gone = self.kill();
    }
}
