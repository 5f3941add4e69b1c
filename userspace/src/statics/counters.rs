//! What was done, as plain numbers.

use serde::Serialize;

use super::batch::{FailureKind, Reason, RowWrite};

/// Rows written and committed, by what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Writes {
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows deleted that no node needs any more.
    pub deleted: u64,
    /// Rows deleted of ports that were leaving or gone.
    pub deleted_urgently: u64,
    /// Rows deleted since static bindings are no longer used.
    pub withdrawn: u64,
}

impl Writes {
    pub(super) const fn count(&mut self, write: RowWrite, reason: Reason) {
        *match (write, reason) {
            (RowWrite::Insert { .. }, _) => &mut self.inserted,
            (RowWrite::Update { .. }, _) => &mut self.updated,
            (RowWrite::Delete { .. }, Reason::Leaving | Reason::Gone) => &mut self.deleted_urgently,
            (RowWrite::Delete { .. }, Reason::Withdrawn) => &mut self.withdrawn,
            (RowWrite::Delete { .. }, _) => &mut self.deleted,
        } += 1;
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.inserted + self.updated + self.deleted + self.deleted_urgently + self.withdrawn
    }
}

/// What went wrong, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// Transactions refused for a row that was there already.
    pub duplicate_index: u64,
    /// Transactions refused for a router port that had gone.
    pub guard_failed: u64,
    /// Transactions refused for another constraint.
    pub constraint: u64,
    /// Transactions that the server will not have from this client.
    pub refused: u64,
    /// Transactions that the server could not do at the time.
    pub unavailable: u64,
    /// Transactions under way when the connection was lost.
    pub unknown_outcome: u64,
    /// Rows at fault for a refused transaction.
    pub rows_at_fault: u64,
    /// Updates and deletions of rows that were gone.
    pub rows_missed: u64,
    /// Rows that a commit should have changed and that did not show it in time.
    pub unseen: u64,
}

impl Errors {
    pub(super) const fn count(&mut self, kind: FailureKind) {
        *match kind {
            FailureKind::DuplicateIndex => &mut self.duplicate_index,
            FailureKind::GuardFailed => &mut self.guard_failed,
            FailureKind::Constraint => &mut self.constraint,
            FailureKind::Refused => &mut self.refused,
            FailureKind::Unavailable => &mut self.unavailable,
        } += 1;
    }
}

/// From the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Transactions committed.
    pub transactions: u64,
    /// Those among them that did not wait for the gathering window.
    pub urgent_transactions: u64,
    /// Gathering windows that ended.
    pub windows: u64,
    /// Rows written.
    pub writes: Writes,
    /// What went wrong.
    pub errors: Errors,
    /// Rows that somebody else changed or deleted against what is wanted.
    pub contested: u64,
}
