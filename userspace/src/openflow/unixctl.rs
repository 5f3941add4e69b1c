//! A client of the control socket that `ovs-appctl` talks to: JSON-RPC 1.0, one object a request
//! (ovs-appctl(8), unixctl in ovs-vswitchd(8)).

mod error;
mod fdb;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

pub use error::UnixCtlError;
pub use fdb::{FdbEntry, FdbPort, ParseFdbError};

use crate::{ids::Mac, plain_file};

/// A reply larger than this (bytes) is refused: the longest that was measured is a trace of some
/// 4,000 lookups, below 1 MiB.
const REPLY_LIMIT: usize = 64 << 20;
/// A number and the end of its line are shorter, bytes.
const PID_LIMIT: u64 = 64;

/// Where a daemon's control socket is, and how long one command may take.
#[derive(Clone, Debug)]
pub struct UnixCtl {
    socket: PathBuf,
    timeout: Duration,
}

/// One open connection, for many commands in a row.
#[derive(Debug)]
pub struct UnixCtlSession {
    socket: PathBuf,
    timeout: Duration,
    stream: UnixStream,
    received: BytesMut,
    next_id: u64,
}

#[derive(serde::Serialize)]
struct Request<'a> {
    method: &'a str,
    params: &'a [&'a str],
    id: u64,
}

#[derive(serde::Deserialize)]
struct Reply {
    id: Option<u64>,
    result: Option<String>,
    error: Option<String>,
}

impl UnixCtl {
    /// How long a command may take unless [`UnixCtl::with_timeout`] says otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// A daemon's control socket at a given path.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }

    /// ovs-vswitchd's socket in a run directory: `ovs-vswitchd.<pid>.ctl`, with the process id out
    /// of `ovs-vswitchd.pid`; or `ovs-vswitchd.ctl`, where the daemon was told to use that.
    ///
    /// # Errors
    /// Where the pid file cannot be read or holds no number.
    pub fn of_vswitchd(rundir: &Path) -> Result<Self, UnixCtlError> {
        let path = rundir.join("ovs-vswitchd.pid");
        let content = match plain_file::read_text(&path, PID_LIMIT) {
            Ok(content) => content,
            Err(source) => return Err(UnixCtlError::PidFile { path, source }),
        };
        match content.trim().parse::<u32>() {
            Ok(pid) => {
                let usual = rundir.join(format!("ovs-vswitchd.{pid}.ctl"));
                let told = rundir.join("ovs-vswitchd.ctl");
                let socket = if !usual.exists() && told.exists() {
                    told
                } else {
                    usual
                };
                Ok(Self::new(socket))
            }
            Err(_) => Err(UnixCtlError::PidFileContent { path, content }),
        }
    }

    /// The same socket with another time limit for each command.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Where the socket is.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Opens a connection for several commands.
    ///
    /// # Errors
    /// Where the socket is missing, refuses, or takes too long.
    pub async fn connect(&self) -> Result<UnixCtlSession, UnixCtlError> {
        let connected = timeout(self.timeout, UnixStream::connect(&self.socket)).await;
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) if source.kind() == io::ErrorKind::NotFound => {
                return Err(UnixCtlError::SocketMissing {
                    socket: self.socket.clone(),
                });
            }
            Ok(Err(source)) => {
                return Err(UnixCtlError::Connection {
                    socket: self.socket.clone(),
                    source,
                });
            }
            Err(_) => {
                return Err(UnixCtlError::Timeout {
                    socket: self.socket.clone(),
                    command: "connect".to_owned(),
                    after: self.timeout,
                });
            }
        };
        Ok(UnixCtlSession {
            socket: self.socket.clone(),
            timeout: self.timeout,
            stream,
            received: BytesMut::new(),
            next_id: 0,
        })
    }

    /// Runs one command on a connection of its own and returns its output.
    ///
    /// # Errors
    /// As [`UnixCtl::connect`] and [`UnixCtlSession::call`].
    pub async fn call(&self, command: &str, arguments: &[&str]) -> Result<String, UnixCtlError> {
        self.connect().await?.call(command, arguments).await
    }
}

impl UnixCtlSession {
    /// Runs one command and returns its output. After an error other than
    /// [`UnixCtlError::Command`] the connection is of no further use.
    ///
    /// # Errors
    /// Where the daemon refuses the command, does not reply in time, or the connection breaks.
    pub async fn call(
        &mut self,
        command: &str,
        arguments: &[&str],
    ) -> Result<String, UnixCtlError> {
        let after = self.timeout;
        match timeout(after, self.exchange(command, arguments)).await {
            Ok(result) => result,
            Err(_) => Err(UnixCtlError::Timeout {
                socket: self.socket.clone(),
                command: command.to_owned(),
                after,
            }),
        }
    }

    async fn exchange(
        &mut self,
        command: &str,
        arguments: &[&str],
    ) -> Result<String, UnixCtlError> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let malformed = |socket: &Path, source| UnixCtlError::Malformed {
            socket: socket.to_owned(),
            command: command.to_owned(),
            source,
        };
        let request = serde_json::to_vec(&Request {
            method: command,
            params: arguments,
            id,
        })
        .map_err(|source| malformed(&self.socket, Some(source)))?;
        let written = self.stream.write_all(&request).await;
        written.map_err(|source| self.broken(source))?;

        let value = self.read_object(command).await?;
        let reply: Reply = serde_json::from_slice(&value)
            .map_err(|source| malformed(&self.socket, Some(source)))?;
        match reply {
            Reply { id: got, .. } if got != Some(id) => Err(malformed(&self.socket, None)),
            Reply {
                error: Some(message),
                ..
            } => Err(UnixCtlError::Command {
                command: std::iter::once(command)
                    .chain(arguments.iter().copied())
                    .collect::<Vec<_>>()
                    .join(" "),
                message: message.trim_end().to_owned(),
            }),
            // A command without output replies with an empty string, or with null.
            Reply { result, .. } => Ok(result.unwrap_or_default()),
        }
    }

    /// The bytes of the next whole JSON object.
    async fn read_object(&mut self, command: &str) -> Result<BytesMut, UnixCtlError> {
        let mut scanner = ObjectScanner::default();
        loop {
            if let Some(end) = scanner.end_of_object(&self.received) {
                return Ok(self.received.split_to(end));
            }
            if self.received.len() > REPLY_LIMIT {
                return Err(UnixCtlError::Malformed {
                    socket: self.socket.clone(),
                    command: command.to_owned(),
                    source: None,
                });
            }
            self.received.reserve(64 << 10);
            let read = self.stream.read_buf(&mut self.received).await;
            if read.map_err(|source| self.broken(source))? == 0 {
                return Err(UnixCtlError::Closed {
                    socket: self.socket.clone(),
                    command: command.to_owned(),
                });
            }
        }
    }

    fn broken(&self, source: io::Error) -> UnixCtlError {
        UnixCtlError::Connection {
            socket: self.socket.clone(),
            source,
        }
    }

    /// `fdb/add`: a static entry, which survives `fdb/flush` but not a restart. `port` is the name
    /// of a port; the bridge's own name stands for LOCAL (`LOCAL` itself fails on OVS 3.1).
    ///
    /// # Errors
    /// As [`UnixCtlSession::call`].
    pub async fn fdb_add(
        &mut self,
        bridge: &str,
        port: &str,
        vlan: u16,
        mac: Mac,
    ) -> Result<(), UnixCtlError> {
        let (vlan, mac) = (vlan.to_string(), mac.to_string());
        self.call("fdb/add", &[bridge, port, &vlan, &mac])
            .await
            .map(drop)
    }

    /// `fdb/del`: removes a static entry (OVS ≥ 2.17).
    ///
    /// # Errors
    /// As [`UnixCtlSession::call`]; also where there is no such entry.
    pub async fn fdb_del(&mut self, bridge: &str, vlan: u16, mac: Mac) -> Result<(), UnixCtlError> {
        let (vlan, mac) = (vlan.to_string(), mac.to_string());
        self.call("fdb/del", &[bridge, &vlan, &mac]).await.map(drop)
    }

    /// `fdb/show`: the learned and static addresses of a bridge.
    ///
    /// # Errors
    /// As [`UnixCtlSession::call`], and where a line has another shape than expected.
    pub async fn fdb_show(&mut self, bridge: &str) -> Result<Vec<FdbEntry>, UnixCtlError> {
        let text = self.call("fdb/show", &[bridge]).await?;
        fdb::parse(&text).map_err(|source| UnixCtlError::Fdb {
            bridge: bridge.to_owned(),
            source,
        })
    }

    /// `ofproto/trace`: which flows a frame takes. `flow` is a match such as `in_port=1`; `frame`
    /// is the frame in hex, or `None` to trace the flow's own fields.
    ///
    /// # Errors
    /// As [`UnixCtlSession::call`].
    pub async fn trace(
        &mut self,
        bridge: &str,
        flow: &str,
        frame: Option<&str>,
    ) -> Result<String, UnixCtlError> {
        match frame {
            Some(frame) => self.call("ofproto/trace", &[bridge, flow, frame]).await,
            None => self.call("ofproto/trace", &[bridge, flow]).await,
        }
    }
}

/// Finds where the first JSON object ends, without parsing the same bytes twice.
#[derive(Default)]
struct ObjectScanner {
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl ObjectScanner {
    /// The length of the first object in `bytes`, once it is whole. `bytes` may only grow between
    /// calls.
    fn end_of_object(&mut self, bytes: &[u8]) -> Option<usize> {
        for byte in bytes.get(self.scanned..)? {
            self.scanned += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.scanned);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
