//! The nodes' bindings that the mirror keeps by itself, and how far it has come with them.

use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

use super::{Mirror, evaluate::Cause};
use crate::{
    ids::Mac,
    mirror::{
        clock::Now,
        group::{NodeChange, Place, Slot},
        queue::{Key, Lane},
        table::{StoredRow, Table},
    },
    ovsdb::Uuid,
};

/// So many rows are looked at before other events get their turn: some ms.
const ROWS_AT_ONCE: usize = 16_384;

/// What is pinned.
#[derive(Clone, Debug, Default)]
pub(super) struct Pins {
    macs: Arc<BTreeMap<IpAddr, Mac>>,
    /// How many of the followers' rows for them are right.
    right: usize,
    /// By which clocks their rows were judged, at the lowest since they were all looked at: the one
    /// that rows are stamped with and the one that their ages are judged by, as offsets from the
    /// monotonic one.
    clocks: Option<[i64; 2]>,
}

impl Pins {
    pub(super) fn len(&self) -> usize {
        self.macs.len()
    }

    pub(super) fn mac(&self, ip: IpAddr) -> Option<Mac> {
        self.macs.get(&ip).copied()
    }

    /// Whether a follower's row is a node's, and right.
    fn is_right(&self, table: &Table, ip: IpAddr, slot: Slot) -> bool {
        self.mac(ip)
            .is_some_and(|mac| table.is_right(ip, slot, mac))
    }

    /// Counts a row that was right or is, or both.
    fn count(&mut self, before: bool, after: bool) {
        let right = self.right.saturating_add(usize::from(after));
        self.right = right.saturating_sub(usize::from(before));
    }
}

/// Neighbours whose rows are still to be looked at, and why: thousands of them with hundreds of rows
/// each would take long, and fill the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    order: VecDeque<IpAddr>,
    causes: BTreeMap<IpAddr, Cause>,
}

impl Agenda {
    pub(super) fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }

    /// Where a neighbour is noted already, the first cause counts.
    pub(super) fn push(&mut self, ip: IpAddr, cause: Cause) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.causes.entry(ip) {
            entry.insert(cause);
            self.order.push_back(ip);
        }
    }

    /// Before all others, and whatever it was noted for.
    fn push_first(&mut self, ip: IpAddr, cause: Cause) {
        if self.causes.insert(ip, cause) != Some(cause) {
            self.order.push_front(ip);
        }
    }

    /// Whether what comes next is urgent.
    fn is_urgent(&self) -> bool {
        let next = self.order.front().and_then(|ip| self.causes.get(ip));
        next == Some(&Cause::MacChange)
    }

    fn pop(&mut self) -> Option<(IpAddr, Cause)> {
        while let Some(ip) = self.order.pop_front() {
            if let Some(cause) = self.causes.remove(&ip) {
                return Some((ip, cause));
            }
        }
        None
    }
}

impl Mirror {
    /// How many of the followers' rows for pinned bindings are missing, have another MAC or belong to
    /// a former router with the same port; all of them before any are known. Costs nothing.
    #[must_use]
    pub fn pinned_missing(&self) -> usize {
        let wanted = self.group.followers.len().saturating_mul(self.pins.len());
        wanted.saturating_sub(self.pins.right)
    }

    /// The neighbours of which followers should know something, those that are pinned last.
    pub(super) fn neighbours(&self) -> Vec<IpAddr> {
        let learnt = self.table.ips().filter(|ip| self.pins.mac(*ip).is_none());
        learnt.chain(self.pins.macs.keys().copied()).collect()
    }

    /// Whether followers should know something of a neighbour.
    pub(super) fn is_known(&self, ip: IpAddr) -> bool {
        self.pins.mac(ip).is_some() || self.table.truth(ip).is_some()
    }

    /// How a neighbour's address is spelt in new rows.
    pub(super) fn spelling(&self, ip: IpAddr) -> Option<Arc<str>> {
        if self.pins.mac(ip).is_some() {
            return Some(ip.to_string().into());
        }
        Some(self.table.truth(ip)?.spell(ip))
    }

    /// Learns from a row's timestamp what the server's clock reads. Where that is later than was
    /// thought, nodes' rows may be due before the instants that they wait for.
    pub(super) fn observe(&mut self, timestamp: i64, live: bool, now: Now) {
        self.clock.observe(timestamp, live, now);
        if self.pins.len() == 0 {
            return;
        }
        let at = i64::try_from(now.at.0).unwrap_or(i64::MAX);
        let clocks =
            [self.clock.fresh(now), self.clock.latest(now)].map(|it| it.saturating_sub(at));
        let [fresh, latest] = self.pins.clocks.unwrap_or(clocks);
        let [fresh_now, latest_now] = clocks;
        let rise = fresh_now
            .saturating_sub(fresh)
            .max(latest_now.saturating_sub(latest));
        if rise > i64::try_from(self.settings.clock_tolerance_ms).unwrap_or(i64::MAX) {
            self.pins.clocks = Some(clocks);
            for ip in self.pins.macs.keys() {
                self.agenda.push(*ip, Cause::Settle);
            }
        } else {
            self.pins.clocks = Some([fresh.min(fresh_now), latest.min(latest_now)]);
        }
    }

    /// Puts a follower's row into the table.
    pub(super) fn put_follower(&mut self, ip: IpAddr, slot: Slot, row: StoredRow) {
        let before = self.pins.is_right(&self.table, ip, slot);
        self.table.put_follower(ip, slot, row);
        let after = self.pins.is_right(&self.table, ip, slot);
        self.pins.count(before, after);
    }

    /// Takes a row out of the table.
    pub(super) fn take_out(&mut self, uuid: Uuid) {
        match self.table.find(uuid) {
            Some((ip, Place::Follower(slot))) => {
                let before = self.pins.is_right(&self.table, ip, slot);
                self.table.remove(uuid);
                let after = self.pins.is_right(&self.table, ip, slot);
                self.pins.count(before, after);
            }
            Some((_, Place::Source)) => {
                self.table.remove(uuid);
            }
            None => {}
        }
    }

    /// Takes all rows of a member out of the table.
    pub(super) fn drop_place(&mut self, place: Place) {
        if let Place::Follower(slot) = place {
            let right = (self.pins.macs.iter())
                .filter(|(ip, mac)| self.table.is_right(**ip, slot, **mac))
                .count();
            self.pins.right = self.pins.right.saturating_sub(right);
        }
        self.table.drop_place(place);
    }

    /// Takes what is pinned from now on, and counts the rows again of what is different.
    pub(super) fn repin(&mut self, changes: &[(IpAddr, NodeChange)]) {
        let macs = Arc::clone(&self.group.members.pinned);
        let former = std::mem::replace(&mut self.pins.macs, macs);
        for (ip, _) in changes {
            let right = |mac: Option<&Mac>| mac.map_or(0, |mac| self.table.right(*ip, *mac));
            let (before, after) = (right(former.get(ip)), right(self.pins.macs.get(ip)));
            let sum = self.pins.right.saturating_add(after);
            self.pins.right = sum.saturating_sub(before);
        }
    }

    /// Nodes' addresses are treated otherwise than before.
    pub(super) fn nodes_changed(&mut self, changes: &[(IpAddr, NodeChange)], now: Now) {
        let mut looked = 0;
        for (ip, change) in changes {
            // Whatever held its rows back was about something else.
            self.holds.release(*ip);
            match change {
                NodeChange::Pinned => self.agenda.push(*ip, Cause::Backfill),
                NodeChange::Moved if looked >= ROWS_AT_ONCE => {
                    self.agenda.push_first(*ip, Cause::MacChange);
                }
                NodeChange::Moved => {
                    looked += self.group.followers.len();
                    self.evaluate(*ip, Cause::MacChange, now);
                }
                NodeChange::Released => self.evaluate(*ip, Cause::Settle, now),
            }
        }
    }

    /// Looks at all rows of some followers.
    pub(super) fn evaluate_followers(&mut self, slots: &[Slot], cause: Cause, now: Now) {
        let many = slots.len().saturating_mul(self.pins.len()) > ROWS_AT_ONCE;
        for ip in self.neighbours() {
            if many && self.pins.mac(ip).is_some() {
                self.agenda.push(ip, cause);
                continue;
            }
            for slot in slots {
                self.evaluate_one(Key { ip, slot: *slot }, cause, now);
            }
        }
    }

    /// Whether there is something on the agenda, and room in the queue.
    pub(super) fn has_room_for_more(&self) -> bool {
        let lanes: &[Lane] = if self.agenda.is_urgent() {
            &[Lane::Urgent]
        } else {
            &[Lane::Backfill, Lane::Repair]
        };
        let waiting: usize = lanes.iter().map(|lane| self.queue.len(*lane)).sum();
        let room = self.settings.limits.most_rows.saturating_mul(4);
        self.synced && !self.agenda.is_empty() && waiting < room.max(1)
    }

    /// Looks at some of what is on the agenda.
    pub(super) fn work_off_agenda(&mut self, now: Now) {
        let mut looked = 0;
        while looked < ROWS_AT_ONCE
            && self.has_room_for_more()
            && let Some((ip, cause)) = self.agenda.pop()
        {
            looked += self.group.followers.len().max(1);
            self.evaluate(ip, cause, now);
        }
    }
}
