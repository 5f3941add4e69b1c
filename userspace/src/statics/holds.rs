//! Rows that are left alone for a while: refused, or changed by somebody else again and again.

use std::collections::BTreeMap;

use super::work::Key;
use crate::mirror::Millis;

/// How long rows are held, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pauses {
    /// After a first refusal; doubled with each further one.
    pub(super) first_ms: u64,
    /// The longest.
    pub(super) longest_ms: u64,
}

impl Pauses {
    /// The pause after so many in a row.
    pub(super) fn after(self, times: u32) -> u64 {
        let factor = 1_u64
            .checked_shl(times.saturating_sub(1))
            .unwrap_or(u64::MAX);
        self.first_ms
            .saturating_mul(factor)
            .clamp(1, self.longest_ms.max(1))
    }
}

/// A row is taken for contested as long as the last change of somebody else is not longer ago.
const MEMORY_MS: u64 = 600_000;
/// More rows than these are not remembered: whoever changes so many makes no difference between them.
const MOST: usize = 10_000;

#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    until: Millis,
    last: Millis,
    refusals: u32,
    contests: u32,
}

/// The rows that are held, few at any time.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    holds: BTreeMap<Key, Hold>,
    due: BTreeMap<(Millis, Key), ()>,
}

impl Holds {
    /// Whether a row is left alone now.
    pub(super) fn is_held(&self, key: Key, now: Millis) -> bool {
        self.holds.get(&key).is_some_and(|hold| now < hold.until)
    }

    /// How many rows wait.
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// A row was refused.
    pub(super) fn refused(&mut self, key: Key, pauses: Pauses, now: Millis) {
        let hold = self.holds.entry(key).or_default();
        self.due.remove(&(hold.until, key));
        hold.refusals = hold.refusals.saturating_add(1);
        hold.last = now;
        hold.until = now.after(pauses.after(hold.refusals));
        self.due.insert((hold.until, key), ());
    }

    /// Somebody else has changed a row. Whether it is left alone for a while: not the first time.
    pub(super) fn contested(&mut self, key: Key, pauses: Pauses, now: Millis) -> bool {
        if self.holds.len() >= MOST && !self.holds.contains_key(&key) {
            return false;
        }
        let hold = self.holds.entry(key).or_default();
        if now.since(hold.last) > MEMORY_MS {
            hold.contests = 0;
        }
        hold.contests = hold.contests.saturating_add(1);
        hold.last = now;
        if hold.contests == 1 {
            return now < hold.until;
        }
        let until = now.after(pauses.after(hold.contests.saturating_add(1)));
        if until > hold.until {
            self.due.remove(&(hold.until, key));
            hold.until = until;
            self.due.insert((until, key), ());
        }
        true
    }

    /// What made a row fail is over.
    pub(super) fn release(&mut self, key: Key) {
        if let Some(hold) = self.holds.get_mut(&key)
            && hold.refusals > 0
        {
            self.due.remove(&(hold.until, key));
            hold.refusals = 0;
            hold.until = Millis::default();
            if hold.contests == 0 {
                self.holds.remove(&key);
            }
        }
    }

    /// Takes the next row that is due, and forgets those of long ago.
    pub(super) fn pop(&mut self, now: Millis) -> Option<Key> {
        let ((at, key), ()) = self.due.first_key_value()?;
        let (at, key) = (*at, *key);
        if at > now {
            return None;
        }
        self.due.remove(&(at, key));
        Some(key)
    }

    /// Forgets what no longer matters.
    pub(super) fn purge(&mut self, now: Millis) {
        self.holds
            .retain(|_, hold| now < hold.until || now.since(hold.last) <= MEMORY_MS);
    }
}
