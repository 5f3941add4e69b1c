//! How long to wait between attempts.

use std::time::Duration;

/// Bounds of the wait before the next attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// Never more than this.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(4),
        }
    }
}

impl Backoff {
    /// The wait after `failures` attempts in a row: it doubles up to the longest, and `share`
    /// (0 to 1, a random number) takes up to half of it away, so that clients that lost one server
    /// at one moment do not come back at one moment.
    #[must_use]
    pub fn wait(&self, failures: u32, share: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        full.mul_f64(1.0 - share.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_never_overflow() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(1),
        };
        let waits: Vec<u128> = [1, 2, 3, 4, 5, u32::MAX]
            .map(|failures| backoff.wait(failures, 0.0).as_millis())
            .to_vec();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn chance_takes_at_most_half_of_a_wait_away() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(1, 1.0), backoff.first / 2);
        assert!(backoff.wait(3, 0.5) < backoff.wait(3, 0.4));
    }
}
