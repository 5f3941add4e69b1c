//! What becomes of what the mirror writes.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use super::{
    InFlightRow, Mirror,
    evaluate::{Cause, View},
};
use crate::mirror::{
    batch::{BatchId, Failure, FailureKind, Reason},
    clock::Now,
    decide::Need,
    holds::Pauses,
    queue::{Key, Lane},
};

/// A row that the server refused, to be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAtFault {
    /// `logical_port`.
    pub port: Arc<str>,
    /// `ip`, spelt as it was to be written; `None` where it is not to be written any more.
    pub ip: Option<Arc<str>>,
}

impl Mirror {
    /// The transaction was committed. `missed` are the positions of the updates that met no row.
    pub fn committed(&mut self, id: BatchId, missed: &[usize], now: Now) {
        let Some(batch) = self.in_flight.remove(&id) else {
            return;
        };
        let took = now.at.since(batch.taken);
        self.slow = took > self.settings.limits.slow_ms;
        self.refusals = 0;
        self.counters.transaction.record(took);
        self.counters
            .transaction_rows
            .record(count(batch.rows.len()));
        let missed: BTreeSet<usize> = missed.iter().copied().collect();
        let mut view: Option<(IpAddr, Option<View>)> = None;
        for (position, row) in batch.rows.into_iter().enumerate() {
            let key = row.key;
            self.writing.remove(&key);
            let written = !missed.contains(&position);
            if written {
                let writes = if row.pinned {
                    &mut self.counters.node_writes
                } else {
                    &mut self.counters.writes
                };
                writes.count(row.reason);
                self.holds.there(key);
            }
            self.check_written(row, written, now);
            if view.as_ref().is_none_or(|(ip, _)| *ip != key.ip) {
                view = Some((key.ip, self.view(key.ip, now).ok()));
            }
            let cause = self.parked.remove(&key).unwrap_or(Cause::Settle);
            if let Some((_, Some(view))) = &view {
                self.evaluate_row(key, cause, view);
            }
            self.finish(key, written, now);
        }
    }

    /// The transaction was refused, and nothing of it was written. Returns the rows that the mirror
    /// should have known: read them and tell of them by [`upsert`](Mirror::upsert).
    pub fn failed(&mut self, id: BatchId, failure: &Failure, now: Now) -> Vec<RowAtFault> {
        let Some(batch) = self.in_flight.get(&id) else {
            return Vec::new();
        };
        self.counters.errors.count(failure.kind);
        if matches!(
            failure.kind,
            FailureKind::Unavailable | FailureKind::Refused
        ) {
            self.refusals = self.refusals.saturating_add(1);
            let pauses = Pauses {
                longest_retry_ms: 30_000,
                ..self.settings.pauses
            };
            self.pause_until = now.at.after(pauses.retry(self.refusals, id.0));
            self.give_back(id);
            return Vec::new();
        }
        let rows = batch.rows.len();
        let mut at_fault: BTreeSet<usize> = failure.rows.iter().copied().collect();
        at_fault.retain(|position| *position < rows);
        if rows == 1 {
            at_fault.insert(0);
        }
        if at_fault.is_empty() {
            self.halve(id);
            return Vec::new();
        }
        self.give_back_but(id, &at_fault, failure.kind, now)
    }

    /// After a commit, the table should hold what was written: the server tells of changes first. If
    /// it does not, the outcome has overtaken the change, or somebody has changed or deleted the row
    /// since, or the update met none.
    fn check_written(&mut self, row: InFlightRow, written: bool, now: Now) {
        let key = row.key;
        match row.need {
            Need::Correct(uuid) | Need::Refresh(uuid) if !written => {
                self.counters.errors.rows_missed += 1;
                if self.table.find(uuid).is_some() {
                    self.take_out(uuid);
                    self.follower_row_gone(key, now);
                }
            }
            Need::Correct(_) | Need::Refresh(_) => {
                let known = self.table.follower_row(key.ip, key.slot, row.mac);
                let seen = known.is_none_or(|known| {
                    known.mac == Some(row.mac) && known.timestamp >= row.timestamp
                });
                if !seen {
                    self.wait_to_see(key, now);
                }
            }
            Need::Insert if !self.table.has_row(key.ip, key.slot) => self.wait_to_see(key, now),
            _ => {}
        }
    }

    fn wait_to_see(&mut self, key: Key, now: Now) {
        let until = self.holds.unseen(key, &self.settings.pauses, now.at);
        self.wakes.no_later(key.ip, until);
    }

    /// Notes that nothing is due for a row any more, if that is so.
    pub(super) fn finish(&mut self, key: Key, committed: bool, now: Now) {
        if self.is_due(key) {
            return;
        }
        if let Some(latency) = self.progress.done(key, committed, now.at) {
            self.counters.latency.record(latency);
        }
        if self.burst && self.queue.len(Lane::Urgent) == 0 {
            self.burst = self.in_flight.values().any(|batch| batch.urgent);
        }
    }

    /// Lets all rows of a transaction wait again.
    pub(super) fn give_back(&mut self, id: BatchId) {
        let rows = self.take_back(id);
        self.requeue(rows);
    }

    pub(super) fn requeue(&mut self, rows: Vec<(Key, Reason)>) {
        for (key, reason) in rows.into_iter().rev() {
            let lane = self.lane(key, reason);
            self.queue.push(key, reason, lane, true);
        }
    }

    /// Ends a transaction of which nothing was written; its rows, with what has happened since.
    fn take_back(&mut self, id: BatchId) -> Vec<(Key, Reason)> {
        let batch = self.in_flight.remove(&id);
        let rows = batch.into_iter().flat_map(|batch| batch.rows);
        rows.map(|row| {
            self.writing.remove(&row.key);
            let reason = match self.parked.remove(&row.key) {
                Some(Cause::NewBinding) => Reason::NewBinding,
                Some(Cause::MacChange) => Reason::MacChange,
                _ => row.reason,
            };
            (row.key, reason)
        })
        .collect()
    }

    /// Splits a refused transaction, to find the row at fault.
    fn halve(&mut self, id: BatchId) {
        let mut first = self.take_back(id);
        let second = first.split_off(first.len() / 2);
        self.halves.push_front(second);
        self.halves.push_front(first);
    }

    /// Lets all rows of a transaction wait again, those at fault for longer.
    fn give_back_but(
        &mut self,
        id: BatchId,
        at_fault: &BTreeSet<usize>,
        kind: FailureKind,
        now: Now,
    ) -> Vec<RowAtFault> {
        let mut good = Vec::new();
        let mut unknown = Vec::new();
        for (position, (key, reason)) in self.take_back(id).into_iter().enumerate() {
            if !at_fault.contains(&position) {
                good.push((key, reason));
                continue;
            }
            self.counters.errors.rows_at_fault += 1;
            let salt = u64::from(key.slot.number());
            let until = self.holds.failed(key, salt, &self.settings.pauses, now.at);
            self.wakes.no_later(key.ip, until);
            if kind == FailureKind::DuplicateIndex
                && let Some(follower) = self.group.followers.get(&key.slot)
            {
                unknown.push(RowAtFault {
                    port: Arc::clone(&follower.member.port),
                    ip: self.spelling(key.ip),
                });
            }
            self.finish(key, false, now);
        }
        self.requeue(good);
        unknown
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
