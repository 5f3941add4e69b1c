//! Transactions under way, and those whose changes are not seen yet.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use super::{
    batch::{BatchId, RowOperation, RowWrite},
    ports::PortId,
    table::Table,
    work::Key,
};
use crate::{ids::Mac, mirror::Millis, ovsdb::Uuid};

/// What a row shows once its write is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// A row with this MAC that goes before what is learnt.
    Row(Mac),
    /// The row is gone.
    Gone(Uuid),
}

impl Expected {
    pub(super) const fn of(write: RowWrite) -> Self {
        match write {
            RowWrite::Insert { mac } | RowWrite::Update { mac, .. } => Self::Row(mac),
            RowWrite::Delete { uuid } => Self::Gone(uuid),
        }
    }

    fn is_seen(self, key: Key, table: &Table) -> bool {
        match self {
            Self::Row(mac) => {
                let mut rows = table.rows_at(key.port, key.ip);
                rows.any(|row| row.mac == Some(mac) && row.overrides)
            }
            Self::Gone(uuid) => table.find(uuid) != Some((key.port, key.ip)),
        }
    }
}

/// What news of a row are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing of ours was under way: somebody else's doing.
    Others,
    /// Something of ours is under way and not done with.
    Early,
    /// What we wrote, committed before and seen now.
    Ours,
}

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// Whether it did not wait for the gathering window.
    pub(super) urgent: bool,
    /// The ports of its guards.
    pub(super) guards: Vec<PortId>,
    /// The operations, with the port and address of each.
    pub(super) operations: Vec<(Key, RowOperation)>,
    /// Once it is committed: until when to wait for its changes to be seen.
    unseen_until: Option<Millis>,
    /// What is not seen yet.
    expected: BTreeMap<Key, Vec<Expected>>,
}

/// All of them: one that waited and an urgent one at most.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    batches: BTreeMap<BatchId, Sent>,
    busy: BTreeMap<Key, BatchId>,
}

impl InFlight {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Those that are not committed yet.
    pub(super) fn uncommitted(&self) -> usize {
        let batches = self.batches.values();
        batches.filter(|batch| batch.unseen_until.is_none()).count()
    }

    /// Whether there is an urgent one, or one that is not.
    pub(super) fn has(&self, urgent: bool) -> bool {
        self.batches.values().any(|batch| batch.urgent == urgent)
    }

    /// Whether a row is being written, or its change is not seen yet.
    pub(super) fn is_busy(&self, key: Key) -> bool {
        self.busy.contains_key(&key)
    }

    /// Whether any of a port's rows is.
    pub(super) fn is_port_busy(&self, port: PortId) -> bool {
        let first = Key {
            port,
            ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let next = self.busy.range(first..).next();
        next.is_some_and(|(key, _)| key.port == port)
    }

    /// When to cease waiting.
    pub(super) fn next(&self) -> Option<Millis> {
        let batches = self.batches.values();
        batches.filter_map(|batch| batch.unseen_until).min()
    }

    pub(super) fn get(&self, id: BatchId) -> Option<&Sent> {
        let batch = self.batches.get(&id)?;
        batch.unseen_until.is_none().then_some(batch)
    }

    pub(super) fn send(
        &mut self,
        id: BatchId,
        urgent: bool,
        guards: Vec<PortId>,
        operations: Vec<(Key, RowOperation)>,
    ) {
        let mut expected: BTreeMap<Key, Vec<Expected>> = BTreeMap::new();
        for (key, operation) in &operations {
            self.busy.insert(*key, id);
            let expected = expected.entry(*key).or_default();
            expected.push(Expected::of(operation.write));
        }
        let sent = Sent {
            urgent,
            guards,
            operations,
            unseen_until: None,
            expected,
        };
        self.batches.insert(id, sent);
    }

    /// Nothing of a transaction was written.
    pub(super) fn take_back(&mut self, id: BatchId) -> Option<Sent> {
        let sent = self.batches.remove(&id)?;
        for key in sent.expected.keys() {
            self.busy.remove(key);
        }
        Some(sent)
    }

    /// A transaction is committed: its rows that show it already. `until` says for how long to wait for
    /// so many others.
    pub(super) fn commit(
        &mut self,
        id: BatchId,
        table: &Table,
        until: impl FnOnce(usize) -> Millis,
    ) -> Vec<Key> {
        let Some(batch) = self.batches.get_mut(&id) else {
            return Vec::new();
        };
        batch.operations = Vec::new();
        batch.guards = Vec::new();
        let is_seen = |key: &Key, expected: &mut Vec<Expected>| {
            expected.iter().all(|it| it.is_seen(*key, table))
        };
        let seen = batch.expected.extract_if(.., is_seen);
        let seen: Vec<Key> = seen.map(|(key, _)| key).collect();
        for key in &seen {
            self.busy.remove(key);
        }
        batch.unseen_until = Some(until(batch.expected.len()));
        if batch.expected.is_empty() {
            self.batches.remove(&id);
        }
        seen
    }

    /// Something about a row is told: what it has to do with what is under way.
    pub(super) fn told(&mut self, key: Key, table: &Table) -> News {
        let Some(id) = self.busy.get(&key).copied() else {
            return News::Others;
        };
        let Some(batch) = self.batches.get_mut(&id) else {
            return News::Others;
        };
        let expected = batch.expected.get(&key).into_iter().flatten();
        let seen = expected.copied().all(|it| it.is_seen(key, table));
        if batch.unseen_until.is_none() || !seen {
            return News::Early;
        }
        batch.expected.remove(&key);
        self.busy.remove(&key);
        if batch.expected.is_empty() {
            self.batches.remove(&id);
        }
        News::Ours
    }

    /// Ceases to wait for a row whose write met none.
    pub(super) fn give_up(&mut self, key: Key) {
        let Some(id) = self.busy.remove(&key) else {
            return;
        };
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.expected.remove(&key);
            if batch.expected.is_empty() {
                self.batches.remove(&id);
            }
        }
    }

    /// Ceases to wait for changes that should have been seen by now: their rows.
    pub(super) fn expire(&mut self, now: Millis) -> Vec<Key> {
        let is_over =
            |_: &BatchId, batch: &mut Sent| batch.unseen_until.is_some_and(|it| it <= now);
        let over = self.batches.extract_if(.., is_over);
        let keys: Vec<Key> = over
            .flat_map(|(_, batch)| batch.expected.into_keys())
            .collect();
        for key in &keys {
            self.busy.remove(key);
        }
        keys
    }

    /// The connection is lost: how many have an unknown outcome.
    pub(super) fn clear(&mut self) -> usize {
        let unknown = self.uncommitted();
        *self = Self::default();
        unknown
    }
}
