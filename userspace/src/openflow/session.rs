//! One OpenFlow connection to a bridge's management socket. It answers echo requests and sends its
//! own; whoever owns it decides what to do when it ends.

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
    time::{Instant, timeout_at},
};

use super::wire::{ErrorCode, ErrorMessage, Header, Hello, Message, Version, WireError};

/// How much is read at once (bytes): a message of the greatest length.
const READ_SIZE: usize = 64 << 10;

/// Entries of one answer in parts: many times the flows of the largest node, and some hundred MB.
const MOST_ENTRIES: usize = 500_000;

/// Silence after which the other side is asked whether it is there.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// Why a connection did not come about, or ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Nothing is at the path.
    #[error(
        "no management socket at {socket}: does the bridge exist, and is ovs-vswitchd running?"
    )]
    SocketMissing {
        /// The path.
        socket: PathBuf,
    },
    /// The socket is there and nobody listens.
    #[error("{socket} refuses connections: is ovs-vswitchd running?")]
    Refused {
        /// The path.
        socket: PathBuf,
    },
    /// The system does not let us connect, or the connection broke.
    #[error("cannot talk OpenFlow over {socket}")]
    Connection {
        /// The path.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The bridge closed the connection: it was deleted, or ovs-vswitchd ended.
    #[error("{socket} was closed while we waited for {waiting_for}")]
    Closed {
        /// The path.
        socket: PathBuf,
        /// What we waited for.
        waiting_for: &'static str,
    },
    /// It took too long.
    #[error("{socket} did not send {waiting_for} within {after:?}")]
    Timeout {
        /// The path.
        socket: PathBuf,
        /// What we waited for.
        waiting_for: &'static str,
        /// How long we waited.
        after: Duration,
    },
    /// The bridge does not speak the version.
    #[error(
        "{socket} does not speak OpenFlow {version:?}: add it to the bridge's `protocols` column, or clear that column"
    )]
    Version {
        /// The path.
        socket: PathBuf,
        /// The version that is needed.
        version: Version,
    },
    /// The bridge sent bytes that are no OpenFlow message.
    #[error("{socket} sent a message that cannot be read")]
    Malformed {
        /// The path.
        socket: PathBuf,
        /// What is wrong.
        #[source]
        source: WireError,
    },
    /// What we wanted to say does not fit in a message.
    #[error("cannot say this in OpenFlow to {socket}")]
    Encode {
        /// The path.
        socket: PathBuf,
        /// What is wrong.
        #[source]
        source: WireError,
    },
    /// The bridge answered a request with an error.
    #[error("{socket} rejected {request}: {code}")]
    Rejected {
        /// The path.
        socket: PathBuf,
        /// What we asked.
        request: &'static str,
        /// The error.
        code: ErrorCode,
    },
    /// An answer came that has no end.
    #[error("{socket} sent more than {limit} entries of {what}, which no bridge has")]
    Endless {
        /// The path.
        socket: PathBuf,
        /// What was asked for.
        what: &'static str,
        /// How many are taken.
        limit: usize,
    },
    /// More news came than are kept while an answer is awaited.
    #[error("{socket} sent more than {limit} events before it answered")]
    TooManyEvents {
        /// The path.
        socket: PathBuf,
        /// How many are kept.
        limit: usize,
    },
}

/// When an operation shall be over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    pub(super) fn after(after: Duration) -> Self {
        Self {
            at: Instant::now() + after,
            after,
        }
    }
}

/// A connection with the version agreed upon.
///
/// All methods that wait can be cancelled between any two messages without loss.
#[derive(Debug)]
pub struct Session {
    socket: PathBuf,
    stream: UnixStream,
    version: Version,
    received: BytesMut,
    outgoing: BytesMut,
    next_xid: u32,
    last_heard: Instant,
    probe_sent: Option<Instant>,
    probe_timeout: Duration,
}

impl Session {
    /// Connects and agrees on exactly this version, all within `timeout`, which is also how long an
    /// echo request may stay unanswered later.
    ///
    /// # Errors
    /// Where the socket is missing, refuses, does not speak the version or takes too long.
    pub async fn connect(
        socket: &Path,
        version: Version,
        timeout: Duration,
    ) -> Result<Self, SessionError> {
        let deadline = Deadline::after(timeout);
        let connected = timeout_at(deadline.at, UnixStream::connect(socket)).await;
        let owned = || socket.to_owned();
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => {
                return Err(match source.kind() {
                    io::ErrorKind::NotFound => SessionError::SocketMissing { socket: owned() },
                    io::ErrorKind::ConnectionRefused => SessionError::Refused { socket: owned() },
                    _ => SessionError::Connection {
                        socket: owned(),
                        source,
                    },
                });
            }
            Err(_) => {
                return Err(SessionError::Timeout {
                    socket: owned(),
                    waiting_for: "a connection",
                    after: timeout,
                });
            }
        };
        let mut session = Self {
            socket: owned(),
            stream,
            version,
            received: BytesMut::new(),
            outgoing: BytesMut::new(),
            next_xid: 1,
            last_heard: Instant::now(),
            probe_sent: None,
            probe_timeout: timeout,
        };
        session.agree(deadline).await?;
        Ok(session)
    }

    async fn agree(&mut self, deadline: Deadline) -> Result<(), SessionError> {
        self.send(&Message::Hello(Hello::only(self.version)))?;
        let agreed = match self.next_before(deadline, "a HELLO").await? {
            (_, Message::Hello(hello)) => hello.offers(self.version),
            _ => false,
        };
        if agreed {
            return Ok(());
        }
        Err(SessionError::Version {
            socket: self.socket.clone(),
            version: self.version,
        })
    }

    /// The socket's path.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Queues a message and returns its xid. It goes out while a message is awaited.
    ///
    /// # Errors
    /// Where the version has no such message or it is too long; nothing is queued then.
    pub fn send(&mut self, message: &Message) -> Result<u32, SessionError> {
        let xid = self.next_xid;
        self.queue(message, xid)?;
        // 0 is the xid of messages that answer nothing.
        self.next_xid = xid.checked_add(1).unwrap_or(1);
        Ok(xid)
    }

    fn queue(&mut self, message: &Message, xid: u32) -> Result<(), SessionError> {
        message
            .encode(self.version, xid, &mut self.outgoing)
            .map_err(|source| SessionError::Encode {
                socket: self.socket.clone(),
                source,
            })
    }

    /// The next message with its xid, sooner or later. What is queued is written meanwhile; echo
    /// requests are answered and not returned.
    ///
    /// # Errors
    /// Where the connection ends or breaks, or a message cannot be read.
    pub async fn next(
        &mut self,
        waiting_for: &'static str,
    ) -> Result<(u32, Message), SessionError> {
        loop {
            if let Some((xid, message)) = self.take_message()? {
                match message {
                    Message::EchoRequest(body) => self.queue(&Message::EchoReply(body), xid)?,
                    Message::EchoReply(_) => {}
                    message => return Ok((xid, message)),
                }
                continue;
            }
            self.progress(waiting_for).await?;
        }
    }

    /// As [`Session::next`], within time.
    pub(super) async fn next_before(
        &mut self,
        deadline: Deadline,
        waiting_for: &'static str,
    ) -> Result<(u32, Message), SessionError> {
        // Whoever sends without a pause is never waited for.
        let in_time = Instant::now() < deadline.at;
        match timeout_at(deadline.at, self.next(waiting_for)).await {
            Ok(next) if in_time => next,
            _ => Err(self.timed_out(waiting_for, deadline.after)),
        }
    }

    /// As [`Session::next`] for as long as it takes, but never on a connection whose other side
    /// does not answer an echo request.
    pub(super) async fn next_event(
        &mut self,
        waiting_for: &'static str,
    ) -> Result<(u32, Message), SessionError> {
        let mut looked_again = false;
        loop {
            let until = match self.probe_sent {
                Some(sent) => sent + self.probe_timeout,
                None => self.last_heard + PROBE_AFTER,
            };
            if let Ok(next) = timeout_at(until, self.next(waiting_for)).await {
                return next;
            }
            if self.probe_sent.is_some_and(|sent| sent >= self.last_heard) {
                if looked_again {
                    return Err(self.timed_out("an echo reply", self.probe_timeout));
                }
                // The owner may not have asked for a long time, and the answer be there already.
                looked_again = true;
                tokio::task::yield_now().await;
            } else if self.last_heard.elapsed() < PROBE_AFTER {
                // Something was heard meanwhile that is no event.
                self.probe_sent = None;
            } else {
                self.send(&Message::EchoRequest(Vec::new()))?;
                self.probe_sent = Some(Instant::now());
            }
        }
    }

    /// Waits for the answer to a request; answers to earlier ones are dropped, an error is one.
    pub(super) async fn answer(
        &mut self,
        xid: u32,
        request: &'static str,
        deadline: Deadline,
    ) -> Result<Message, SessionError> {
        loop {
            match self.next_before(deadline, request).await? {
                (got, Message::Error(error)) if got == xid => {
                    return Err(self.rejected(request, &error));
                }
                (got, message) if got == xid => return Ok(message),
                _ => {}
            }
        }
    }

    pub(super) fn rejected(&self, request: &'static str, error: &ErrorMessage) -> SessionError {
        SessionError::Rejected {
            socket: self.socket.clone(),
            request,
            code: error.code,
        }
    }

    /// Whether a list in parts is still no longer than any can be.
    pub(super) fn check_length(
        &self,
        what: &'static str,
        length: usize,
    ) -> Result<(), SessionError> {
        if length <= MOST_ENTRIES {
            return Ok(());
        }
        Err(SessionError::Endless {
            socket: self.socket.clone(),
            what,
            limit: MOST_ENTRIES,
        })
    }

    fn timed_out(&self, waiting_for: &'static str, after: Duration) -> SessionError {
        SessionError::Timeout {
            socket: self.socket.clone(),
            waiting_for,
            after,
        }
    }

    /// The message at the front of what was received, once it is whole.
    fn take_message(&mut self) -> Result<Option<(u32, Message)>, SessionError> {
        let malformed = |socket: &Path, source| SessionError::Malformed {
            socket: socket.to_owned(),
            source,
        };
        let length = Header::frame_length(&self.received)
            .map_err(|source| malformed(&self.socket, source))?;
        let Some(length) = length.filter(|&length| length <= self.received.len()) else {
            return Ok(None);
        };
        let bytes = self.received.split_to(length);
        let (header, message) =
            Message::decode(&bytes).map_err(|source| malformed(&self.socket, source))?;
        Ok(Some((header.xid, message)))
    }

    /// Reads or writes some bytes. Both at once, since a switch that has too many errors to send
    /// stops reading until they are read.
    async fn progress(&mut self, waiting_for: &'static str) -> Result<(), SessionError> {
        self.received.reserve(READ_SIZE);
        let (mut reader, mut writer) = self.stream.split();
        let read = tokio::select! {
            read = reader.read_buf(&mut self.received) => read,
            written = writer.write_buf(&mut self.outgoing), if !self.outgoing.is_empty() => {
                match written {
                    Ok(_) => return Ok(()),
                    // It may have said why before it hung up: read on to the end.
                    Err(error) if is_hang_up(&error) => {
                        self.outgoing.clear();
                        return Ok(());
                    }
                    Err(error) => Err(error),
                }
            }
        };
        match read {
            Ok(0) => Err(self.closed(waiting_for)),
            Ok(_) => {
                self.last_heard = Instant::now();
                Ok(())
            }
            Err(error) if is_hang_up(&error) => Err(self.closed(waiting_for)),
            Err(source) => Err(SessionError::Connection {
                socket: self.socket.clone(),
                source,
            }),
        }
    }

    fn closed(&self, waiting_for: &'static str) -> SessionError {
        SessionError::Closed {
            socket: self.socket.clone(),
            waiting_for,
        }
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}
