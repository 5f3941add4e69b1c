//! What the mirror writes, and what becomes of it.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    InFlight, InFlightRow, Mirror,
    evaluate::{Cause, Judgement, View},
};
use crate::mirror::{
    batch::{Batch, BatchId, Failure, FailureKind, Reason, RowOperation, RowWrite, Skip},
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
    /// `ip`, spelt as it was to be written; `None` where the source's row is gone meanwhile.
    pub ip: Option<Arc<str>>,
}

/// Where the rows of the next transaction come from.
enum Supply {
    Half(Vec<(Key, Reason)>),
    Lane(Lane, usize),
}

impl Mirror {
    /// The next transaction, if there is anything to write and the server has room for it.
    pub fn take_batch(&mut self, now: Now) -> Option<Batch> {
        if !self.synced {
            return None;
        }
        self.advance(now);
        if self.in_flight.len() >= self.settings.limits.in_flight || now.at < self.pause_until {
            return None;
        }
        loop {
            let supply = self.supply()?;
            let mut rows = Vec::new();
            let mut operations = Vec::new();
            match supply {
                Supply::Half(half) => {
                    for (key, reason) in half {
                        self.take_row(key, reason, now, &mut rows, &mut operations);
                    }
                }
                Supply::Lane(lane, most) => {
                    while operations.len() < most
                        && let Some((key, reason)) = self.queue.pop(lane)
                    {
                        self.take_row(key, reason, now, &mut rows, &mut operations);
                    }
                }
            }
            if !operations.is_empty() {
                return Some(self.send(rows, operations, now));
            }
        }
    }

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
        let mut view: Option<(std::net::IpAddr, Option<View>)> = None;
        for (position, row) in batch.rows.into_iter().enumerate() {
            let key = row.key;
            self.writing.remove(&key);
            let written = !missed.contains(&position);
            if written {
                self.counters.writes.count(row.reason);
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

    /// Does what time has brought.
    fn advance(&mut self, now: Now) {
        while let Some(ip) = self.wakes.pop(now.at) {
            self.evaluate(ip, Cause::Settle, now);
        }
        if now.at >= self.compare_at {
            self.compare_at = now.at.after(self.settings.compare_ms);
            self.holds.purge(
                self.settings.pauses.longest_retry_ms.saturating_mul(2),
                now.at,
            );
            let ips: Vec<_> = self.table.ips().collect();
            for ip in ips {
                self.evaluate(ip, Cause::Compare, now);
            }
        }
    }

    fn supply(&mut self) -> Option<Supply> {
        if let Some(half) = self.halves.pop_front() {
            return Some(Supply::Half(half));
        }
        let limits = self.settings.limits;
        let suspects = self.queue.len(Lane::Suspect) > 0;
        if self.queue.len(Lane::Urgent) > 0 {
            let first = !std::mem::replace(&mut self.burst, true);
            let most = if first {
                limits.first_rows
            } else {
                self.chunk(Lane::Urgent)
            };
            return Some(Supply::Lane(Lane::Urgent, most.max(1)));
        }
        if suspects && !std::mem::replace(&mut self.last_was_suspect, true) {
            return Some(Supply::Lane(Lane::Suspect, limits.first_rows.max(1)));
        }
        self.last_was_suspect = false;
        for lane in [Lane::Backfill, Lane::Repair, Lane::Refresh, Lane::Suspect] {
            if self.queue.len(lane) > 0 {
                return Some(Supply::Lane(lane, self.chunk(lane).max(1)));
            }
        }
        None
    }

    /// Few, large transactions where much waits or the server is slow.
    fn chunk(&self, lane: Lane) -> usize {
        let limits = self.settings.limits;
        if self.slow || self.queue.len(lane) >= limits.rows.saturating_mul(4) {
            limits.most_rows
        } else {
            limits.rows
        }
    }

    /// Decides once more about a row that was queued, and adds what it needs.
    fn take_row(
        &mut self,
        key: Key,
        reason: Reason,
        now: Now,
        rows: &mut Vec<InFlightRow>,
        operations: &mut Vec<RowOperation>,
    ) {
        let judged = match self.view(key.ip, now) {
            Ok(view) => match self.judge(key, &view) {
                Judgement::Write(need) => Ok((view, need)),
                Judgement::Rest(skip, wake) => Err((skip, wake)),
            },
            Err(skip) => Err((skip, None)),
        };
        match judged {
            Ok((view, need)) => {
                let reason = fitting(reason, need);
                let Some(operation) = self.operation(key, reason, need, &view) else {
                    return;
                };
                self.holds.taken(key, reason, now.at);
                self.writing.insert(key);
                rows.push(InFlightRow { key, reason, need });
                operations.push(operation);
            }
            Err((skip, wake)) => {
                self.counters.skips.count(skip, 1);
                if let Some(at) = wake {
                    self.wakes.no_later(key.ip, at);
                }
                if skip == Skip::InFlight {
                    let cause = if reason.is_urgent() {
                        Cause::MacChange
                    } else {
                        Cause::Settle
                    };
                    self.parked.insert(key, cause);
                }
                self.finish(key, false, now);
            }
        }
    }

    fn operation(&self, key: Key, reason: Reason, need: Need, view: &View) -> Option<RowOperation> {
        let member = &self.group.followers.get(&key.slot)?.member;
        let truth = &view.truth;
        let timestamp = self.clock.stamp(truth.timestamp, view.times.now);
        let write = match need {
            Need::Insert => RowWrite::Insert {
                port: Arc::clone(&member.port),
                datapath: member.datapath,
                ip: Arc::clone(&truth.text),
                mac: truth.mac,
                timestamp,
            },
            Need::Correct(uuid) => RowWrite::Update {
                uuid,
                mac: Some(truth.mac),
                timestamp,
            },
            Need::Refresh(uuid) => RowWrite::Update {
                uuid,
                mac: None,
                timestamp,
            },
            Need::Nothing(..) => return None,
        };
        Some(RowOperation {
            reason,
            port: Arc::clone(&member.port),
            ip: key.ip,
            write,
        })
    }

    fn send(&mut self, rows: Vec<InFlightRow>, operations: Vec<RowOperation>, now: Now) -> Batch {
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        self.in_flight.insert(
            id,
            InFlight {
                taken: now.at,
                urgent: rows.iter().any(|row| row.reason.is_urgent()),
                rows,
            },
        );
        Batch { id, operations }
    }

    /// After a commit, the table should hold the row: the server tells of changes first. If it does
    /// not, somebody has deleted the row since, or the update met none.
    fn check_written(&mut self, row: InFlightRow, written: bool, now: Now) {
        let key = row.key;
        match row.need {
            Need::Correct(uuid) | Need::Refresh(uuid) if !written => {
                self.counters.errors.rows_missed += 1;
                if self.table.find(uuid).is_some() {
                    self.table.remove(uuid);
                    self.follower_row_gone(key, now);
                }
            }
            Need::Insert if !self.table.has_row(key.ip, key.slot) => {
                self.follower_row_gone(key, now);
            }
            _ => {}
        }
    }

    /// Notes that nothing is due for a row any more, if that is so.
    fn finish(&mut self, key: Key, committed: bool, now: Now) {
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
                    ip: self.table.truth(key.ip).map(|truth| truth.text),
                });
            }
            self.finish(key, false, now);
        }
        self.requeue(good);
        unknown
    }
}

/// The reason for which a row is really written: it may have changed since it was queued.
const fn fitting(reason: Reason, need: Need) -> Reason {
    match (need, reason) {
        (Need::Refresh(_), _) => Reason::Refresh,
        (Need::Insert, Reason::Refresh | Reason::Correction) => Reason::Fill,
        (Need::Correct(_), Reason::NewBinding) => Reason::MacChange,
        (Need::Correct(_), Reason::MacChange | Reason::Drift) => reason,
        (Need::Correct(_), _) => Reason::Correction,
        _ => reason,
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
