//! What is asked to be written, and how the outcome is told.

use std::{net::IpAddr, sync::Arc};

use serde::Serialize;

use crate::{ids::Mac, ovsdb::Uuid};

/// One transaction's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BatchId(pub u64);

/// Why a row is written or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The follower has no row for a node IP.
    Missing,
    /// The row has another MAC than the node.
    WrongMac,
    /// The row would not go before what the router has learnt.
    NoOverride,
    /// Another row is for the same address, spelt differently.
    Double,
    /// No node has the address.
    NoNode,
    /// The port is the default network's router's.
    DefaultSource,
    /// The router is no follower any more.
    Leaving,
    /// The port is gone, or the one that had its name before.
    Gone,
    /// Static bindings are no longer used.
    Withdrawn,
}

/// A change of one row of `Static_MAC_Binding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowWrite {
    /// A new row, with `override_dynamic_mac` true.
    Insert {
        /// `mac`.
        mac: Mac,
    },
    /// A row's `mac`, and `override_dynamic_mac` true.
    Update {
        /// The row.
        uuid: Uuid,
        /// `mac`.
        mac: Mac,
    },
    /// A row goes.
    Delete {
        /// The row.
        uuid: Uuid,
    },
}

/// One row to write or to delete.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RowOperation {
    /// The router port, `logical_port`.
    pub port: Arc<str>,
    /// The address; `ip` of an inserted row.
    pub ip: IpAddr,
    /// What.
    pub write: RowWrite,
    /// Why.
    pub reason: Reason,
}

/// What has to hold for a transaction to be committed: the router port is still there, as this row and
/// under this name. On OVN 23.03 a row for a port that has gone would stop northd. It becomes an OVSDB
/// `wait` with a timeout of 0 (RFC 7047, 5.2.6), before the operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The row of `Logical_Router_Port`.
    pub port_row: Uuid,
    /// Its `name`.
    pub port: Arc<str>,
}

/// The rows of one transaction. Every one that is taken ends in exactly one of
/// [`committed`](super::StaticBindings::committed), [`failed`](super::StaticBindings::failed) and
/// [`disconnected`](super::StaticBindings::disconnected).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its number.
    pub id: BatchId,
    /// What has to hold: one guard for each port that gets new rows.
    pub guards: Vec<Guard>,
    /// What to write, in this order.
    pub operations: Vec<RowOperation>,
}

/// Why a transaction was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is another row with this port and address.
    DuplicateIndex,
    /// A guard does not hold.
    GuardFailed,
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
    /// The positions in [`Batch::operations`] of those at fault, as far as known (see
    /// [`Batch::blame`]). Where nothing at fault is known, the rows are found by halving the batch.
    pub operations: Vec<usize>,
    /// The positions in [`Batch::guards`] of those that do not hold.
    pub guards: Vec<usize>,
}

/// A row that the server has and that was not known, to be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAtFault {
    /// `logical_port`.
    pub port: Arc<str>,
    /// `ip`, spelt as it was to be written.
    pub ip: IpAddr,
}
