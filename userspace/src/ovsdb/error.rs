//! What can go wrong.

use std::{io, sync::Arc, time::Duration};

use super::{
    cache::ApplyError,
    remote::ConnectError,
    served::UnfitServer,
    tls::TlsError,
    wire::{
        frame::FrameError,
        message::{MessageError, ServerError},
        outcome::{Aborted, OutcomeError},
        schema::SchemaError,
    },
};

/// Why a connection was not made or ended.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It was not made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server answers, but is of no use now; another may be.
    #[error(transparent)]
    Unfit(#[from] UnfitServer),
    /// The server closed it.
    #[error("the server closed the connection{}", if *.partial == 0 { String::new() } else { format!(" {partial} bytes into a message") })]
    Closed {
        /// Bytes of a message that did not end.
        partial: usize,
    },
    /// It ended over TLS before the server's first word.
    #[error(transparent)]
    Tls(Box<TlsError>),
    /// The system reports that it broke.
    #[error("the connection broke")]
    Io(#[source] io::Error),
    /// Nothing came, not even an answer to an echo.
    #[error("the server was silent for {} s, an echo unanswered", silence.as_secs_f32())]
    Silent {
        /// For how long.
        silence: Duration,
    },
    /// The server lives, but leaves a transaction without an answer.
    #[error("a transaction was not answered within {} s", after.as_secs_f32())]
    Unanswered {
        /// For how long.
        after: Duration,
    },
    /// The server lives, but does not say what it was asked for at the start.
    #[error("the rows did not come within {} s", after.as_secs_f32())]
    NoSnapshot {
        /// How long was waited.
        after: Duration,
    },
    /// What came is no message.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// What came is no JSON-RPC.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The server asks faster than it reads the answers.
    #[error("the server leaves {bytes} bytes of answers unread")]
    Unread {
        /// Bytes.
        bytes: usize,
    },
    /// The server refused a request that starts the session.
    #[error("{method} was refused for database {database}")]
    Refused {
        /// The request.
        method: &'static str,
        /// The database.
        database: String,
        /// Why.
        #[source]
        error: ServerError,
    },
    /// The schema is not the one needed.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Rows that cannot be read.
    #[error("an update of database {database} cannot be read")]
    Update {
        /// The database.
        database: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Rows that do not fit those before.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The server ended the monitor: the schema changes, or the database goes.
    #[error("the server canceled the monitor")]
    MonitorCanceled,
    /// The remotes are others now.
    #[error("the database is looked for elsewhere now")]
    RemotesChanged,
}

impl SessionError {
    /// A short name of what happened, for counters.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Connect(_) => "not_connected",
            Self::Unfit(_) => "unfit_server",
            Self::Closed { .. } => "closed",
            Self::Tls(_) => "tls",
            Self::Io(_) => "broken",
            Self::Silent { .. } => "silent",
            Self::Unanswered { .. } => "unanswered",
            Self::NoSnapshot { .. } => "no_snapshot",
            Self::Frame(_) | Self::Message(_) | Self::Update { .. } | Self::Apply(_) => "malformed",
            Self::Unread { .. } => "unread",
            Self::Refused { .. } => "refused",
            Self::Schema(_) => "schema",
            Self::MonitorCanceled => "monitor_canceled",
            Self::RemotesChanged => "remotes_changed",
        }
    }
}

/// Why a transaction is not known to be committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransactError {
    /// There is no connection; nothing was sent.
    #[error("not connected to the database; nothing was sent")]
    NotConnected {
        /// What ended the last one.
        #[source]
        cause: Option<Arc<SessionError>>,
    },
    /// The connection ended before the answer; the transaction may have been committed.
    #[error("connection lost before the answer; the transaction may have been committed")]
    ConnectionLost {
        /// What ended it.
        #[source]
        cause: Arc<SessionError>,
    },
    /// No answer in time; the transaction may yet be committed.
    #[error("no answer within {} s; the transaction may yet be committed", after.as_secs_f32())]
    TimedOut {
        /// How long.
        after: Duration,
    },
    /// The database refused it; nothing was changed.
    #[error(transparent)]
    Aborted(#[from] Aborted),
    /// The lock that was asserted is not held; nothing was changed.
    #[error("lock {lock} is not held; nothing was changed")]
    NotLocked {
        /// The lock.
        lock: String,
    },
    /// The server refused the request as a whole; nothing was changed.
    #[error("the server refused the transaction")]
    Refused(#[source] ServerError),
    /// The answer cannot be read; the transaction may have been committed.
    #[error(transparent)]
    Unreadable(Arc<OutcomeError>),
    /// The client has been shut down; nothing was sent.
    #[error("the database client has been shut down")]
    ShutDown,
}

impl TransactError {
    /// Whether nothing was changed for certain, so that it may be tried again as it is.
    #[must_use]
    pub const fn changed_nothing(&self) -> bool {
        match self {
            Self::NotConnected { .. }
            | Self::Aborted(_)
            | Self::NotLocked { .. }
            | Self::Refused(_)
            | Self::ShutDown => true,
            Self::ConnectionLost { .. } | Self::TimedOut { .. } | Self::Unreadable(_) => false,
        }
    }
}

/// A condition for a table that the monitor does not cover.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table {table} is not monitored")]
pub struct NotMonitored {
    /// The table.
    pub table: String,
}
