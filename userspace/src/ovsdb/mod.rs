//! An OVSDB client (RFC 7047 and ovsdb-server(7)). It knows nothing of OVN.
//!
//! [`Client::connect`] gives three things: a [`Client`] that sends transactions, a [`Monitor`] that
//! yields what changes in the monitored rows, and the [`Driver`] that does the work as one task.
//! [`Snapshot::fetch`] is for a single look.

mod backoff;
pub mod cache;
mod client;
mod connection;
pub mod details;
mod driver;
mod error;
mod link;
mod lock;
mod pending;
mod remote;
mod replica;
mod served;
mod session;
mod snapshot;
mod tls;
pub mod value;
pub mod wire;

pub use backoff::Backoff;
pub use cache::Change;
pub use client::{Client, Monitor, Options};
pub use driver::Driver;
pub use error::{NotMonitored, SessionError, TransactError};
pub use lock::{Lock, LockNameError, LockState};
pub use pending::{Batch, Event};
pub use remote::{ConnectError, Remote, RemoteError};
pub use served::UnfitServer;
pub use snapshot::{Snapshot, SnapshotError};
pub use tls::{TlsError, TlsFiles};
pub use value::{Atom, Datum, Row, RowError, Uuid};
pub use wire::{
    condition::{Clause, Function},
    monitor::{MonitorCondition, MonitorRequest, TableRequest},
    operation::{Mutator, Operation},
    outcome::{Aborted, ErrorKind, OperationError, OperationResult, Outcome},
};
