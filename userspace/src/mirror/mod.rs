//! Mirrors what a group's source learns of its neighbours to the followers: rows of the southbound
//! `MAC_Binding` table (OKEP-6691, "MAC_Binding Propagation").
//!
//! Pure: rows and instants go in, transactions come out. The driver holds the connection.

mod batch;
mod blame;
mod clock;
mod counters;
mod decide;
mod group;
mod holds;
mod machine;
mod progress;
mod queue;
mod recompute;
mod rows;
mod table;
mod wakes;

#[cfg(test)]
mod proptests;

pub use batch::{
    Batch, BatchId, Failure, FailureKind, Limits, Reason, RowOperation, RowWrite, Skip,
};
pub use clock::{ClockState, Millis, Now, ServerClock};
pub use counters::{BUCKETS, BadRows, Counters, Errors, Histogram, Skips, Writes};
pub use group::{GroupMembers, Member};
pub use holds::Pauses;
pub use machine::{Mirror, RowAtFault, Settings, Status};
pub use queue::QueueDepth;
pub use recompute::recompute;
pub use rows::{BindingRow, COLUMNS, RowSkip};
