//! Rows that a router brought along from another bridge.

use std::{collections::BTreeMap, net::IpAddr};

use crate::{
    ids::Mac,
    mirror::{BindingRow, Member},
};

/// How much later than its source's row a follower's may be stamped, ms: it carries the time at which
/// the mirror wrote it.
const WRITTEN_WITHIN_MS: i64 = 5_000;

/// What a source knows of a neighbour.
#[derive(Clone, Copy, Debug)]
struct Known<'a> {
    bridge: &'a str,
    mac: Mac,
    timestamp: i64,
}

/// What the sources of all bridges but one know.
#[derive(Clone, Debug, Default)]
pub struct OtherSources<'a> {
    known: BTreeMap<IpAddr, Vec<Known<'a>>>,
    /// Whether the source of the bridge in question was never a follower of another one.
    is_first: bool,
}

impl<'a> OtherSources<'a> {
    /// The rows of `sources`, each with its bridge; rows of other ports are left out.
    #[must_use]
    pub fn of(sources: &[(&'a str, &Member)], rows: &[&BindingRow]) -> Self {
        let by_port: BTreeMap<&str, (&str, &Member)> = sources
            .iter()
            .map(|(bridge, member)| (&*member.port, (*bridge, *member)))
            .collect();
        let mut known: BTreeMap<IpAddr, Vec<Known<'_>>> = BTreeMap::new();
        for row in rows {
            if let Some((bridge, source)) = by_port.get(&*row.port)
                && let Some(mac) = row.mac
                && row.belongs_to(source)
            {
                known.entry(row.ip).or_default().push(Known {
                    bridge,
                    mac,
                    timestamp: row.timestamp,
                });
            }
        }
        Self {
            known,
            is_first: false,
        }
    }

    /// The same for a bridge whose source is the default network's gateway router: it is a follower
    /// nowhere, so that what it knows it has learned by itself, whatever the timestamps say.
    #[must_use]
    pub fn for_the_default_router(self, is_default: bool) -> Self {
        Self {
            is_first: is_default,
            ..self
        }
    }

    /// The bridge whose source has learned what a follower's row says: it knows the same MAC, and its
    /// row is not the older one, but for the time that the mirror takes to write.
    pub(super) fn learned(&self, row: &BindingRow) -> Option<&'a str> {
        self.newest(row, |later| later <= WRITTEN_WITHIN_MS)
    }

    /// The bridge whose source has learned what a row of another source says. A copy is the later one
    /// as long as it is fresh, and the older one once the source that has learned it has refreshed its
    /// own.
    pub(super) fn copied(&self, row: &BindingRow) -> Option<&'a str> {
        if self.is_first {
            return None;
        }
        self.newest(row, |later| {
            later < -WRITTEN_WITHIN_MS || (0..=WRITTEN_WITHIN_MS).contains(&later)
        })
    }

    /// The bridge whose source has the newest row of those with the same MAC than which this one is
    /// so many ms later.
    fn newest(&self, row: &BindingRow, is_so_late: impl Fn(i64) -> bool) -> Option<&'a str> {
        let same = |known: &&Known<'_>| {
            row.mac == Some(known.mac) && is_so_late(row.timestamp.saturating_sub(known.timestamp))
        };
        let candidates = self.known.get(&row.ip)?.iter().filter(same);
        candidates
            .max_by_key(|known| known.timestamp)
            .map(|known| known.bridge)
    }
}
