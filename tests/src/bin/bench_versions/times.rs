//! Times of one kind.

use std::time::Duration;

use serde::Serialize;

/// What samples come to, in ms.
#[derive(Debug, Serialize)]
pub(crate) struct Times {
    pub(crate) median_ms: f64,
    pub(crate) max_ms: f64,
}

impl Times {
    /// No number where there is no sample.
    pub(crate) fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let ms = |sample: Option<&Duration>| sample.map_or(f64::NAN, |it| it.as_secs_f64() * 1e3);
        Self {
            median_ms: ms(samples.get(samples.len() / 2)),
            max_ms: ms(samples.last()),
        }
    }
}
