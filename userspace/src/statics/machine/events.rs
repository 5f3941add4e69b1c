//! What happens: targets, node IPs, rows, connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::{Mode, StaticBindings, Window};
use crate::{
    mirror::Millis,
    ovsdb::Uuid,
    statics::{
        StaticRow, Target, Treatment, WantedBindings,
        in_flight::News,
        ports::{Port, PortId},
        table::Known,
        wanted::BridgeBindings,
        work::Key,
    },
};

impl StaticBindings {
    /// Takes the ports that matter. The rows of those that are new have to be told already, or they
    /// would be inserted again.
    pub fn set_targets(&mut self, targets: &[Target], now: Millis) {
        self.targets_known = true;
        let mut former: BTreeSet<PortId> = self
            .ports
            .iter()
            .filter(|(_, port)| port.role.is_some())
            .map(|(id, _)| id)
            .collect();
        for target in targets {
            let id = self.ports.intern(&target.port);
            former.remove(&id);
            let role = Some(self.ports.role(target));
            let Some(port) = self.ports.get_mut(id) else {
                continue;
            };
            if port.role == role {
                continue;
            }
            port.role = role;
            port.barred = 0;
            port.barred_until = None;
            self.port_changed(id, now);
        }
        for id in former {
            if let Some(port) = self.ports.get_mut(id) {
                port.role = None;
            }
            self.urgent.remove(&id);
            self.ports.tidy(id);
        }
    }

    /// Takes what followers need; `None` where the nodes are not known, so that nothing is changed but
    /// for ports that leave or are gone.
    pub fn set_wanted(&mut self, wanted: Option<&WantedBindings>, now: Millis) {
        let Some(wanted) = wanted else {
            self.wanted = None;
            return;
        };
        let changed = match &self.wanted {
            None => None,
            Some(former) => differing(former, &wanted.bridges),
        };
        if changed.as_ref().is_some_and(BTreeSet::is_empty) {
            return;
        }
        self.wanted = Some(wanted.bridges.clone());
        if self.synced {
            let mut changed = changed.unwrap_or_else(|| self.all_ips());
            self.changed.ips.append(&mut changed);
            self.touch(now);
        }
    }

    /// Says what is to become of static bindings. What is withdrawn goes without being gathered.
    pub fn set_mode(&mut self, mode: Mode, now: Millis) {
        if self.mode == mode {
            return;
        }
        self.mode = mode;
        if !self.synced {
            return;
        }
        let mut ips = self.all_ips();
        if mode == Mode::Withdraw {
            self.changed.clear();
            self.window = None;
            self.ready.ips.append(&mut ips);
        } else {
            self.changed.ips.append(&mut ips);
            self.touch(now);
        }
    }

    /// A row of `Static_MAC_Binding` is new or has changed.
    pub fn upsert(&mut self, row: &StaticRow, now: Millis) {
        let port = self.ports.intern(&row.port);
        let Some(ip) = row.ip else {
            self.remove(row.uuid, now);
            // The port may just have lost its last row.
            let port = self.ports.intern(&row.port);
            self.unreadable.insert(row.uuid, port);
            self.count(port, false);
            return;
        };
        let known = Known {
            uuid: row.uuid,
            mac: row.mac,
            overrides: row.override_dynamic_mac,
        };
        let known_before = self.table.len();
        let moved_from = self.table.put(port, ip, known);
        let key = Key { port, ip };
        if moved_from.is_some() || self.table.len() > known_before {
            self.count(port, self.is_ours(ip));
        }
        if let Some(former) = self.unreadable.remove(&row.uuid) {
            self.uncount(former, false);
        }
        self.holds.release(key);
        self.row_changed(key, now);
        if let Some((port, ip)) = moved_from {
            self.row_gone(port, ip, now);
        }
    }

    /// A row of `Static_MAC_Binding` is gone.
    pub fn remove(&mut self, uuid: Uuid, now: Millis) {
        if let Some((port, ip)) = self.table.remove(uuid) {
            self.row_gone(port, ip, now);
        } else if let Some(port) = self.unreadable.remove(&uuid) {
            self.uncount(port, false);
        }
    }

    /// Everything that the server holds has been told: planning starts, or goes on.
    pub fn synced(&mut self, now: Millis) {
        if self.synced {
            return;
        }
        self.synced = true;
        self.table.shrink();
        self.pause_until = now;
        self.refusals = 0;
        self.changed.ips = self.all_ips();
        self.touch(now);
        let ports = self.ports.iter().filter(|(_, port)| port.is_urgent());
        let urgent: Vec<PortId> = ports.map(|(id, _)| id).collect();
        for port in urgent {
            self.port_changed(port, now);
        }
    }

    /// The connection is lost. What is known stays; transactions under way have an unknown outcome,
    /// which the next snapshot will tell.
    pub fn disconnected(&mut self) {
        self.synced = false;
        let unknown = self.in_flight.clear();
        self.counters.errors.unknown_outcome += u64::try_from(unknown).unwrap_or(u64::MAX);
        self.window = None;
        self.changed.clear();
        self.ready.clear();
        self.urgent.clear();
        self.halves.clear();
    }

    pub(super) fn is_ours(&self, ip: IpAddr) -> bool {
        !self.settings.masquerade.contains(ip)
    }

    pub(super) fn is_urgent(&self, port: PortId) -> bool {
        self.ports.get(port).is_some_and(Port::is_urgent)
    }

    /// Opens the gathering window, or keeps it open.
    pub(super) fn touch(&mut self, now: Millis) {
        let first = self.window.map_or(now, |window| window.first);
        self.window = Some(Window { first, last: now });
    }

    /// Something about a port's rows for an address has changed, or its time has come.
    pub(super) fn row_changed(&mut self, key: Key, now: Millis) {
        if !self.synced {
            return;
        }
        match self.in_flight.told(key, &self.table) {
            News::Early => return,
            News::Ours => return self.after_write(key, now),
            News::Others if !self.has_need(key) => return,
            News::Others => {}
        }
        if self.is_urgent(key.port) {
            self.urgent.insert(key.port);
            return;
        }
        self.counters.contested += 1;
        if !self.holds.contested(key, self.settings.pauses(), now) {
            self.changed.keys.insert(key);
            self.touch(now);
        }
    }

    /// A row is to be looked at again, for a reason that nobody else has.
    pub(super) fn look_again(&mut self, key: Key) {
        if self.is_urgent(key.port) {
            self.urgent.insert(key.port);
            self.settle(key.port);
        } else {
            self.ready.keys.insert(key);
        }
    }

    /// A port has another role.
    fn port_changed(&mut self, id: PortId, now: Millis) {
        if !self.synced {
            return;
        }
        let urgent = self.is_urgent(id);
        if urgent {
            self.urgent.insert(id);
            self.settle(id);
        } else {
            self.urgent.remove(&id);
            self.changed.ports.insert(id);
            self.touch(now);
        }
    }

    /// A row has left a place.
    fn row_gone(&mut self, port: PortId, ip: IpAddr, now: Millis) {
        self.uncount(port, self.is_ours(ip));
        self.row_changed(Key { port, ip }, now);
        self.settle(port);
    }

    /// A port that is gone and that has no row of ours any more is none of our business: should it come
    /// back on another chassis, its rows are somebody else's.
    pub(super) fn settle(&mut self, id: PortId) {
        let done = self.synced
            && self
                .ports
                .get(id)
                .is_some_and(|port| port.ours == 0 && port.is_urgent())
            && !self.in_flight.is_port_busy(id);
        if done {
            self.urgent.remove(&id);
            if let Some(port) = self.ports.get_mut(id)
                && port.treatment() == Some(Treatment::Gone)
            {
                port.role = None;
            }
        }
        self.ports.tidy(id);
    }

    fn count(&mut self, port: PortId, ours: bool) {
        if let Some(port) = self.ports.get_mut(port) {
            port.rows += 1;
            port.ours += usize::from(ours);
        }
    }

    fn uncount(&mut self, id: PortId, ours: bool) {
        if let Some(port) = self.ports.get_mut(id) {
            port.rows = port.rows.saturating_sub(1);
            port.ours = port.ours.saturating_sub(usize::from(ours));
        }
        self.ports.tidy(id);
    }

    /// Every address that is wanted or has rows.
    fn all_ips(&self) -> BTreeSet<IpAddr> {
        let bridges = self.wanted.iter().flat_map(BTreeMap::values);
        let wanted = bridges.flat_map(|bridge| bridge.bindings.keys().copied());
        wanted.chain(self.table.ips()).collect()
    }
}

/// The addresses about which two say different things; `None` where that may be all.
fn differing(
    former: &BTreeMap<Arc<str>, BridgeBindings>,
    new: &BTreeMap<Arc<str>, BridgeBindings>,
) -> Option<BTreeSet<IpAddr>> {
    let mut changed = BTreeSet::new();
    if former.keys().ne(new.keys()) {
        return None;
    }
    for (former, new) in former.values().zip(new.values()) {
        if former.keep_unlisted != new.keep_unlisted {
            return None;
        }
        let (former, new) = (&former.bindings, &new.bindings);
        let other = |(ip, wanted): &(&IpAddr, _)| former.get(ip) != Some(*wanted);
        changed.extend(new.iter().filter(other).map(|(ip, _)| *ip));
        changed.extend(former.keys().filter(|ip| !new.contains_key(ip)).copied());
    }
    Some(changed)
}
