//! What can go wrong at a control socket.

use std::{io, path::PathBuf, time::Duration};

use super::ParseFdbError;

/// Why a command to a control socket failed.
#[derive(Debug, thiserror::Error)]
pub enum UnixCtlError {
    /// The pid file that names the socket cannot be read.
    #[error("cannot read {path}: is ovs-vswitchd running, and is this its run directory?")]
    PidFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The pid file holds no number.
    #[error("{path} holds {content:?}, which is no process id")]
    PidFileContent {
        /// The file.
        path: PathBuf,
        /// What it holds.
        content: String,
    },
    /// Nothing is at the path.
    #[error("no control socket at {socket}: is ovs-vswitchd running?")]
    SocketMissing {
        /// The path.
        socket: PathBuf,
    },
    /// The connection was refused, not permitted, or broke.
    #[error("cannot talk to the control socket {socket}")]
    Connection {
        /// The path.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The daemon closed the connection before it replied.
    #[error("{socket} closed the connection before it replied to {command}")]
    Closed {
        /// The path.
        socket: PathBuf,
        /// The command.
        command: String,
    },
    /// No reply in time.
    #[error("{socket} did not reply to {command} within {after:?}")]
    Timeout {
        /// The path.
        socket: PathBuf,
        /// The command.
        command: String,
        /// How long was waited.
        after: Duration,
    },
    /// Bytes that are no JSON-RPC reply to the command.
    #[error("{socket} sent something that is no reply to {command}")]
    Malformed {
        /// The path.
        socket: PathBuf,
        /// The command.
        command: String,
        /// What is wrong with it, where it is not JSON of the right shape.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The daemon refused the command.
    #[error("{command} failed: {message}")]
    Command {
        /// The command with its arguments.
        command: String,
        /// What the daemon said.
        message: String,
    },
    /// The output of `fdb/show` has a line of another shape.
    #[error("cannot read the forwarding table of bridge {bridge}")]
    Fdb {
        /// The bridge.
        bridge: String,
        /// The line.
        #[source]
        source: ParseFdbError,
    },
}
