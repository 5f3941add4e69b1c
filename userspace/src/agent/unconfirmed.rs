//! Rows that a transaction has read and of which the monitor has not told yet.

use std::collections::HashMap;

use crate::{mirror::Millis, ovsdb::Uuid};

/// For how long such a row is believed, ms. The monitor is seldom more than a moment behind; but of a
/// row that was gone again before it could tell, it never tells at all.
const BELIEVED_MS: u64 = 10_000;

/// The rows, with until when each is believed; mostly none.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed(HashMap<Uuid, Millis>);

impl Unconfirmed {
    /// A row was read.
    pub(super) fn add(&mut self, row: Uuid, now: Millis) {
        self.0.insert(row, now.after(BELIEVED_MS));
    }

    /// The monitor has told of a row.
    pub(super) fn told(&mut self, row: Uuid) {
        self.0.remove(&row);
    }

    /// When the next one ceases to be believed.
    pub(super) fn next(&self) -> Option<Millis> {
        self.0.values().min().copied()
    }

    /// Takes out those that are believed no longer.
    pub(super) fn expire(&mut self, now: Millis) -> Vec<Uuid> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let expired = self.0.extract_if(|_, until| *until <= now);
        expired.map(|(row, _)| row).collect()
    }
}
