//! What the mirror has done, as plain numbers.

use serde::Serialize;

use super::{
    batch::{FailureKind, Reason, Skip},
    rows::RowSkip,
};

/// Rows written and committed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are the variants of Reason")]
pub struct Writes {
    pub new_binding: u64,
    pub mac_change: u64,
    pub refresh: u64,
    pub fill: u64,
    pub put_back: u64,
    pub backfill: u64,
    pub correction: u64,
    pub drift: u64,
}

impl Writes {
    pub(super) fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::NewBinding => &mut self.new_binding,
            Reason::MacChange => &mut self.mac_change,
            Reason::Refresh => &mut self.refresh,
            Reason::Fill => &mut self.fill,
            Reason::PutBack => &mut self.put_back,
            Reason::Backfill => &mut self.backfill,
            Reason::Correction => &mut self.correction,
            Reason::Drift => &mut self.drift,
        } += 1;
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.new_binding
            + self.mac_change
            + self.refresh
            + self.fill
            + self.put_back
            + self.backfill
            + self.correction
            + self.drift
    }
}

/// Times that a row was looked at and not written, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are the variants of Skip")]
pub struct Skips {
    pub fresh: u64,
    pub cooldown: u64,
    pub newer: u64,
    pub source_expiring: u64,
    pub source_gone: u64,
    pub follower_gone: u64,
    pub node_ip: u64,
    pub other_datapath: u64,
    pub in_flight: u64,
    pub held_back: u64,
}

impl Skips {
    pub(super) fn count(&mut self, skip: Skip, rows: u64) {
        *match skip {
            Skip::Fresh => &mut self.fresh,
            Skip::Cooldown => &mut self.cooldown,
            Skip::Newer => &mut self.newer,
            Skip::SourceExpiring => &mut self.source_expiring,
            Skip::SourceGone => &mut self.source_gone,
            Skip::FollowerGone => &mut self.follower_gone,
            Skip::NodeIp => &mut self.node_ip,
            Skip::OtherDatapath => &mut self.other_datapath,
            Skip::InFlight => &mut self.in_flight,
            Skip::HeldBack => &mut self.held_back,
        } += rows;
    }
}

/// Rows that told nothing, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BadRows {
    /// Rows without a port.
    pub no_port: u64,
    /// Rows whose ip is empty or no address.
    pub bad_ip: u64,
    /// Source rows whose mac is empty or no address.
    pub bad_mac: u64,
    /// Rows of ports that are no members.
    pub other_port: u64,
}

impl BadRows {
    pub(super) fn count(&mut self, skip: RowSkip) {
        *match skip {
            RowSkip::NoPort => &mut self.no_port,
            RowSkip::BadIp => &mut self.bad_ip,
            RowSkip::BadMac => &mut self.bad_mac,
        } += 1;
    }
}

/// What went wrong, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// Transactions refused for a row that was there already.
    pub duplicate_index: u64,
    /// Transactions refused for a datapath that is gone.
    pub missing_reference: u64,
    /// Transactions refused for another constraint.
    pub constraint: u64,
    /// Transactions that the server will not have from this client.
    pub refused: u64,
    /// Transactions that the server could not do at the time.
    pub unavailable: u64,
    /// Rows found at fault, and tried again later.
    pub rows_at_fault: u64,
    /// Updates that met no row, because it was deleted meanwhile.
    pub rows_missed: u64,
    /// Transactions whose outcome was lost with the connection.
    pub unknown_outcome: u64,
}

impl Errors {
    pub(super) fn count(&mut self, kind: FailureKind) {
        *match kind {
            FailureKind::DuplicateIndex => &mut self.duplicate_index,
            FailureKind::MissingReference => &mut self.missing_reference,
            FailureKind::Constraint => &mut self.constraint,
            FailureKind::Refused => &mut self.refused,
            FailureKind::Unavailable => &mut self.unavailable,
        } += 1;
    }
}

/// Everything that the mirror counts, from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Rows committed, of what the source has learnt.
    pub writes: Writes,
    /// Rows committed, of nodes' bindings that are pinned.
    pub node_writes: Writes,
    /// Rows not written. One that stays as it is is counted each time that it is looked at.
    pub skips: Skips,
    /// Rows that told nothing.
    pub bad_rows: BadRows,
    /// What went wrong.
    pub errors: Errors,
    /// From a source row seen to the last follower's row committed, ms.
    pub latency: Histogram,
    /// From a transaction taken to its commit, ms.
    pub transaction: Histogram,
    /// Rows per transaction.
    pub transaction_rows: Histogram,
}

/// The upper bounds of a histogram's buckets, inclusive; the last bucket has none.
pub const BUCKETS: [u64; 24] = [
    1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 2_000,
    5_000, 10_000, 60_000,
];

/// A histogram of fixed size over [`BUCKETS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BUCKETS.len() + 1],
    sum: u64,
    last: u64,
    max: u64,
}

impl Histogram {
    /// Adds a sample.
    pub fn record(&mut self, sample: u64) {
        let bucket = BUCKETS.partition_point(|bound| *bound < sample);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(sample);
        self.last = sample;
        self.max = self.max.max(sample);
    }

    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all samples.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The newest sample.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// The largest sample.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The samples per bucket: one more than there are [`BUCKETS`].
    #[must_use]
    pub const fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// An upper bound for the sample that `percent` of them do not exceed; `None` without samples.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = count.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, samples) in self.counts.iter().enumerate() {
            seen += samples;
            if seen >= rank {
                return Some(
                    BUCKETS
                        .get(bucket)
                        .map_or(self.max, |bound| self.max.min(*bound)),
                );
            }
        }
        Some(self.max)
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Bucket {
            /// `None` for the last one.
            at_most: Option<u64>,
            count: u64,
        }
        #[derive(Serialize)]
        struct View {
            count: u64,
            sum: u64,
            last: u64,
            max: u64,
            p50: Option<u64>,
            p99: Option<u64>,
            buckets: Vec<Bucket>,
        }
        let buckets = self.counts.iter().enumerate();
        View {
            count: self.count(),
            sum: self.sum,
            last: self.last,
            max: self.max,
            p50: self.percentile(50),
            p99: self.percentile(99),
            buckets: buckets
                .filter(|(_, count)| **count > 0)
                .map(|(bucket, count)| Bucket {
                    at_most: BUCKETS.get(bucket).copied(),
                    count: *count,
                })
                .collect(),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_upper_bounds_and_never_above_the_largest_sample() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        for sample in 1..=100 {
            histogram.record(sample);
        }
        assert_eq!(histogram.percentile(50), Some(50));
        assert_eq!(histogram.percentile(99), Some(100));
        histogram.record(1_000_000);
        assert_eq!(histogram.percentile(100), Some(1_000_000));
        assert_eq!(histogram.count(), 101);
        let mut one = Histogram::default();
        one.record(12);
        assert_eq!(one.percentile(99), Some(12));
    }
}
