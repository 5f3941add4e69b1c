//! Rows that are not written for a while: put back, corrected or refused a moment ago.

use std::{collections::BTreeMap, net::IpAddr};

use super::{batch::Reason, clock::Millis, decide::Need, group::Slot, queue::Key};

#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// Nothing is inserted (where `lost`) or written at all (after failures) before.
    not_before: Millis,
    /// Refusals in a row.
    failures: u32,
    /// The row went away under a live source.
    lost: bool,
    /// When it was last put back.
    put_back: Option<Millis>,
    /// When it was last corrected.
    corrected: Option<Millis>,
    /// It is written, but the change is not seen yet: until when to wait for that.
    unseen: Option<Millis>,
}

/// How long rows are held back, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// From a follower's row vanishing until it is put back: time to learn that the follower or the
    /// source is going away too.
    pub put_back_ms: u64,
    /// From a written row's commit until it is written again where the monitor has not shown it:
    /// over a connection of their own, answers overtake the monitor of a busy server.
    pub unseen_ms: u64,
    /// Between two corrections of a row that somebody else keeps changing.
    pub correction_ms: u64,
    /// After a first refusal; doubled with each further one.
    pub retry_ms: u64,
    /// The longest pause after refusals.
    pub longest_retry_ms: u64,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            put_back_ms: 200,
            unseen_ms: 2_000,
            correction_ms: 5_000,
            retry_ms: 100,
            longest_retry_ms: 300_000,
        }
    }
}

impl Pauses {
    /// The pause after so many refusals in a row. `salt` spreads those that failed together.
    pub(super) fn retry(&self, failures: u32, salt: u64) -> u64 {
        let doubled = self.retry_ms.saturating_mul(
            1_u64
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u64::MAX),
        );
        let pause = doubled.clamp(1, self.longest_retry_ms.max(1));
        // Up to an eighth more.
        pause.saturating_add((pause / 8).saturating_mul(salt % 8) / 8)
    }
}

/// The held rows, few at any time.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    rows: BTreeMap<Key, Hold>,
}

impl Holds {
    /// The instant until which a row is held back from what it needs.
    pub(super) fn until(
        &self,
        key: Key,
        need: &Need,
        pauses: &Pauses,
        now: Millis,
    ) -> Option<Millis> {
        let hold = self.rows.get(&key)?;
        let corrected = || Some(hold.corrected?.after(pauses.correction_ms));
        let until = match need {
            _ if hold.failures > 0 => Some(hold.not_before),
            Need::Insert if hold.lost => Some(hold.not_before),
            Need::Correct(_) => corrected(),
            _ => None,
        };
        let until = until.max(hold.unseen)?;
        (now < until).then_some(until)
    }

    pub(super) fn is_failing(&self, key: Key) -> bool {
        self.rows.get(&key).is_some_and(|hold| hold.failures > 0)
    }

    pub(super) fn is_lost(&self, key: Key) -> bool {
        self.rows.get(&key).is_some_and(|hold| hold.lost)
    }

    /// A follower's row vanished while the source's lives.
    pub(super) fn lost(&mut self, key: Key, cooldown: u64, pauses: &Pauses, now: Millis) -> Millis {
        let hold = self.rows.entry(key).or_default();
        let again = hold.put_back.map(|at| at.after(cooldown));
        hold.lost = true;
        hold.not_before = hold
            .not_before
            .max(now.after(pauses.put_back_ms))
            .max(again.unwrap_or_default());
        hold.not_before
    }

    /// A row was refused; until when it waits.
    pub(super) fn failed(&mut self, key: Key, salt: u64, pauses: &Pauses, now: Millis) -> Millis {
        let hold = self.rows.entry(key).or_default();
        hold.failures = hold.failures.saturating_add(1);
        hold.not_before = now.after(pauses.retry(hold.failures, salt));
        hold.not_before
    }

    /// A row is about to be written.
    pub(super) fn taken(&mut self, key: Key, reason: Reason, now: Millis) {
        match reason {
            Reason::PutBack => {
                let hold = self.rows.entry(key).or_default();
                hold.lost = false;
                hold.put_back = Some(now);
            }
            Reason::Correction => self.rows.entry(key).or_default().corrected = Some(now),
            _ => {}
        }
    }

    /// A row was changed, and the change is not seen yet; until when it is left alone.
    pub(super) fn unseen(&mut self, key: Key, pauses: &Pauses, now: Millis) -> Millis {
        let until = now.after(pauses.unseen_ms);
        self.rows.entry(key).or_default().unseen = Some(until);
        until
    }

    /// A row is there after all, or was written.
    pub(super) fn there(&mut self, key: Key) {
        if let Some(hold) = self.rows.get_mut(&key) {
            hold.lost = false;
            hold.failures = 0;
            hold.unseen = None;
            if hold.put_back.is_none() && hold.corrected.is_none() {
                self.rows.remove(&key);
            }
        }
    }

    /// The source gives a sign of life, or is gone: only refusals still hold its followers' rows back.
    pub(super) fn release(&mut self, ip: IpAddr) {
        let first = Key {
            ip,
            slot: Slot::FIRST,
        };
        let last = Key {
            ip,
            slot: Slot::LAST,
        };
        let mut idle = Vec::new();
        for (key, hold) in self.rows.range_mut(first..=last) {
            if hold.failures == 0 && hold.unseen.is_none() {
                idle.push(*key);
            } else {
                hold.lost = false;
                hold.put_back = None;
                hold.corrected = None;
            }
        }
        for key in idle {
            self.rows.remove(&key);
        }
    }

    /// How many rows are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Forgets a follower.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.rows.retain(|key, _| key.slot != slot);
    }

    /// Forgets what no longer holds anything back.
    pub(super) fn purge(&mut self, longest_ms: u64, now: Millis) {
        let recent = |at: Option<Millis>| at.is_some_and(|at| now.since(at) <= longest_ms);
        self.rows.retain(|_, hold| {
            let waits = hold.lost || hold.failures > 0;
            (waits && recent(Some(hold.not_before)))
                || recent(hold.put_back)
                || recent(hold.corrected)
                || recent(hold.unseen)
        });
    }
}
