//! How long the followers wait for what the source has learnt.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{clock::Millis, group::Slot, queue::Key};

#[derive(Clone, Debug)]
struct Unserved {
    seen: Millis,
    slots: BTreeSet<Slot>,
    committed: bool,
}

/// The new and changed source rows that some follower does not have yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    unserved: BTreeMap<IpAddr, Unserved>,
}

impl Progress {
    /// A follower's row is due, for a source row seen at `now` or before.
    pub(super) fn begin(&mut self, key: Key, now: Millis) {
        self.unserved
            .entry(key.ip)
            .or_insert_with(|| Unserved {
                seen: now,
                slots: BTreeSet::new(),
                committed: false,
            })
            .slots
            .insert(key.slot);
    }

    /// Nothing is due for this row any more. Once the last one is done, the time since the source's
    /// row was seen, unless nothing was written at all.
    pub(super) fn done(&mut self, key: Key, committed: bool, now: Millis) -> Option<u64> {
        let unserved = self.unserved.get_mut(&key.ip)?;
        if !unserved.slots.remove(&key.slot) {
            return None;
        }
        unserved.committed |= committed;
        if !unserved.slots.is_empty() {
            return None;
        }
        let unserved = self.unserved.remove(&key.ip)?;
        unserved.committed.then(|| now.since(unserved.seen))
    }

    /// Forgets a follower.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.unserved.retain(|_, unserved| {
            unserved.slots.remove(&slot);
            !unserved.slots.is_empty()
        });
    }

    /// How long the oldest of them waits, ms.
    pub(super) fn lag(&self, now: Millis) -> Option<u64> {
        let oldest = self.unserved.values().map(|unserved| unserved.seen).min();
        oldest.map(|seen| now.since(seen))
    }
}
