//! The machine's clocks, as the mirror is handed them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crate::mirror::{Millis, Now};

/// Reads the clocks; the pure mirror is handed what they say.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    /// By how many ms the wall clock is made out to be ahead.
    shift_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self::shifted(Arc::default())
    }

    /// A clock whose wall clock reads so many ms more than the machine's, now and whenever the
    /// number changes: how the mirror is tested on a node whose clock is wrong or steps.
    #[must_use]
    pub fn shifted(shift_ms: Arc<AtomicI64>) -> Self {
        Self {
            started: Instant::now(),
            shift_ms,
        }
    }

    /// This instant.
    #[must_use]
    pub fn now(&self) -> Now {
        let ms = |duration: std::time::Duration| duration.as_millis();
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            at: Millis(u64::try_from(ms(self.started.elapsed())).unwrap_or(u64::MAX)),
            wall_ms: i64::try_from(ms(wall))
                .unwrap_or(i64::MAX)
                .saturating_add(self.shift_ms.load(Ordering::Relaxed)),
        }
    }

    /// When the mirror's clock will show `at`.
    #[must_use]
    pub fn instant(&self, at: Millis) -> Instant {
        self.started + std::time::Duration::from_millis(at.0)
    }

    /// Lets time pass.
    #[cfg(test)]
    pub(super) fn advance(&mut self, by: std::time::Duration) {
        self.started -= by;
    }
}
