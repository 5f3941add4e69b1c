//! What one follower's row needs, given what the source says: the heart of the mirror, shared by the
//! incremental machine and the computation from scratch.

#[cfg(test)]
mod tests;

use super::{
    batch::Skip,
    clock::{Now, ServerClock, believable},
    table::{StoredRow, Truth},
};
use crate::ovsdb::Uuid;

/// The clocks of one decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) now: Now,
    /// The earliest and the latest that the server's clock may read.
    pub(super) earliest: i64,
    pub(super) latest: i64,
}

impl Times {
    pub(super) fn new(clock: &ServerClock, now: Now) -> Self {
        Self {
            now,
            earliest: clock.earliest(now),
            latest: clock.latest(now),
        }
    }
}

/// Ages that hold for one follower and one neighbour, in ms; `None` for a row that does not age, and
/// for the source's of a neighbour that is pinned: that one lives as long as it is pinned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ages {
    pub(super) source: Option<u64>,
    pub(super) follower: Option<u64>,
    /// A right row is not written again sooner than this after its timestamp.
    pub(super) cooldown: u64,
}

/// What a follower's row needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// There is no row.
    Insert,
    /// Its MAC is wrong.
    Correct(Uuid),
    /// It would expire before the source's.
    Refresh(Uuid),
    /// Nothing, for the reason given; from then on (ms since the epoch, by `Times::latest`) perhaps a
    /// refresh.
    Nothing(Skip, Option<i64>),
}

/// Decides what a follower's row needs.
pub(super) fn decide(truth: &Truth, row: Option<&StoredRow>, ages: Ages, times: Times) -> Need {
    let source = believable(truth.timestamp, times.now);
    let source_expiry = match ages.source {
        Some(age) if source > 0 => Some(source.saturating_add_unsigned(age)),
        Some(_) => Some(0),
        None => None,
    };
    // Whoever ages rows is about to remove this one, and has perhaps removed the follower's already.
    let expired = source > 0 && source_expiry.is_some_and(|expiry| expiry <= times.earliest);
    let Some(row) = row else {
        return if expired {
            Need::Nothing(Skip::SourceExpiring, None)
        } else {
            Need::Insert
        };
    };
    if row.elsewhere {
        return Need::Nothing(Skip::OtherDatapath, None);
    }
    if row.mac != Some(truth.mac) {
        return Need::Correct(row.uuid);
    }
    let Some(age) = ages.follower else {
        return Need::Nothing(Skip::Fresh, None);
    };
    let expiry = row.timestamp.saturating_add_unsigned(age);
    if source_expiry.is_some_and(|source_expiry| expiry >= source_expiry) {
        return Need::Nothing(Skip::Fresh, None);
    }
    if expired {
        return Need::Nothing(Skip::SourceExpiring, None);
    }
    let due = row.timestamp.saturating_add_unsigned(ages.cooldown);
    if times.latest < due {
        return Need::Nothing(Skip::Cooldown, Some(due));
    }
    // A row whose source's does not age, or has none, is due again and again. Some time has to pass
    // by the clock that rows are stamped with as well: where that is behind the one that ages are
    // judged by, the row would be due as soon as it is written.
    let pause = match ages.source {
        Some(_) => 0,
        None => ages.cooldown / 4,
    };
    let stamp = times.earliest.max(source);
    let worth = row.timestamp.saturating_add_unsigned(pause.max(1));
    if stamp < worth {
        let skip = if stamp <= row.timestamp {
            Skip::Newer
        } else {
            Skip::Cooldown
        };
        let wait = worth.saturating_sub(stamp);
        return Need::Nothing(skip, Some(times.latest.saturating_add(wait)));
    }
    Need::Refresh(row.uuid)
}
