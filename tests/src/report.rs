//! What programs that measure have in common.

use std::{fmt::Display, process::ExitCode, time::Duration};

use serde::{Deserialize, Serialize};

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// A table
    Text,
    /// One object
    Json,
}

impl Output {
    /// Prints a bench's report; in text, what missed its target comes last. The exit code says
    /// whether anything did.
    ///
    /// # Errors
    /// Where the report cannot be written as JSON.
    pub fn finish<R: Serialize, M: Display>(
        self,
        report: &R,
        missed: &[M],
        print: impl Fn(&R),
    ) -> Result<ExitCode, serde_json::Error> {
        match self {
            Self::Json => println!("{}", serde_json::to_string(report)?),
            Self::Text => {
                print(report);
                for missed in missed {
                    println!("missed: {missed}");
                }
            }
        }
        Ok(if missed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Times of one kind, in ms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Times {
    /// Half of them are not longer.
    pub median_ms: f64,
    /// Nine of ten are not longer.
    pub p90_ms: f64,
    /// 99 of a hundred are not longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Times {
    /// What samples come to; no number where there is none.
    #[must_use]
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |share: f64| {
            let last = samples.len().saturating_sub(1);
            let place = (share * f64::from(u32::try_from(last).unwrap_or(u32::MAX))).round();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between zero and the last place"
            )]
            let place = place as usize;
            samples
                .get(place)
                .map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e3)
        };
        Self {
            median_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}
