//! Where a database server listens (ovsdb(7), "Active Connections").

use std::{fmt, io, path::PathBuf, str::FromStr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::tls::{self, TlsError, TlsFiles};

/// The port of a database server that is not named (RFC 7047, 8).
const DEFAULT_PORT: u16 = 6640;

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// A local socket.
    Unix(PathBuf),
    /// An unprotected connection.
    Tcp {
        /// A name or address.
        host: String,
        /// The port, host order.
        port: u16,
    },
    /// A connection over TLS.
    Ssl {
        /// A name or address.
        host: String,
        /// The port, host order.
        port: u16,
    },
}

/// A remote that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Of no known kind.
    #[error("remote {text:?} is none of unix:<path>, tcp:<host>[:<port>] and ssl:<host>[:<port>]")]
    UnknownKind {
        /// What was given.
        text: String,
    },
    /// A host or port that is none.
    #[error("remote {text:?} has no valid host and port")]
    HostOrPort {
        /// What was given.
        text: String,
    },
    /// Nothing was given.
    #[error("no remote was given")]
    Empty,
}

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is nothing to connect to.
    #[error("no remote was given")]
    NoRemote,
    /// There is no such socket.
    #[error("socket missing: {}: is ovsdb-server running?", path.display())]
    SocketMissing {
        /// The path.
        path: PathBuf,
    },
    /// The socket is there, but nobody listens.
    #[error("nobody listens on socket {}: is ovsdb-server running?", path.display())]
    NobodyListens {
        /// The path.
        path: PathBuf,
    },
    /// The user may not.
    #[error("no permission to use socket {}: run as root or as its owner", path.display())]
    NoPermission {
        /// The path.
        path: PathBuf,
    },
    /// A remote with TLS, but nothing to show to it.
    #[error(
        "{remote} needs a private key, a certificate and an authority's certificate; none were given"
    )]
    NoTlsFiles {
        /// The server.
        remote: Remote,
    },
    /// One side does not trust the other, or a file is not what it should be.
    #[error("no TLS connection to {remote}")]
    Tls {
        /// The server.
        remote: Remote,
        /// Why.
        #[source]
        source: Box<TlsError>,
    },
    /// Anything else.
    #[error("cannot connect to {remote}")]
    Io {
        /// The server.
        remote: Remote,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No answer in time.
    #[error("{remote} did not answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// The server.
        remote: Remote,
        /// How long.
        after: Duration,
    },
}

/// A stream to a server.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

impl Remote {
    /// Reads remotes separated by commas.
    ///
    /// # Errors
    /// Where one cannot be read, or there is none.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RemoteError> {
        let remotes: Vec<Self> = text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if remotes.is_empty() {
            return Err(RemoteError::Empty);
        }
        Ok(remotes)
    }

    /// Whether the server is on this machine, behind a socket that cannot half-open.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Whether the connection is over TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Ssl { .. })
    }

    /// Connects.
    pub(crate) async fn connect(
        &self,
        files: Option<&TlsFiles>,
    ) -> Result<Box<dyn Transport>, ConnectError> {
        match self {
            Self::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(source) => Err(self.explain(path, source)),
            },
            Self::Tcp { host, port } => Ok(Box::new(self.connect_tcp(host, *port).await?)),
            Self::Ssl { host, port } => {
                let files = files.ok_or_else(|| ConnectError::NoTlsFiles {
                    remote: self.clone(),
                })?;
                let stream = self.connect_tcp(host, *port).await?;
                match tls::connect(files, host, stream).await {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(source) => Err(ConnectError::Tls {
                        remote: self.clone(),
                        source: Box::new(source),
                    }),
                }
            }
        }
    }

    async fn connect_tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let io = |source| ConnectError::Io {
            remote: self.clone(),
            source,
        };
        let stream = TcpStream::connect((host, port)).await.map_err(io)?;
        stream.set_nodelay(true).map_err(io)?;
        Ok(stream)
    }

    fn explain(&self, path: &std::path::Path, source: io::Error) -> ConnectError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => ConnectError::SocketMissing { path },
            io::ErrorKind::ConnectionRefused => ConnectError::NobodyListens { path },
            io::ErrorKind::PermissionDenied => ConnectError::NoPermission { path },
            _ => ConnectError::Io {
                remote: self.clone(),
                source,
            },
        }
    }
}

impl FromStr for Remote {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let (rest, is_tls) = match (text.strip_prefix("tcp:"), text.strip_prefix("ssl:")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(RemoteError::UnknownKind { text: text.into() }),
        };
        let invalid = || RemoteError::HostOrPort { text: text.into() };
        let (host, port) = if let Some(rest) = rest.strip_prefix('[') {
            let (host, port) = rest.split_once(']').ok_or_else(invalid)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| invalid())?;
            match port {
                "" => (host, None),
                port => (host, Some(port.strip_prefix(':').ok_or_else(invalid)?)),
            }
        } else {
            match rest.split_once(':') {
                None => (rest, None),
                Some((host, port)) => (host, Some(port)),
            }
        };
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(invalid)?,
        };
        if host.is_empty() {
            return Err(invalid());
        }
        let host = host.to_owned();
        Ok(if is_tls {
            Self::Ssl { host, port }
        } else {
            Self::Tcp { host, port }
        })
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, host, port) = match self {
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } => ("tcp", host, port),
            Self::Ssl { host, port } => ("ssl", host, port),
        };
        if host.contains(':') {
            write!(f, "{kind}:[{host}]:{port}")
        } else {
            write!(f, "{kind}:{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_read_as_they_print() {
        for text in [
            "unix:/run/ovn/ovnsb_db.sock",
            "tcp:10.0.0.1:6642",
            "tcp:[fd00::1]:6642",
            "tcp:central.example:6642",
            "ssl:[fd00::1]:6642",
            "ssl:central.example:6642",
        ] {
            assert_eq!(text.parse::<Remote>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_missing_port_is_the_registered_one() {
        assert_eq!(
            Remote::parse_list("tcp:[::1], tcp:a,").unwrap(),
            ["tcp:[::1]:6640", "tcp:a:6640"].map(|text| text.parse().unwrap())
        );
    }

    #[test]
    fn what_is_no_remote_is_refused() {
        for text in [
            "",
            "unix:",
            "tcp:",
            "tcp::1",
            "tcp:a:",
            "tcp:a:0",
            "tcp:a:65536",
            "tcp:[::1",
            "tcp:[x]:1",
            "tcp:[::1]1",
            "/run/db.sock",
            "ssl:",
            "tls:1.2.3.4:6642",
        ] {
            assert!(text.parse::<Remote>().is_err(), "{text}");
        }
        assert_eq!(Remote::parse_list(" ,"), Err(RemoteError::Empty));
    }
}
