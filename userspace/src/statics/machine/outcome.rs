//! What becomes of what is written.

use std::collections::BTreeSet;

use super::StaticBindings;
use crate::{
    mirror::Millis,
    statics::{
        BatchId, Failure, FailureKind, RowAtFault, RowWrite, holds::Pauses, in_flight::Sent,
        work::Key,
    },
};

/// How much longer to wait for each further row: inserted again while the monitor is only late, they
/// would be found to be there one by one.
const UNSEEN_MS_A_ROW: u64 = 10;

impl StaticBindings {
    /// The transaction was committed. `missed` are the positions in
    /// [`Batch::operations`](super::super::Batch::operations) of updates and deletions that met no row.
    pub fn committed(&mut self, id: BatchId, missed: &[usize], now: Millis) {
        let Some(sent) = self.in_flight.get(id) else {
            return;
        };
        self.counters.transactions += 1;
        self.counters.urgent_transactions += u64::from(sent.urgent);
        self.refusals = 0;
        let missed: BTreeSet<usize> = missed.iter().copied().collect();
        let mut gone = Vec::new();
        for (position, (key, operation)) in sent.operations.iter().enumerate() {
            if missed.contains(&position) {
                self.counters.errors.rows_missed += 1;
                // No row ever gets the identity of another.
                if let RowWrite::Update { uuid, .. } | RowWrite::Delete { uuid } = operation.write {
                    gone.push((*key, uuid));
                }
            } else {
                let counters = &mut self.counters;
                counters.writes.count(operation.write, operation.reason);
            }
        }
        for port in sent.guards.clone() {
            if let Some(port) = self.ports.get_mut(port) {
                port.barred = 0;
            }
        }
        let unseen_ms = self.settings.unseen_ms;
        let until = |rows: usize| {
            let rows = u64::try_from(rows).unwrap_or(u64::MAX);
            now.after(unseen_ms.saturating_add(rows.saturating_mul(UNSEEN_MS_A_ROW)))
        };
        let seen = self.in_flight.commit(id, &self.table, until);
        for key in seen {
            self.after_write(key, now);
        }
        for (key, uuid) in gone {
            self.remove(uuid, now);
            self.in_flight.give_up(key);
            self.after_write(key, now);
        }
    }

    /// The transaction was refused, and nothing of it was written. Returns the rows that should have
    /// been known: read them and tell of them by [`upsert`](Self::upsert).
    pub fn failed(&mut self, id: BatchId, failure: &Failure, now: Millis) -> Vec<RowAtFault> {
        if self.in_flight.get(id).is_none() {
            return Vec::new();
        }
        let Some(sent) = self.in_flight.take_back(id) else {
            return Vec::new();
        };
        self.counters.errors.count(failure.kind);
        match failure.kind {
            FailureKind::Unavailable | FailureKind::Refused => {
                self.refusals = self.refusals.saturating_add(1);
                let pauses = Pauses {
                    longest_ms: self.settings.longest_retry_ms.min(30_000),
                    ..self.settings.pauses()
                };
                self.pause_until = now.after(pauses.after(self.refusals));
                self.give_back(sent, &BTreeSet::new());
                Vec::new()
            }
            FailureKind::GuardFailed => {
                self.bar(sent, &failure.guards, now);
                Vec::new()
            }
            FailureKind::DuplicateIndex | FailureKind::Constraint => {
                self.hold_those_at_fault(sent, failure, now)
            }
        }
    }

    /// The change of a row is seen: it is looked at once more, since something else may have changed
    /// meanwhile.
    pub(super) fn after_write(&mut self, key: Key, now: Millis) {
        if !self.has_need(key) {
            self.settle(key.port);
        } else if self.is_urgent(key.port) {
            self.urgent.insert(key.port);
        } else {
            // What has changed is gathered as any other change is.
            self.changed.keys.insert(key);
            if self.window.is_none() {
                self.touch(now);
            }
        }
    }

    /// Leaves the ports out that had gone.
    fn bar(&mut self, sent: Sent, positions: &[usize], now: Millis) {
        let mut guards: BTreeSet<_> = positions
            .iter()
            .filter_map(|position| sent.guards.get(*position).copied())
            .collect();
        if let ([only], true) = (sent.guards.as_slice(), guards.is_empty()) {
            guards.insert(*only);
        }
        if guards.is_empty() {
            self.halve(sent);
            return;
        }
        let pauses = self.settings.pauses();
        for id in guards {
            if let Some(port) = self.ports.get_mut(id) {
                port.barred = port.barred.saturating_add(1);
                port.barred_until = Some(now.after(pauses.after(port.barred)));
            }
        }
        self.give_back(sent, &BTreeSet::new());
    }

    fn hold_those_at_fault(
        &mut self,
        sent: Sent,
        failure: &Failure,
        now: Millis,
    ) -> Vec<RowAtFault> {
        let operations = failure.operations.iter();
        let found = operations.filter_map(|position| sent.operations.get(*position));
        let mut at_fault: BTreeSet<Key> = found.map(|(key, _)| *key).collect();
        if at_fault.is_empty() {
            let keys: BTreeSet<Key> = sent.operations.iter().map(|(key, _)| *key).collect();
            if keys.len() > 1 {
                self.halve(sent);
                return Vec::new();
            }
            at_fault = keys;
        }
        let pauses = self.settings.pauses();
        let mut unknown = Vec::new();
        for key in &at_fault {
            self.counters.errors.rows_at_fault += 1;
            self.holds.refused(*key, pauses, now);
            if let (FailureKind::DuplicateIndex, Some(port)) =
                (failure.kind, self.ports.get(key.port))
            {
                unknown.push(RowAtFault {
                    port: port.name.clone(),
                    ip: key.ip,
                });
            }
        }
        self.give_back(sent, &at_fault);
        unknown
    }

    /// Lets the rows of a refused transaction wait again, but for those that are held.
    fn give_back(&mut self, sent: Sent, held: &BTreeSet<Key>) {
        let keys: BTreeSet<Key> = sent.operations.into_iter().map(|(key, _)| key).collect();
        for key in keys.difference(held) {
            self.look_again(*key);
        }
    }

    /// Splits a refused transaction, to find the row or port at fault.
    fn halve(&mut self, sent: Sent) {
        let keys: BTreeSet<Key> = sent.operations.into_iter().map(|(key, _)| key).collect();
        let mut first: Vec<Key> = keys.into_iter().collect();
        let second = first.split_off(first.len() / 2);
        self.halves.push_front(second);
        self.halves.push_front(first);
    }
}
