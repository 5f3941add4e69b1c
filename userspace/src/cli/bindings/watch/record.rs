//! One line each: what happened, and how it stands now.

use std::{fmt, net::IpAddr, sync::Arc};

use serde::Serialize;

use crate::{
    cli::bindings::{Tally, table},
    ids::Mac,
    mirror::{GroupMembers, Origin},
};

/// What happened to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The source knows it now.
    Learnt,
    /// It is a node's, and pinned now: followers have it whatever the source says.
    Pinned,
    /// It has another MAC.
    Moved,
    /// The source has refreshed it, and the followers' rows stand otherwise to it than before.
    Refreshed,
    /// Followers' rows changed.
    Followers,
    /// The source does not know it any more, or it is not pinned any more.
    Gone,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Learnt => "learnt",
            Self::Pinned => "pinned",
            Self::Moved => "moved",
            Self::Refreshed => "refreshed",
            Self::Followers => "followers changed",
            Self::Gone => "gone",
        })
    }
}

/// How many followers stand how to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Followers {
    /// All of them.
    pub total: usize,
    /// How their rows stand to the source's.
    #[serde(flatten)]
    pub rows: Tally,
    /// How many have a row about a neighbour that the source does not know any more. Theirs age by
    /// themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeping: Option<usize>,
}

/// A neighbour on a bridge has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NeighbourRecord {
    /// When the first of the changes behind it was seen, RFC 3339, UTC.
    pub time: String,
    /// The bridge.
    pub bridge: Arc<str>,
    /// What happened.
    pub event: Event,
    /// The neighbour.
    pub ip: IpAddr,
    /// Its MAC; the last one, where it is gone.
    pub mac: Mac,
    /// The one that it had before, where that was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_mac: Option<Mac>,
    /// Whether it is a node's address, of which the source's row is not mirrored.
    pub node: bool,
    /// From what it is known.
    pub origin: Origin,
    /// The followers.
    pub followers: Followers,
}

/// What a bridge's record is called among the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Gateway routers share the bridge, or others do than before.
    Group,
    /// None do any more.
    GroupGone,
}

/// How a bridge stands: at the start, and whenever its composition changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BridgeRecord {
    /// RFC 3339, UTC.
    pub time: String,
    /// The bridge.
    pub bridge: Arc<str>,
    /// What it is.
    pub event: Group,
    /// The source's external port; `None` where there is no source with a datapath.
    pub source: Option<Arc<str>>,
    /// The number of the source's bindings.
    pub bindings: usize,
    /// The number of nodes' bindings that are pinned.
    pub pinned: usize,
    /// The number of followers.
    pub follower_count: usize,
    /// All followers' rows together.
    pub rows: Tally,
}

impl BridgeRecord {
    pub(super) fn new(
        bridge: &Arc<str>,
        members: &GroupMembers,
        (bindings, pinned): (usize, usize),
        rows: Tally,
        at: i64,
    ) -> Self {
        Self {
            time: rfc3339(at),
            bridge: Arc::clone(bridge),
            event: Group::Group,
            source: members.source.as_ref().map(|it| Arc::clone(&it.port)),
            bindings,
            pinned,
            follower_count: members.followers.len(),
            rows,
        }
    }

    pub(super) fn gone(bridge: &Arc<str>, at: i64) -> Self {
        Self {
            event: Group::GroupGone,
            ..Self::new(
                bridge,
                &GroupMembers::default(),
                (0, 0),
                Tally::default(),
                at,
            )
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Record {
    /// About a bridge.
    Bridge(BridgeRecord),
    /// About a neighbour on a bridge.
    Neighbour(NeighbourRecord),
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bridge(record) => record.fmt(f),
            Self::Neighbour(record) => record.fmt(f),
        }
    }
}

impl fmt::Display for BridgeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.time, self.bridge)?;
        match (&self.source, self.event) {
            (_, Group::GroupGone) => f.write_str("is shared by no gateway routers any more"),
            (None, Group::Group) if self.pinned == 0 => {
                f.write_str("has no source with a datapath yet")
            }
            (source, Group::Group) => write!(
                f,
                "{}, followers: {}, their rows: {}",
                table::known(source.as_deref(), self.bindings, self.pinned),
                self.follower_count,
                table::sum(self.rows)
            ),
        }
    }
}

impl fmt::Display for NeighbourRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            bridge,
            event,
            ip,
            mac,
            ..
        } = self;
        write!(f, "{time} {bridge} {ip} {mac} {event}")?;
        if let Some(former) = self.former_mac {
            write!(f, " from {former}")?;
        }
        let Followers {
            total,
            rows,
            keeping,
        } = self.followers;
        match keeping {
            Some(keeping) => write!(f, "; {keeping} of {total} followers keep a row"),
            None if self.node && self.origin == Origin::Source => {
                f.write_str("; a node's address, not mirrored")
            }
            None => write!(f, "; of {total} followers {}", table::sum(rows)),
        }
    }
}

const MS_A_DAY: i64 = 86_400_000;

/// An instant in ms since the epoch as RFC 3339 has it, in UTC.
pub(super) fn rfc3339(ms: i64) -> String {
    let (days, ms) = (ms.div_euclid(MS_A_DAY), ms.rem_euclid(MS_A_DAY));
    let (year, month, day) = date(days);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date so many days after 1970-01-01 in the Gregorian calendar. Years are counted from March, so
/// that a leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    /// From 0000-03-01 to 1970-01-01.
    const EPOCH: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days.saturating_add(EPOCH);
    let (era, day) = (
        days.div_euclid(DAYS_OF_400_YEARS),
        days.rem_euclid(DAYS_OF_400_YEARS),
    );
    let leap_days = day / 1_460 - day / 36_524 + day / 146_096;
    let year = (day - leap_days) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // March to July have 153 days together, and so have August to December.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_rfc_3339_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_704_067_199_999, "2023-12-31T23:59:59.999Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
        // Whatever the clock says.
        rfc3339(i64::MAX);
        rfc3339(i64::MIN);
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let length = |year: i64, month: i64| match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(date(days), expected, "{days}");
            let (year, month, day) = expected;
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}
