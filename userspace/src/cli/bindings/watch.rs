//! What changed between two looks at the rows: lines for `neighsteer bindings --watch`.
//!
//! Pure: rows and groups go in as they change, [`Watch::take`] says what that means for each neighbour.

mod record;
#[cfg(test)]
mod tests;

pub use record::{BridgeRecord, Event, Followers, Group, NeighbourRecord, Record};

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use super::Tally;
use crate::{
    ids::Mac,
    mirror::{BindingRow, GroupMembers, Now, Origin, ServerClock, Settings, compare_one},
    ovsdb::Uuid,
};

/// How a neighbour stands on a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    /// What the source's row says, or what is pinned.
    mac: Mac,
    /// Of the source's row, ms since the epoch; 0 where it does not count.
    timestamp: i64,
    /// Whether it is a node's address, of which the source's row is not mirrored.
    node: bool,
    origin: Origin,
    followers: Tally,
}

/// Follows the rows of the groups' routers.
#[derive(Debug)]
pub struct Watch {
    settings: Settings,
    clock: ServerClock,
    rows: BTreeMap<IpAddr, BTreeMap<Uuid, BindingRow>>,
    places: HashMap<Uuid, IpAddr>,
    groups: BTreeMap<Arc<str>, GroupMembers>,
    /// What was told last.
    told: BTreeMap<Arc<str>, BTreeMap<IpAddr, Neighbour>>,
    /// Neighbours with changed rows, and when the first of them changed, ms since the epoch.
    changed: BTreeMap<IpAddr, i64>,
    /// The same for bridges with another composition.
    regrouped: BTreeMap<Arc<str>, i64>,
}

impl Watch {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            clock: ServerClock::new(settings.clock_tolerance_ms),
            rows: BTreeMap::new(),
            places: HashMap::new(),
            groups: BTreeMap::new(),
            told: BTreeMap::new(),
            changed: BTreeMap::new(),
            regrouped: BTreeMap::new(),
        }
    }

    /// Takes a row as it is now. `live` where it was written just now, and not at some time before a
    /// snapshot.
    pub fn upsert(&mut self, row: BindingRow, live: bool, now: Now) {
        self.clock.observe(row.timestamp, live, now);
        if self.places.get(&row.uuid).is_some_and(|ip| *ip != row.ip) {
            self.remove(row.uuid, now);
        }
        self.changed.entry(row.ip).or_insert(now.wall_ms);
        self.places.insert(row.uuid, row.ip);
        self.rows.entry(row.ip).or_default().insert(row.uuid, row);
    }

    /// Forgets a row.
    pub fn remove(&mut self, uuid: Uuid, now: Now) {
        let Some(ip) = self.places.remove(&uuid) else {
            return;
        };
        self.changed.entry(ip).or_insert(now.wall_ms);
        if let Some(rows) = self.rows.get_mut(&ip) {
            rows.remove(&uuid);
            if rows.is_empty() {
                self.rows.remove(&ip);
            }
        }
    }

    /// Takes the groups as they are now, by bridge. The rows of their ports must be known.
    pub fn set_groups(&mut self, groups: BTreeMap<Arc<str>, GroupMembers>, now: Now) {
        let bridges: BTreeSet<_> = groups.keys().chain(self.groups.keys()).collect();
        for bridge in bridges {
            if groups.get(bridge) != self.groups.get(bridge) {
                self.regrouped
                    .entry(Arc::clone(bridge))
                    .or_insert(now.wall_ms);
            }
        }
        self.groups = groups;
    }

    /// Whether there is something to look at.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.changed.is_empty() || !self.regrouped.is_empty()
    }

    /// What has become different since the last call, by bridge and neighbour. A bridge whose
    /// composition changed comes first and once; of its neighbours, those alone follow that are new,
    /// gone or have another MAC.
    pub fn take(&mut self, now: Now) -> Vec<Record> {
        let mut records = Vec::new();
        let regrouped = std::mem::take(&mut self.regrouped);
        let changed = std::mem::take(&mut self.changed);
        for (bridge, at) in &regrouped {
            self.regroup(bridge, *at, now, &mut records);
        }
        let bridges: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        for bridge in bridges.iter().filter(|it| !regrouped.contains_key(*it)) {
            for (ip, at) in &changed {
                let after = self.look(bridge, *ip, now);
                let told = self.told.entry(Arc::clone(bridge)).or_default();
                let before = match after {
                    Some(after) => told.insert(*ip, after),
                    None => told.remove(ip),
                };
                if let Some(event) = event(before, after) {
                    records.extend(self.record(bridge, *ip, event, before, after, *at));
                }
            }
        }
        records
    }

    fn regroup(&mut self, bridge: &Arc<str>, at: i64, now: Now, records: &mut Vec<Record>) {
        let before = self.told.remove(bridge);
        let Some(members) = self.groups.get(bridge) else {
            records.push(Record::Bridge(BridgeRecord::gone(bridge, at)));
            return;
        };
        let ips: BTreeSet<IpAddr> = self
            .rows
            .keys()
            .chain(members.pinned.keys())
            .copied()
            .collect();
        let after: BTreeMap<IpAddr, Neighbour> = ips
            .into_iter()
            .filter_map(|ip| Some((ip, self.look(bridge, ip, now)?)))
            .collect();
        let pinned = |neighbour: &&Neighbour| neighbour.origin == Origin::Node;
        let pinned = after.values().filter(pinned).count();
        records.push(Record::Bridge(BridgeRecord::new(
            bridge,
            members,
            (after.len() - pinned, pinned),
            after.values().map(|it| it.followers).sum(),
            at,
        )));
        if let Some(before) = before {
            let ips: BTreeSet<&IpAddr> = before.keys().chain(after.keys()).collect();
            for ip in ips {
                let (before, after) = (before.get(ip).copied(), after.get(ip).copied());
                match event(before, after) {
                    None | Some(Event::Refreshed | Event::Followers) => {}
                    Some(event) => {
                        records.extend(self.record(bridge, *ip, event, before, after, at));
                    }
                }
            }
        }
        self.told.insert(Arc::clone(bridge), after);
    }

    /// How a neighbour stands on a bridge now, if its source knows it or it is pinned.
    fn look(&self, bridge: &str, ip: IpAddr, now: Now) -> Option<Neighbour> {
        let members = self.groups.get(bridge)?;
        let rows = self.rows.get(&ip).into_iter().flat_map(BTreeMap::values);
        let rows: Vec<&BindingRow> = rows.collect();
        let pinned = members.pinned.get(&ip).map(|mac| (*mac, 0, Origin::Node));
        let learnt = || {
            let source = members.source.as_ref()?;
            rows.iter()
                .filter(|row| row.belongs_to(source))
                .filter_map(|row| Some((row, row.mac?)))
                .max_by_key(|(row, _)| (row.timestamp, row.uuid))
                .map(|(row, mac)| (mac, row.timestamp, Origin::Source))
        };
        let (mac, timestamp, origin) = pinned.or_else(learnt)?;
        let mut followers = Tally::default();
        for compared in compare_one(ip, &rows, members, &self.settings, &self.clock, now) {
            followers.count(compared.state);
        }
        Some(Neighbour {
            mac,
            timestamp,
            node: origin == Origin::Node || members.node_ips.contains(&ip),
            origin,
            followers,
        })
    }

    fn record(
        &self,
        bridge: &Arc<str>,
        ip: IpAddr,
        event: Event,
        before: Option<Neighbour>,
        after: Option<Neighbour>,
        at: i64,
    ) -> Option<Record> {
        let members = self.groups.get(bridge)?;
        let neighbour = after.or(before)?;
        let keeps = |port: &str| {
            let mut rows = self.rows.get(&ip).into_iter().flat_map(BTreeMap::values);
            rows.any(|row| &*row.port == port)
        };
        let keeping = || {
            members
                .followers
                .iter()
                .filter(|it| keeps(&it.port))
                .count()
        };
        Some(Record::Neighbour(NeighbourRecord {
            time: record::rfc3339(at),
            bridge: Arc::clone(bridge),
            event,
            ip,
            mac: neighbour.mac,
            former_mac: before.map(|it| it.mac).filter(|mac| *mac != neighbour.mac),
            node: neighbour.node,
            origin: neighbour.origin,
            followers: Followers {
                total: members.followers.len(),
                rows: after.map(|it| it.followers).unwrap_or_default(),
                keeping: after.is_none().then(keeping),
            },
        }))
    }
}

/// What the difference is called; `None` where there is nothing to tell.
fn event(before: Option<Neighbour>, after: Option<Neighbour>) -> Option<Event> {
    match (before, after) {
        (None, None) => None,
        (None, Some(after)) => Some(known_by(after)),
        (Some(_), None) => Some(Event::Gone),
        (Some(before), Some(after)) if before.origin != after.origin => Some(known_by(after)),
        (Some(before), Some(after)) if before.mac != after.mac => Some(Event::Moved),
        (Some(before), Some(after)) if before.followers == after.followers => None,
        (Some(before), Some(after)) if before.timestamp != after.timestamp => {
            Some(Event::Refreshed)
        }
        (Some(_), Some(_)) => Some(Event::Followers),
    }
}

const fn known_by(neighbour: Neighbour) -> Event {
    match neighbour.origin {
        Origin::Source => Event::Learnt,
        Origin::Node => Event::Pinned,
    }
}
