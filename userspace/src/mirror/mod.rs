//! Mirrors what a group's source learns of its neighbours to the followers: rows of the southbound
//! `MAC_Binding` table (OKEP-6691, "MAC_Binding Propagation"). Nodes' bindings that are pinned
//! ([`GroupMembers::pinned`]) are kept on every follower beside them, without a row of the source's.
//!
//! Pure: rows and instants go in, transactions come out. The driver holds the connection:
//!
//! 1. [`Mirror::set_group`] with the routers of a bridge, then [`Mirror::upsert_row`] for the monitored
//!    rows of their ports ([`COLUMNS`]), then [`Mirror::synced`].
//! 2. After that and after each event, [`Mirror::take_batch`] until there is none; once more at
//!    [`Mirror::next_deadline`].
//! 3. Each batch is one transaction. Its outcome goes to [`Mirror::committed`] or [`Mirror::failed`],
//!    after the row changes that came before it; [`Batch::blame`] reads the error's details.
//! 4. A lost connection is [`Mirror::disconnected`]; then again rows (what differs from before is
//!    enough, with [`Mirror::remove`]) and [`Mirror::synced`].

mod batch;
mod blame;
mod clock;
mod compare;
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
pub use compare::{Compared, Origin, RowState, compare, compare_one};
pub use counters::{BUCKETS, BadRows, Counters, Errors, Histogram, Skips, Writes};
pub use group::{GroupMembers, Member};
pub use holds::Pauses;
pub use machine::{Mirror, RowAtFault, Settings, Status};
pub use queue::QueueDepth;
pub use recompute::recompute;
pub use rows::{BindingRow, COLUMNS, RowSkip};
