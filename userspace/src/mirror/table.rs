//! The rows that the mirror knows, by neighbour.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use super::group::{Place, Slot};
use crate::{ids::Mac, ovsdb::Uuid};

/// What is kept of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredRow {
    pub(super) uuid: Uuid,
    /// ms since the epoch, 0 where there is none.
    pub(super) timestamp: i64,
    /// `None` where the row holds none that can be read.
    pub(super) mac: Option<Mac>,
    /// Whether the row belongs to another datapath than the member with this port.
    pub(super) elsewhere: bool,
}

/// A row of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceRow {
    pub(super) row: StoredRow,
    /// The address as the source spells it.
    pub(super) text: Arc<str>,
}

/// What followers should know about a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) mac: Mac,
    pub(super) timestamp: i64,
    /// The address as the source spells it; `None` for the canonical text.
    pub(super) text: Option<Arc<str>>,
}

impl Truth {
    /// How the address is to be written.
    pub(super) fn spell(&self, ip: IpAddr) -> Arc<str> {
        match &self.text {
            Some(text) => Arc::clone(text),
            None => ip.to_string().into(),
        }
    }
}

/// All rows about one neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    /// One, but for a table that spells the same address in two ways.
    sources: Vec<SourceRow>,
    followers: BTreeMap<Slot, StoredRow>,
}

impl Binding {
    /// What the source says: its newest row that says anything.
    pub(super) fn truth(&self) -> Option<Truth> {
        self.sources
            .iter()
            .filter(|source| !source.row.elsewhere)
            .filter_map(|source| Some((source, source.row.mac?)))
            .max_by_key(|(source, _)| (source.row.timestamp, source.row.uuid))
            .map(|(source, mac)| Truth {
                mac,
                timestamp: source.row.timestamp,
                text: Some(Arc::clone(&source.text)),
            })
    }

    fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.followers.is_empty()
    }
}

/// All rows of the group's members.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    bindings: BTreeMap<IpAddr, Binding>,
    /// A tree, since a hash table doubles when rows come and go for long enough.
    index: BTreeMap<Uuid, (IpAddr, Place)>,
    /// Further rows of a follower about a neighbour of which it has one already, spelt differently.
    doubles: BTreeMap<(IpAddr, Slot), Vec<StoredRow>>,
}

impl Table {
    pub(super) fn truth(&self, ip: IpAddr) -> Option<Truth> {
        self.bindings.get(&ip)?.truth()
    }

    /// Where a row is kept.
    pub(super) fn find(&self, uuid: Uuid) -> Option<(IpAddr, Place)> {
        self.index.get(&uuid).copied()
    }

    /// The follower's row about a neighbour that needs most: of two, one with a wrong MAC or else the
    /// older one.
    pub(super) fn follower_row(&self, ip: IpAddr, slot: Slot, mac: Mac) -> Option<StoredRow> {
        let first = self.bindings.get(&ip)?.followers.get(&slot)?;
        if self.doubles.is_empty() {
            return Some(*first);
        }
        self.doubles
            .get(&(ip, slot))
            .into_iter()
            .flatten()
            .chain(std::iter::once(first))
            .min_by_key(|row| (row.mac == Some(mac), row.timestamp, row.uuid))
            .copied()
    }

    /// Whether a follower has a row about a neighbour.
    pub(super) fn has_row(&self, ip: IpAddr, slot: Slot) -> bool {
        self.bindings
            .get(&ip)
            .is_some_and(|binding| binding.followers.contains_key(&slot))
    }

    /// Whether a follower's rows about a neighbour all say this MAC, and are its own.
    pub(super) fn is_right(&self, ip: IpAddr, slot: Slot, mac: Mac) -> bool {
        let row = self.follower_row(ip, slot, mac);
        row.is_some_and(|row| row.mac == Some(mac) && !row.elsewhere)
    }

    /// How many followers' rows about a neighbour say this MAC.
    pub(super) fn right(&self, ip: IpAddr, mac: Mac) -> usize {
        let Some(binding) = self.bindings.get(&ip) else {
            return 0;
        };
        let right = binding.followers.iter().filter(|(slot, row)| {
            if self.doubles.is_empty() {
                row.mac == Some(mac) && !row.elsewhere
            } else {
                self.is_right(ip, **slot, mac)
            }
        });
        right.count()
    }

    /// The neighbours about which anything is known.
    pub(super) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.bindings.keys().copied()
    }

    /// The number of the source's bindings.
    pub(super) fn source_bindings(&self) -> usize {
        self.bindings
            .values()
            .filter(|binding| binding.truth().is_some())
            .count()
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.index.len()
    }

    /// Puts a source row in, or renews it.
    pub(super) fn put_source(&mut self, ip: IpAddr, row: StoredRow, text: Arc<str>) {
        self.forget_elsewhere(row.uuid, ip, Place::Source);
        let sources = &mut self.bindings.entry(ip).or_default().sources;
        match sources.iter_mut().find(|known| known.row.uuid == row.uuid) {
            Some(known) => *known = SourceRow { row, text },
            None => sources.push(SourceRow { row, text }),
        }
        self.index.insert(row.uuid, (ip, Place::Source));
    }

    /// Puts a follower's row in, or renews it.
    pub(super) fn put_follower(&mut self, ip: IpAddr, slot: Slot, row: StoredRow) {
        self.forget_elsewhere(row.uuid, ip, Place::Follower(slot));
        self.index.insert(row.uuid, (ip, Place::Follower(slot)));
        let followers = &mut self.bindings.entry(ip).or_default().followers;
        match followers.get_mut(&slot) {
            Some(known) if known.uuid != row.uuid => {
                let doubles = self.doubles.entry((ip, slot)).or_default();
                match doubles.iter_mut().find(|double| double.uuid == row.uuid) {
                    Some(double) => *double = row,
                    None => doubles.push(row),
                }
            }
            Some(known) => *known = row,
            None => {
                followers.insert(slot, row);
            }
        }
    }

    /// A row may change its address or port: it is then no longer where it was.
    fn forget_elsewhere(&mut self, uuid: Uuid, ip: IpAddr, place: Place) {
        if self.find(uuid).is_some_and(|known| known != (ip, place)) {
            self.remove(uuid);
        }
    }

    /// Takes a row out; where it was.
    pub(super) fn remove(&mut self, uuid: Uuid) -> Option<(IpAddr, Place)> {
        let (ip, place) = self.index.remove(&uuid)?;
        let binding = self.bindings.get_mut(&ip)?;
        match place {
            Place::Source => binding.sources.retain(|source| source.row.uuid != uuid),
            Place::Follower(slot) => {
                let first = binding
                    .followers
                    .get(&slot)
                    .is_some_and(|row| row.uuid == uuid);
                let next = match self.doubles.get_mut(&(ip, slot)) {
                    Some(doubles) if first => doubles.pop(),
                    Some(doubles) => {
                        doubles.retain(|row| row.uuid != uuid);
                        None
                    }
                    None => None,
                };
                match next {
                    Some(row) => {
                        binding.followers.insert(slot, row);
                    }
                    None if first => {
                        binding.followers.remove(&slot);
                    }
                    None => {}
                }
                if self
                    .doubles
                    .get(&(ip, slot))
                    .is_some_and(|doubles| doubles.is_empty())
                {
                    self.doubles.remove(&(ip, slot));
                }
            }
        }
        if binding.is_empty() {
            self.bindings.remove(&ip);
        }
        Some((ip, place))
    }

    /// Takes all rows of a member out.
    pub(super) fn drop_place(&mut self, place: Place) {
        let mut rows: Vec<Uuid> = Vec::new();
        for (ip, binding) in &self.bindings {
            match place {
                Place::Source => rows.extend(binding.sources.iter().map(|source| source.row.uuid)),
                Place::Follower(slot) => {
                    rows.extend(binding.followers.get(&slot).map(|row| row.uuid));
                    let doubles = self.doubles.get(&(*ip, slot));
                    rows.extend(doubles.into_iter().flatten().map(|row| row.uuid));
                }
            }
        }
        for uuid in rows {
            self.remove(uuid);
        }
    }
}
