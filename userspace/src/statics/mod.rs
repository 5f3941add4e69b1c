//! Which `Static_MAC_Binding` rows node IPs need: node IPs, followers and rows in, row operations out
//! (OKEP-6691, "Static MAC Bindings for Node IPs").
//!
//! Pure: rows, objects and instants go in, transactions come out. The driver holds the connection:
//!
//! 1. [`targets()`] says which ports matter; the monitor of `Static_MAC_Binding` ([`COLUMNS`]) has to
//!    cover them before [`StaticBindings::set_targets`] hears of them, or rows that are there would be
//!    inserted again. [`wanted()`] says what they should hold: [`StaticBindings::set_wanted`].
//! 2. Rows by [`StaticBindings::upsert`] and [`StaticBindings::remove`], and
//!    [`StaticBindings::synced`] once all are told.
//! 3. After each event, [`StaticBindings::take_batch`] until there is none; once more at
//!    [`StaticBindings::next_deadline`]. Before a batch is sent, [`StaticBindings::remembered`] has to
//!    be on disk.
//! 4. Each batch is one transaction, its guards first. Its outcome goes to
//!    [`StaticBindings::committed`] or [`StaticBindings::failed`], after the row changes that came
//!    before it; [`Batch::blame`] reads the error's details.
//! 5. A lost connection is [`StaticBindings::disconnected`]; then again rows (what differs from before
//!    is enough) and [`StaticBindings::synced`].

mod batch;
mod blame;
mod claims;
mod counters;
mod decide;
mod holds;
mod in_flight;
mod machine;
mod masquerade;
mod ports;
mod recompute;
mod rows;
mod strategy;
mod table;
mod targets;
mod wanted;
mod work;

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

pub use batch::{
    Batch, BatchId, Failure, FailureKind, Guard, Reason, RowAtFault, RowOperation, RowWrite,
};
pub use counters::{Counters, Errors, Writes};
pub use machine::{Mode, Settings, StaticBindings, Status};
pub use masquerade::Masquerade;
pub use recompute::recompute;
pub use rows::{COLUMNS, RowSkip, StaticRow};
pub use strategy::{BOUND, Strategy, StrategySetting, Why, northd_version, rows_wanted, strategy};
pub use targets::{Target, Treatment, targets, targets_at};
pub use wanted::{
    BridgeBindings, OwnNode, Wanted, WantedBindings, Warning, own_node, wanted, wanted_at,
};
