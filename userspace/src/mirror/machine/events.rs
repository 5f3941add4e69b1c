//! What happens to the mirror: rows, compositions, connections.

use std::{net::IpAddr, sync::Arc};

use super::{Mirror, evaluate::Cause};
use crate::{
    mirror::{
        batch::{BatchId, Reason},
        clock::Now,
        group::{GroupMembers, Place},
        queue::{Key, Lane},
        rows::{BindingRow, RowSkip},
        table::{StoredRow, Truth},
    },
    ovsdb::{Row, Uuid},
};

/// Where a row went, and what the source said about its neighbour before.
struct Stored {
    place: Place,
    before: Option<Truth>,
}

impl Mirror {
    /// Takes a new composition of the group.
    ///
    /// `known` are the rows of the new members' ports as the driver's cache has them, so that nothing
    /// is written that is there already: call this once the monitor covers the ports. It is only read
    /// where ports are new or change their role.
    pub fn set_group(
        &mut self,
        members: GroupMembers,
        known: impl IntoIterator<Item = BindingRow>,
        now: Now,
    ) {
        let Some(change) = self.group.replace(members) else {
            return;
        };
        for place in &change.dropped {
            self.drop_place(*place);
            if let Place::Follower(slot) = place {
                self.holds.forget(*slot);
                self.progress.forget(*slot);
            }
        }
        self.repin(&change.nodes);
        if !change.unknown.is_empty() {
            for row in known {
                if change.unknown.contains(&row.port) {
                    self.store(&row, false, now);
                }
            }
        }
        if !self.ever_synced {
            return;
        }
        self.evaluate_followers(&change.added, Cause::Backfill, now);
        if change.source {
            for ip in self.neighbours() {
                if self.pins.mac(ip).is_none() {
                    self.evaluate(ip, Cause::Settle, now);
                }
            }
        }
        self.evaluate_followers(&change.aged, Cause::Settle, now);
        self.nodes_changed(&change.nodes, now);
    }

    /// A row of `MAC_Binding` is new or has changed. A row that cannot be read is counted and, if it
    /// was known before, forgotten.
    pub fn upsert_row(&mut self, uuid: Uuid, row: &Row, now: Now) {
        match BindingRow::parse(uuid, row) {
            Ok(row) => self.upsert(&row, now),
            Err(skip) => {
                self.counters.bad_rows.count(skip);
                self.remove(uuid, now);
            }
        }
    }

    /// A row of `MAC_Binding` is new or has changed.
    pub fn upsert(&mut self, row: &BindingRow, now: Now) {
        let Some(stored) = self.store(row, self.synced, now) else {
            return;
        };
        match stored.place {
            Place::Source => self.source_changed(row.ip, stored.before, now),
            Place::Follower(slot) if self.ever_synced => {
                let key = Key { ip: row.ip, slot };
                if !self.writing.contains(&key) {
                    self.evaluate_one(key, Cause::Settle, now);
                }
            }
            Place::Follower(_) => {}
        }
    }

    /// A row of `MAC_Binding` is gone.
    pub fn remove(&mut self, uuid: Uuid, now: Now) {
        let Some((ip, place)) = self.table.find(uuid) else {
            return;
        };
        let before = self.table.truth(ip);
        self.take_out(uuid);
        match place {
            // Followers keep their rows: those have traffic and timestamps of their own.
            Place::Source => self.source_changed(ip, before, now),
            Place::Follower(slot) => self.follower_row_gone(Key { ip, slot }, now),
        }
    }

    /// Everything that the server holds has been told: planning starts, or goes on.
    pub fn synced(&mut self, now: Now) {
        if self.synced {
            return;
        }
        let first = !self.ever_synced;
        self.synced = true;
        self.ever_synced = true;
        self.compare_at = now.at.after(self.settings.compare_ms);
        self.pause_until = now.at;
        self.refusals = 0;
        let ips = self.neighbours();
        let step = self.settings.spread_ms / u64::try_from(ips.len().max(1)).unwrap_or(u64::MAX);
        let mut at = now.at;
        for ip in ips {
            at = at.after(step);
            let cause = if first {
                Cause::Start(at)
            } else {
                Cause::Resume(at)
            };
            if self.pins.mac(ip).is_some() {
                self.agenda.push(ip, cause);
            } else {
                self.evaluate(ip, cause, now);
            }
        }
    }

    /// The connection is lost. What is known stays; transactions under way have an unknown outcome,
    /// which the next snapshot will tell.
    pub fn disconnected(&mut self) {
        self.synced = false;
        self.burst = false;
        let lost: Vec<BatchId> = self.in_flight.keys().copied().collect();
        for id in lost {
            self.counters.errors.unknown_outcome += 1;
            self.give_back(id);
        }
        for half in std::mem::take(&mut self.halves) {
            self.requeue(half);
        }
    }

    /// Puts a row of a member into the table.
    fn store(&mut self, row: &BindingRow, live: bool, now: Now) -> Option<Stored> {
        let place = self.group.place(&row.port);
        let Some(place) = place else {
            self.counters.bad_rows.other_port += 1;
            // It may have been a member's before its port was changed.
            self.remove(row.uuid, now);
            return None;
        };
        let member = self.group.member(place)?;
        let stored = StoredRow {
            uuid: row.uuid,
            timestamp: row.timestamp,
            mac: row.mac,
            elsewhere: row.is_elsewhere(member),
        };
        let before = self.table.truth(row.ip);
        // A row may change its address or port: it is then no longer where it was.
        let known = self.table.find(row.uuid);
        if known.is_some_and(|known| known != (row.ip, place)) {
            self.take_out(row.uuid);
        }
        match place {
            Place::Source => {
                if row.mac.is_none() {
                    self.counters.bad_rows.count(RowSkip::BadMac);
                }
                self.observe(row.timestamp, live, now);
                let text = Arc::clone(&row.ip_text);
                self.table.put_source(row.ip, stored, text);
            }
            Place::Follower(slot) => {
                self.observe(row.timestamp, false, now);
                self.put_follower(row.ip, slot, stored);
                self.holds.there(Key { ip: row.ip, slot });
            }
        }
        Some(Stored { place, before })
    }

    /// What the source says about a neighbour may have changed.
    fn source_changed(&mut self, ip: IpAddr, before: Option<Truth>, now: Now) {
        if !self.ever_synced || self.pins.mac(ip).is_some() {
            return;
        }
        let Some(truth) = self.table.truth(ip) else {
            self.wakes.cancel(ip);
            // Nothing is put back now; and a neighbour that ages everywhere takes all its rows along.
            self.holds.release(ip);
            return;
        };
        let cause = match before {
            Some(before) if before == truth => return,
            Some(before) if before.mac == truth.mac => {
                self.holds.release(ip);
                self.wakes
                    .no_later(ip, now.at.after(self.settings.coalesce_ms));
                return;
            }
            Some(_) => Cause::MacChange,
            None => Cause::NewBinding,
        };
        self.holds.release(ip);
        self.evaluate(ip, cause, now);
    }

    /// A follower's row has vanished: it is put back, unless its source's row has gone as well by then
    /// or its node is not pinned any more.
    pub(super) fn follower_row_gone(&mut self, key: Key, now: Now) {
        let Some(follower) = self.group.followers.get(&key.slot) else {
            return;
        };
        if !self.ever_synced || !self.is_known(key.ip) {
            return;
        }
        let age = follower.member.age_ms(key.ip);
        let cooldown = self.settings.cooldown(age);
        let pauses = &self.settings.pauses;
        let until = self.holds.lost(key, cooldown, pauses, now.at);
        self.wakes.no_later(key.ip, until);
    }

    /// Whether a row waits or is being written.
    pub(super) fn is_due(&self, key: Key) -> bool {
        self.queue.contains(key) || self.writing.contains(&key) || self.parked.contains_key(&key)
    }

    /// The lane of a row that goes back into the queue.
    pub(super) fn lane(&self, key: Key, reason: Reason) -> Lane {
        if self.holds.is_failing(key) {
            Lane::Suspect
        } else {
            Lane::of(reason)
        }
    }
}
