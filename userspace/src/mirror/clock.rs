//! Time as the mirror sees it: handed in, never read.
//!
//! Two clocks matter. The monotonic one drives deadlines. The wall clock goes into the rows, and it
//! has to agree with the clock of whoever ages them: a row with a timestamp of the future is removed
//! at once by newer OVN, and one that is too old expires early.

#[cfg(test)]
mod tests;

use serde::Serialize;

/// Milliseconds on a clock that never goes back; where it starts does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// The instant `ms` milliseconds later.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The milliseconds since an earlier instant; zero where that one is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock.
    pub at: Millis,
    /// This node's wall clock, ms since the epoch.
    pub wall_ms: i64,
}

/// How this node's wall clock relates to the timestamps that others write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "ms")]
pub enum ClockState {
    /// No timestamp was seen while it was fresh.
    #[default]
    Unknown,
    /// Within the tolerance.
    Agrees,
    /// This node's clock is ahead by so many ms.
    Ahead(i64),
    /// This node's clock is behind by so many ms.
    Behind(i64),
}

impl ClockState {
    /// Whether the clocks are known to differ.
    #[must_use]
    pub const fn differs(self) -> bool {
        matches!(self, Self::Ahead(_) | Self::Behind(_))
    }
}

/// A timestamp so far ahead of the node's own clock is taken for garbage.
const BELIEVABLE_MS: i64 = 2 * 3_600_000;
/// For how long an observation counts at least.
const WINDOW_MS: u64 = 600_000;

/// What the timestamps in the database tell of the clock behind them.
///
/// A timestamp seen at some instant proves that its writer's clock had reached it by then, so the
/// newest one plus the monotonic time since is a lower bound for that clock. It gets sharp as soon as
/// a fresh row is seen.
///
/// One wrong timestamp must not move it. One that is too low never does; one that is ahead of the
/// node's own clock counts once a second one of the source's, written at another time, confirms it.
#[derive(Clone, Debug, Default)]
pub struct ServerClock {
    current: Window,
    previous: Window,
    rotated: Millis,
    /// When a row was last seen just after it was written.
    live: Option<Millis>,
    tolerance_ms: i64,
}

/// What was seen in some minutes, as offsets: timestamp − monotonic instant.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The highest of timestamps that the node's own clock had reached.
    plausible: Option<i64>,
    /// The two highest of timestamps ahead of it, no two the same: a row may be told of again, and
    /// followers' are copies.
    ahead: [Option<Reading>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    timestamp: i64,
    offset: i64,
}

impl Window {
    fn add_ahead(&mut self, reading: Reading) {
        let [first, second] = &mut self.ahead;
        let known = [*first, *second];
        if known
            .iter()
            .flatten()
            .any(|it| it.timestamp == reading.timestamp)
        {
            return;
        }
        if first.is_none_or(|first| reading.offset > first.offset) {
            *second = first.replace(reading);
        } else if second.is_none_or(|second| reading.offset > second.offset) {
            *second = Some(reading);
        }
    }

    /// Both windows as one.
    fn and(mut self, later: Self) -> Self {
        self.plausible = self.plausible.max(later.plausible);
        for reading in later.ahead.into_iter().flatten() {
            self.add_ahead(reading);
        }
        self
    }

    /// The offset that two timestamps ahead of the node's own clock have reached.
    fn confirmed(&self) -> Option<i64> {
        let [_, second] = self.ahead;
        Some(second?.offset)
    }
}

impl ServerClock {
    /// A clock that tolerates so many ms of difference before it says that the clocks differ.
    #[must_use]
    pub fn new(tolerance_ms: u64) -> Self {
        Self {
            tolerance_ms: i64::try_from(tolerance_ms).unwrap_or(i64::MAX),
            ..Self::default()
        }
    }

    /// Takes a row's timestamp into account. `live` where it is the source's and the row was written
    /// just now, and not at some time before a snapshot.
    pub fn observe(&mut self, timestamp: i64, live: bool, now: Now) {
        if believable(timestamp, now) == 0 {
            return;
        }
        if live && now.at.since(self.rotated) >= WINDOW_MS {
            self.previous = std::mem::take(&mut self.current);
            self.rotated = now.at;
        }
        let offset = timestamp.saturating_sub(now.at.signed());
        if timestamp.saturating_sub(now.wall_ms) <= self.tolerance_ms {
            if live {
                self.live = Some(now.at);
            }
            self.current.plausible = self.current.plausible.max(Some(offset));
        } else if live {
            self.current.add_ahead(Reading { timestamp, offset });
        }
    }

    fn window(&self) -> Window {
        self.previous.and(self.current)
    }

    fn estimate(&self, now: Now) -> Option<i64> {
        let window = self.window();
        let offset = window.plausible.max(window.confirmed())?;
        Some(offset.saturating_add(now.at.signed()))
    }

    /// The earliest that the server's clock may read, ms since the epoch.
    #[must_use]
    pub fn earliest(&self, now: Now) -> i64 {
        self.estimate(now)
            .map_or(now.wall_ms, |estimate| estimate.min(now.wall_ms))
    }

    /// The latest that the server's clock may read, ms since the epoch: ages are judged by it, since
    /// refreshing a row early costs a write, and refreshing it late costs the row.
    #[must_use]
    pub fn latest(&self, now: Now) -> i64 {
        self.estimate(now)
            .map_or(now.wall_ms, |estimate| estimate.max(now.wall_ms))
    }

    /// The timestamp to write for a binding whose source row carries `source`.
    ///
    /// It is never ahead of what the server is known to have reached, with one exception that the
    /// server has itself accepted for the same neighbour: it is never older than the source's, so
    /// that a node whose clock is behind does not write rows that expire before the source's.
    #[must_use]
    pub fn stamp(&self, source: i64, now: Now) -> i64 {
        self.earliest(now).max(believable(source, now))
    }

    /// The timestamp to write for a binding that has no source row: what the server's clock reads
    /// now, as far as that can be told.
    ///
    /// The node's own clock, unless rows that were written just now show it to be ahead. Rows of a
    /// snapshot show nothing: after some minutes without an agent all of them are old, and what is
    /// stamped like them expires with them. Nor is it the node's own clock where the source's rows
    /// are confirmed to be written by one that is ahead of it.
    #[must_use]
    pub fn fresh(&self, now: Now) -> i64 {
        let confirmed = self.window().confirmed();
        let confirmed = confirmed.map(|offset| offset.saturating_add(now.at.signed()));
        match confirmed {
            Some(ahead) if ahead > now.wall_ms => ahead,
            _ if self.was_live(now) => self.earliest(now),
            _ => now.wall_ms,
        }
    }

    /// Whether a row was seen just after it was written, not too long ago: clocks are set.
    fn was_live(&self, now: Now) -> bool {
        self.live
            .is_some_and(|live| now.at.since(live) < 2 * WINDOW_MS)
    }

    /// How the node's clock compares.
    #[must_use]
    pub fn state(&self, now: Now) -> ClockState {
        let Some(estimate) = self.estimate(now) else {
            return ClockState::Unknown;
        };
        let ahead = now.wall_ms.saturating_sub(estimate);
        if ahead < -self.tolerance_ms {
            ClockState::Behind(ahead.saturating_neg())
        } else if self.live.is_none() {
            // The newest timestamp may simply be old.
            ClockState::Unknown
        } else if ahead > self.tolerance_ms {
            ClockState::Ahead(ahead)
        } else {
            ClockState::Agrees
        }
    }
}

/// The timestamp, or 0 (none) where it cannot be true.
pub(super) fn believable(timestamp: i64, now: Now) -> i64 {
    if timestamp > 0 && timestamp <= now.wall_ms.saturating_add(BELIEVABLE_MS) {
        timestamp
    } else {
        0
    }
}
