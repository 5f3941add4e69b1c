//! What the mirror asks to be written, and how it hears of the outcome.

use std::{net::IpAddr, sync::Arc};

use serde::Serialize;

use crate::{ids::Mac, ovsdb::Uuid};

/// One transaction's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BatchId(pub u64);

/// Why a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The source has learnt a neighbour.
    NewBinding,
    /// The source has learnt another MAC, or the node has one.
    MacChange,
    /// The source's row was refreshed; or a node's was not for the cooldown.
    Refresh,
    /// The row was missing.
    Fill,
    /// The row went away while the source's stays, or the node does.
    PutBack,
    /// The follower is new, or the node.
    Backfill,
    /// The follower's row had another MAC than the source's or the node's.
    Correction,
    /// The periodic comparison found what no event had told.
    Drift,
}

impl Reason {
    /// Whether a packet may be waiting for the row.
    #[must_use]
    pub const fn is_urgent(self) -> bool {
        matches!(self, Self::NewBinding | Self::MacChange)
    }
}

/// Why a row is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// It is right, and will live as long as the source's.
    Fresh,
    /// It is right, and was written not long ago.
    Cooldown,
    /// What would be written is older than what is there.
    Newer,
    /// The source's row has reached its age: it is about to be removed or refreshed.
    SourceExpiring,
    /// The source's row is gone.
    SourceGone,
    /// The follower is gone.
    FollowerGone,
    /// The neighbour is a node, and not pinned: it has a static binding.
    NodeIp,
    /// The row belongs to a former router with the same port: it blocks its place until it is removed.
    OtherDatapath,
    /// It is being written.
    InFlight,
    /// It was put back, corrected or failed a moment ago.
    HeldBack,
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowWrite {
    /// A new row of `MAC_Binding`.
    Insert {
        /// `logical_port`.
        port: Arc<str>,
        /// `datapath`.
        datapath: Uuid,
        /// `ip`, spelt as the source's; a node's canonically.
        ip: Arc<str>,
        /// `mac`.
        mac: Mac,
        /// `timestamp`, ms since the epoch.
        timestamp: i64,
    },
    /// A row of `MAC_Binding`, addressed by its `_uuid`.
    Update {
        /// The row.
        uuid: Uuid,
        /// `mac`, where it changes.
        mac: Option<Mac>,
        /// `timestamp`, ms since the epoch.
        timestamp: i64,
    },
}

impl RowWrite {
    /// The `timestamp` to write, ms since the epoch.
    #[must_use]
    pub const fn timestamp(&self) -> i64 {
        match self {
            Self::Insert { timestamp, .. } | Self::Update { timestamp, .. } => *timestamp,
        }
    }
}

/// One row to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOperation {
    /// Why.
    pub reason: Reason,
    /// The follower's port.
    pub port: Arc<str>,
    /// The neighbour.
    pub ip: IpAddr,
    /// What.
    pub write: RowWrite,
}

/// The rows of one transaction. Every one that is taken ends in exactly one of
/// [`committed`](super::Mirror::committed), [`failed`](super::Mirror::failed) and
/// [`disconnected`](super::Mirror::disconnected).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// What to write, in this order.
    pub operations: Vec<RowOperation>,
}

/// Why a transaction was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is another row with this port and address.
    DuplicateIndex,
    /// A datapath is gone.
    MissingReference,
    /// Another constraint or type of the schema.
    Constraint,
    /// The server will not have it from this client (role-based access, wrong lock).
    Refused,
    /// Nothing is wrong with the rows: not the leader any more, disk full, out of time.
    Unavailable,
}

/// A transaction that was refused, as a whole, as OVSDB does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub kind: FailureKind,
    /// The positions of the operations at fault, as far as known (see [`Batch::blame`]). Where none
    /// is, the mirror finds them by halving the batch.
    pub rows: Vec<usize>,
}

/// How much is written at once. The defaults come from measurements with 500 followers: small first
/// chunks let ovn-controller release the waiting packet early, and beyond a thousand rows an
/// ovsdb-server gets slower per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows of the first transaction after a source's row appears or changes, or a node's MAC.
    pub first_rows: usize,
    /// Rows of the others.
    pub rows: usize,
    /// Rows where many wait or the server is slow.
    pub most_rows: usize,
    /// Transactions under way at the same time.
    pub in_flight: usize,
    /// A transaction that takes longer, in ms, makes the next ones larger.
    pub slow_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_rows: 50,
            rows: 500,
            most_rows: 1_000,
            in_flight: 2,
            slow_ms: 250,
        }
    }
}
