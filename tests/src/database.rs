//! A database server of one's own, to be killed, paused and started again.

use std::{
    fs, io,
    net::{IpAddr, TcpListener},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use neighsteer::ovsdb::{Remote, TlsFiles};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::lab::{Namespace, wait_until};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// An ovsdb-server with one database in a directory of its own; both go with it.
#[derive(Debug)]
pub struct DatabaseServer {
    directory: TempDir,
    /// Where the database's file is.
    data: PathBuf,
    host: IpAddr,
    port: u16,
    namespace: Option<PathBuf>,
    tls: Option<TlsFiles>,
    process: Option<Child>,
}

/// What a server is to be like.
#[derive(Debug)]
pub struct ServerBuilder {
    schema: PathBuf,
    model: Model,
    data: Option<PathBuf>,
    namespace: Option<(PathBuf, IpAddr)>,
    tls: Option<TlsFiles>,
}

#[derive(Debug)]
enum Model {
    Standalone,
    /// The first member of a cluster.
    First,
    /// One more, which joins this one.
    Joining {
        database: String,
        raft: PathBuf,
    },
}

impl ServerBuilder {
    /// The first member of a cluster, which remembers its last transactions.
    #[must_use]
    pub fn clustered(mut self) -> Self {
        self.model = Model::First;
        self
    }

    /// One more member of the cluster of `member`, which has `database`.
    #[must_use]
    pub fn joining(mut self, member: &DatabaseServer, database: &str) -> Self {
        self.model = Model::Joining {
            database: database.to_owned(),
            raft: member.raft(),
        };
        self
    }

    /// Keeps the database's file in this directory.
    #[must_use]
    pub fn data(mut self, directory: &Path) -> Self {
        self.data = Some(directory.to_owned());
        self
    }

    /// Listens on this address of a network namespace.
    #[must_use]
    pub fn inside(mut self, namespace: &Namespace, address: IpAddr) -> Self {
        self.namespace = Some((namespace.path(), address));
        self
    }

    /// Listens with TLS on the port, instead of without.
    #[must_use]
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.tls = Some(files);
        self
    }

    /// Makes the database and starts the server.
    ///
    /// # Errors
    /// Where a tool is missing or fails.
    pub fn start(self) -> Result<DatabaseServer, DatabaseError> {
        let directory = tempfile::Builder::new()
            .prefix("neighsteer-db-")
            .tempdir()
            .map_err(failed("make a directory"))?;
        let data = self
            .data
            .unwrap_or_else(|| directory.path().to_owned())
            .join("database");
        let raft = |directory: &Path| format!("unix:{}", directory.join("raft").display());
        let mut create = Command::new("ovsdb-tool");
        match self.model {
            Model::Standalone => create.arg("create").arg(&data).arg(&self.schema),
            Model::First => create
                .arg("create-cluster")
                .arg(&data)
                .arg(&self.schema)
                .arg(raft(directory.path())),
            Model::Joining {
                database,
                raft: first,
            } => create
                .arg("join-cluster")
                .arg(&data)
                .arg(database)
                .arg(raft(directory.path()))
                .arg(format!("unix:{}", first.display())),
        };
        tool("ovsdb-tool", &mut create)?;
        let (namespace, host, port) = match self.namespace {
            // Nobody else is in there.
            Some((namespace, host)) => (Some(namespace), host, 6642),
            None => {
                let host = IpAddr::from([127, 0, 0, 1]);
                // The port is free again before the server takes it; nobody else wants it meanwhile.
                let port = TcpListener::bind((host, 0))
                    .and_then(|listener| listener.local_addr())
                    .map_err(failed("find a free port"))?
                    .port();
                (None, host, port)
            }
        };
        let mut server = DatabaseServer {
            directory,
            data,
            host,
            port,
            namespace,
            tls: self.tls,
            process: None,
        };
        server.resurrect()?;
        Ok(server)
    }
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
pub(crate) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> DatabaseError {
    move |source| DatabaseError::Io { what, source }
}

/// Runs a tool to its end and returns what it printed.
pub(crate) fn tool(name: &'static str, command: &mut Command) -> Result<String, DatabaseError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(failed("run a tool"))?;
    if !output.status.success() {
        return Err(DatabaseError::Tool {
            tool: name,
            message: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
        Self::builder(schema).start()
    }

    /// The same as the only member of a cluster, which remembers its last transactions.
    ///
    /// # Errors
    /// Where a tool is missing or fails.
    pub fn start_clustered(schema: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::builder(schema).clustered().start()
    }

    /// A server to be described first.
    pub fn builder(schema: impl AsRef<Path>) -> ServerBuilder {
        ServerBuilder {
            schema: schema.as_ref().to_owned(),
            model: Model::Standalone,
            data: None,
            namespace: None,
            tls: None,
        }
    }

    /// Starts the server again with the data that it had.
    ///
    /// # Errors
    /// Where it does not listen in time.
    pub fn resurrect(&mut self) -> Result<(), DatabaseError> {
        let directory = self.directory.path();
        let log = fs::File::create(directory.join("log")).map_err(failed("make a log"))?;
        let mut command = match &self.namespace {
            None => Command::new("ovsdb-server"),
            Some(namespace) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", namespace.display()));
                command.args(["--", "ovsdb-server"]);
                command
            }
        };
        let kind = match &self.tls {
            None => "ptcp",
            Some(files) => {
                command
                    .arg(format!("--private-key={}", files.private_key.display()))
                    .arg(format!("--certificate={}", files.certificate.display()))
                    .arg(format!("--ca-cert={}", files.ca_cert.display()));
                "pssl"
            }
        };
        let mut process = command
            .arg(&self.data)
            .arg(format!("--remote=punix:{}", self.socket().display()))
            .arg(format!("--remote={kind}:{}:{}", self.port, self.host))
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
            let control = self.directory.path().join("ctl");
            if UnixStream::connect(control).is_ok() {
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
        // It answers here only when every remote listens.
        self.control(&["version"]).map(drop)
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

    /// The same server over TCP, or over TLS where it was made so.
    #[must_use]
    pub fn tcp_remote(&self) -> Remote {
        let (host, port) = (self.host.to_string(), self.port);
        match self.tls {
            None => Remote::Tcp { host, port },
            Some(_) => Remote::Ssl { host, port },
        }
    }

    /// Says something to the server's control socket (ovs-appctl(8)) and returns its answer.
    ///
    /// # Errors
    /// Where it does not answer, or with an error.
    pub fn control(&self, arguments: &[&str]) -> Result<String, DatabaseError> {
        let mut command = Command::new("ovs-appctl");
        command.arg("--timeout=20").arg("--target");
        command.arg(self.directory.path().join("ctl"));
        tool("ovs-appctl", command.args(arguments))
    }

    /// All transactions of a standalone server, oldest first, as its file keeps them: by table and
    /// row, the columns that were set, `null` for a row that was deleted.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn history(&self) -> Result<Vec<serde_json::Value>, DatabaseError> {
        let text = fs::read_to_string(&self.data).map_err(failed("read the file"))?;
        // Each record has a line that says its length. The first is the schema.
        let records = text.lines().filter(|line| line.starts_with('{')).skip(1);
        let parsed: Result<_, serde_json::Error> = records.map(serde_json::from_str).collect();
        parsed.map_err(|error| failed("read the file")(error.into()))
    }

    /// Where the members of a cluster meet.
    fn raft(&self) -> PathBuf {
        self.directory.path().join("raft")
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        let _already_gone = self.kill();
    }
}
