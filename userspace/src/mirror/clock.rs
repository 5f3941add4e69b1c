//! Time as the mirror sees it: handed in, never read.
//!
//! Two clocks matter. The monotonic one drives deadlines. The wall clock goes into the rows, and it
//! has to agree with the clock of whoever ages them: a row with a timestamp of the future is removed
//! at once by newer OVN, and one that is too old expires early.

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
#[derive(Clone, Debug, Default)]
pub struct ServerClock {
    /// The highest (timestamp − monotonic instant) of this window and of the one before it.
    current: Option<i64>,
    previous: Option<i64>,
    rotated: Millis,
    /// Whether a row was seen just after it was written.
    live: bool,
    tolerance_ms: i64,
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

    /// Takes a row's timestamp into account. `live` where the row was written just now, and not at
    /// some time before a snapshot.
    pub fn observe(&mut self, timestamp: i64, live: bool, now: Now) {
        if believable(timestamp, now) == 0 {
            return;
        }
        if live && now.at.since(self.rotated) >= WINDOW_MS {
            self.previous = self.current.take();
            self.rotated = now.at;
        }
        self.live |= live;
        let offset = timestamp.saturating_sub(now.at.signed());
        self.current = Some(self.current.map_or(offset, |known| known.max(offset)));
    }

    fn estimate(&self, now: Now) -> Option<i64> {
        let offset = self.current.max(self.previous)?;
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

    /// How the node's clock compares.
    #[must_use]
    pub fn state(&self, now: Now) -> ClockState {
        let Some(estimate) = self.estimate(now) else {
            return ClockState::Unknown;
        };
        let ahead = now.wall_ms.saturating_sub(estimate);
        if ahead < -self.tolerance_ms {
            ClockState::Behind(ahead.saturating_neg())
        } else if !self.live {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn now(at: u64, wall_ms: i64) -> Now {
        Now {
            at: Millis(at),
            wall_ms,
        }
    }

    #[test]
    fn without_any_row_the_own_clock_counts() {
        let clock = ServerClock::new(1_000);
        assert_eq!(clock.stamp(0, now(5, 70_000)), 70_000);
        assert_eq!(clock.state(now(5, 70_000)), ClockState::Unknown);
    }

    #[test]
    fn a_clock_that_is_ahead_is_bound_by_the_newest_row_and_the_time_since() {
        let mut clock = ServerClock::new(1_000);
        clock.observe(1_000_000, true, now(50, 4_600_000));
        assert_eq!(clock.stamp(1_000_000, now(150, 4_600_100)), 1_000_100);
        assert_eq!(
            clock.state(now(150, 4_600_100)),
            ClockState::Ahead(3_600_000)
        );
        assert_eq!(clock.latest(now(150, 4_600_100)), 4_600_100);
    }

    #[test]
    fn a_clock_that_is_behind_never_writes_below_the_source() {
        let mut clock = ServerClock::new(1_000);
        clock.observe(4_600_000, true, now(50, 1_000_000));
        assert_eq!(clock.stamp(4_600_000, now(60, 1_000_010)), 4_600_000);
        assert_eq!(
            clock.state(now(60, 1_000_010)),
            ClockState::Behind(3_600_000)
        );
    }

    #[test]
    fn an_old_snapshot_does_not_prove_a_clock_to_be_ahead() {
        let mut clock = ServerClock::new(1_000);
        clock.observe(1_000_000, false, now(0, 1_200_000));
        assert_eq!(clock.state(now(0, 1_200_000)), ClockState::Unknown);
        assert_eq!(clock.earliest(now(0, 1_200_000)), 1_000_000);
        assert_eq!(clock.latest(now(0, 1_200_000)), 1_200_000);
    }

    #[test]
    fn a_timestamp_that_cannot_be_true_is_ignored() {
        let mut clock = ServerClock::new(1_000);
        clock.observe(i64::MAX, true, now(0, 1_000_000));
        clock.observe(-1, true, now(0, 1_000_000));
        assert_eq!(clock.stamp(i64::MAX, now(0, 1_000_000)), 1_000_000);
        assert_eq!(clock.state(now(0, 1_000_000)), ClockState::Unknown);
    }

    #[test]
    fn a_single_wrong_row_is_forgotten_after_two_windows() {
        let mut clock = ServerClock::new(1_000);
        clock.observe(4_000_000, true, now(0, 1_000_000));
        for window in 1..=3_u64 {
            let at = window * WINDOW_MS;
            let wall = 1_000_000 + i64::try_from(at).unwrap();
            clock.observe(wall, true, now(at, wall));
        }
        let at = 3 * WINDOW_MS;
        let wall = 1_000_000 + i64::try_from(at).unwrap();
        assert_eq!(clock.state(now(at, wall)), ClockState::Agrees);
    }
}
