//! Why objects are not known.

use std::time::Duration;

use super::access::AccessError;
use crate::sources::feed::NoNodes;

/// Why a list or a watch has come to nothing, or to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is no client to ask with.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server was not reached, or the connection was lost before the answer began.
    #[error("the API server does not answer")]
    Unanswered(#[source] Box<kube::Error>),
    /// The answer is late.
    #[error("the API server has sent nothing for {} s", after.as_secs_f32())]
    TimedOut {
        /// How long.
        after: Duration,
    },
    /// The answer broke off.
    #[error("the answer of the API server broke off")]
    BrokeOff(#[source] Option<Box<kube::Error>>),
    /// The answer is not what was asked for.
    #[error("the answer of the API server cannot be read: {0}")]
    Malformed(&'static str),
    /// The answer is no JSON of the right form.
    #[error("the answer of the API server cannot be read")]
    NotJson(#[source] serde_json::Error),
    /// More than one answer may have.
    #[error("the answer of the API server is longer than {} MiB", most >> 20)]
    TooLong {
        /// Bytes.
        most: usize,
    },
    /// The server says no.
    #[error("the API server says {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// In the server's words.
        message: String,
        /// Before this the server does not want to be asked again.
        retry_after: Option<Duration>,
    },
    /// A watch that the server ends as soon as it has begun.
    #[error("the API server ends each watch at once")]
    EndedAtOnce,
    /// Not one node.
    #[error(transparent)]
    NoNodes(#[from] NoNodes),
    /// Where there were some, there are none, which may be a mistake.
    #[error("the API server gives no object, where {known} were known; it is asked again")]
    Emptied {
        /// How many.
        known: usize,
    },
}

impl Failure {
    /// Whether the server no longer knows what has changed since then.
    pub(super) const fn is_expired(&self) -> bool {
        matches!(self, Self::Refused { status: 410, .. })
    }

    /// Whether the server does not have the kind, or does not let us see it. It says the latter also of
    /// what it does not have.
    pub(super) const fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: 403 | 404,
                ..
            }
        )
    }

    /// Whether the client is as it should be: with others, its configuration is read anew.
    pub(super) const fn spares_client(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status != 401,
            Self::Access(_) | Self::Unanswered(_) | Self::TimedOut { .. } | Self::BrokeOff(_) => {
                false
            }
            Self::Malformed(_)
            | Self::NotJson(_)
            | Self::TooLong { .. }
            | Self::EndedAtOnce
            | Self::NoNodes(_)
            | Self::Emptied { .. } => true,
        }
    }

    /// How long the server wants not to be asked.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
