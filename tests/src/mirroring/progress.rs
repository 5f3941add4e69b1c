//! What a mirror has seen and done since some moment.

use std::time::Instant;

use anyhow::ensure;

use super::{Mirroring, SOURCE, Turn};

/// Counts turns.
#[derive(Debug, Default)]
pub struct Progress {
    /// When a row of the source was first seen to be new or changed.
    pub seen: Option<Instant>,
    /// When the first transaction was answered.
    pub first: Option<Instant>,
    /// Rows of answered transactions.
    pub committed: usize,
    /// Answered transactions.
    pub transactions: usize,
    /// Monitored rows that came.
    pub added: usize,
    /// Monitored rows that changed.
    pub modified: usize,
    /// Monitored rows that went.
    pub deleted: usize,
    /// What must not happen to a bench: a lost connection, a transaction that failed.
    pub failed: Option<String>,
}

impl Progress {
    /// Takes a turn into account.
    pub fn note(&mut self, turn: &Turn) {
        match turn {
            Turn::Changes(batch) => {
                for change in &batch.changes {
                    let port = change
                        .new
                        .as_ref()
                        .and_then(|row| row.string("logical_port").ok());
                    if port.as_deref() == Some(SOURCE) {
                        self.seen.get_or_insert_with(Instant::now);
                    }
                    match (&change.old, &change.new) {
                        (None, _) => self.added += 1,
                        (_, None) => self.deleted += 1,
                        _ => self.modified += 1,
                    }
                }
            }
            Turn::Written(operations, Ok(_)) => {
                self.first.get_or_insert_with(Instant::now);
                self.committed += operations.len();
                self.transactions += 1;
            }
            Turn::Other => {}
            other => self.failed = Some(format!("{other:?}")),
        }
    }

    /// Turns until something holds.
    ///
    /// # Errors
    /// Where something failed, or nothing happens any more.
    pub async fn until(
        &mut self,
        mirroring: &mut Mirroring,
        what: &str,
        holds: impl Fn(&Self) -> bool,
    ) -> anyhow::Result<()> {
        if holds(self) {
            return Ok(());
        }
        mirroring
            .until(what, |turn, _| {
                self.note(turn);
                self.failed.is_some() || holds(self)
            })
            .await?;
        ensure!(self.failed.is_none(), "{:?}", self.failed);
        Ok(())
    }
}
