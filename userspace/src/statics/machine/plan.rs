//! What is written next.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::StaticBindings;
use crate::{
    mirror::Millis,
    statics::{
        Batch, BatchId, Guard, RowOperation, RowWrite,
        decide::{Rule, Told, decide, rule},
        ports::{Port, PortId},
        table::Known,
        work::Key,
    },
};

/// A transaction that is being put together.
struct Draft {
    limit: usize,
    now: Millis,
    operations: Vec<(Key, RowOperation)>,
    /// What it is about already.
    keys: BTreeSet<Key>,
    guards: BTreeMap<PortId, Guard>,
}

impl Draft {
    fn is_full(&self) -> bool {
        self.operations.len() >= self.limit
    }
}

impl StaticBindings {
    /// The next transaction, if there is anything to write and the server has room for it.
    pub fn take_batch(&mut self, now: Millis) -> Option<Batch> {
        if !self.synced || !self.targets_known {
            return None;
        }
        let urgent = self.take_urgent_batch(now);
        if urgent.is_some() || now < self.pause_until || self.in_flight.has(false) {
            return urgent;
        }
        while let Some(half) = self.halves.pop_front() {
            let mut draft = self.draft(now, usize::MAX);
            for key in half {
                self.draft_key(key, &mut draft);
            }
            if let Some(batch) = self.send(draft, false) {
                return Some(batch);
            }
        }
        let mut draft = self.draft(now, self.settings.chunk_rows.max(1));
        self.draft_ready(&mut draft);
        self.send(draft, false)
    }

    /// The next transaction that does not wait for anything: deletions of rows whose port leaves or is
    /// gone.
    pub fn take_urgent_batch(&mut self, now: Millis) -> Option<Batch> {
        if !self.synced || !self.targets_known {
            return None;
        }
        self.advance(now);
        if now < self.pause_until || self.in_flight.has(true) {
            return None;
        }
        self.urgent_batch(now)
    }

    /// Does what time has brought.
    fn advance(&mut self, now: Millis) {
        let unseen = self.in_flight.expire(now);
        for key in unseen {
            self.counters.errors.unseen += 1;
            self.look_again(key);
        }
        let mut held = false;
        while let Some(key) = self.holds.pop(now) {
            held = true;
            self.look_again(key);
        }
        if held {
            self.holds.purge(now);
        }
        let over = |port: &Port| port.barred_until.is_some_and(|until| until <= now);
        let free = self.ports.iter().filter(|(_, port)| over(port));
        let free: Vec<PortId> = free.map(|(id, _)| id).collect();
        for id in free {
            if let Some(port) = self.ports.get_mut(id) {
                port.barred_until = None;
                self.ready.ports.insert(id);
            }
        }
        if self.window_end().is_some_and(|end| end <= now) {
            self.window = None;
            self.ready.append(&mut self.changed);
            self.counters.windows += 1;
        }
    }

    fn draft(&self, now: Millis, limit: usize) -> Draft {
        Draft {
            limit,
            now,
            operations: Vec::new(),
            keys: BTreeSet::new(),
            guards: BTreeMap::new(),
        }
    }

    fn urgent_batch(&mut self, now: Millis) -> Option<Batch> {
        let mut draft = self.draft(now, self.settings.chunk_rows.max(1));
        while let Some(port) = self.urgent.first().copied() {
            self.draft_port(port, &mut draft);
            if draft.is_full() {
                break;
            }
            // What is still busy is looked at again once it is not.
            self.urgent.remove(&port);
        }
        self.send(draft, true)
    }

    fn draft_ready(&mut self, draft: &mut Draft) {
        while !draft.is_full() {
            if let Some(ip) = self.ready.ips.first().copied() {
                self.draft_ip(ip, draft);
                if !draft.is_full() {
                    self.ready.ips.remove(&ip);
                }
            } else if let Some(port) = self.ready.ports.first().copied() {
                self.draft_port(port, draft);
                if !draft.is_full() {
                    self.ready.ports.remove(&port);
                }
            } else if let Some(key) = self.ready.keys.pop_first() {
                self.draft_key(key, draft);
            } else {
                return;
            }
        }
    }

    /// Looks at the rows of all ports for an address.
    fn draft_ip(&self, ip: IpAddr, draft: &mut Draft) {
        if !self.is_ours(ip) {
            return;
        }
        let told: Vec<Told> = self
            .ports
            .bridges()
            .iter()
            .map(|it| self.told(it, ip))
            .collect();
        let mut rows = self.table.rows_for(ip).peekable();
        for (id, port) in self.ports.iter() {
            let here = rows.clone();
            let mut count = 0;
            while rows.peek().is_some_and(|(other, _)| *other <= id) {
                rows.next();
                count += 1;
            }
            let Some(role) = &port.role else {
                continue;
            };
            let bridge = role.bridge.and_then(|bridge| told.get(bridge.0));
            let told = bridge.copied().unwrap_or(Told::Unknown);
            let rule = rule(role.treatment, self.mode, told, self.wanted.is_some());
            let key = Key { port: id, ip };
            let here = here.take(count).filter(|(other, _)| *other == id);
            self.draft_row(key, port, rule, here.map(|(_, row)| row), draft);
            if draft.is_full() {
                return;
            }
        }
    }

    /// Looks at a port's rows for all addresses.
    fn draft_port(&self, id: PortId, draft: &mut Draft) {
        let Some(port) = self.ports.get(id) else {
            return;
        };
        let bridge = port.role.as_ref().and_then(|role| role.bridge);
        let bridge = bridge.and_then(|bridge| self.ports.bridges().get(bridge.0));
        let wanted = self.wanted.as_ref().zip(bridge);
        let wanted = wanted.and_then(|(wanted, bridge)| wanted.get(bridge));
        let wanted = wanted.into_iter().flat_map(|it| it.bindings.keys());
        for ip in wanted.copied().chain(self.table.ips()) {
            if draft.is_full() {
                return;
            }
            self.draft_key(Key { port: id, ip }, draft);
        }
    }

    /// Looks at a port's rows for an address.
    fn draft_key(&self, key: Key, draft: &mut Draft) {
        if let Some((port, rule)) = self.rule_for(key) {
            let rows = self.table.rows_at(key.port, key.ip);
            self.draft_row(key, port, rule, rows, draft);
        }
    }

    /// Whether there is anything to write.
    pub(super) fn has_need(&self, key: Key) -> bool {
        let Some((_, rule)) = self.rule_for(key) else {
            return false;
        };
        let mut needs = false;
        decide(rule, self.table.rows_at(key.port, key.ip), |_, _| {
            needs = true
        });
        needs
    }

    fn rule_for(&self, key: Key) -> Option<(&Port, Rule)> {
        let port = self.ports.get(key.port)?;
        let role = port.role.as_ref()?;
        if !self.is_ours(key.ip) {
            return None;
        }
        let bridge = role.bridge.and_then(|it| self.ports.bridges().get(it.0));
        let told = bridge.map_or(Told::Unknown, |bridge| self.told(bridge, key.ip));
        Some((
            port,
            rule(role.treatment, self.mode, told, self.wanted.is_some()),
        ))
    }

    fn told(&self, bridge: &Arc<str>, ip: IpAddr) -> Told {
        Told::of(self.wanted.as_ref().and_then(|it| it.get(bridge)), ip)
    }

    fn draft_row(
        &self,
        key: Key,
        port: &Port,
        rule: Rule,
        rows: impl Iterator<Item = Known> + Clone,
        draft: &mut Draft,
    ) {
        let mut writes = Vec::new();
        decide(rule, rows, |write, reason| writes.push((write, reason)));
        if writes.is_empty()
            || self.in_flight.is_busy(key)
            || self.holds.is_held(key, draft.now)
            || !draft.keys.insert(key)
        {
            return;
        }
        for (write, reason) in writes {
            if let RowWrite::Insert { .. } = write {
                let port_row = port.role.as_ref().and_then(|role| role.port_row);
                let barred = port.barred_until.is_some_and(|until| draft.now < until);
                let (Some(port_row), false) = (port_row, barred) else {
                    continue;
                };
                draft.guards.entry(key.port).or_insert_with(|| Guard {
                    port_row,
                    port: Arc::clone(&port.name),
                });
            }
            let operation = RowOperation {
                port: Arc::clone(&port.name),
                ip: key.ip,
                write,
                reason,
            };
            draft.operations.push((key, operation));
        }
    }

    fn send(&mut self, draft: Draft, urgent: bool) -> Option<Batch> {
        if draft.operations.is_empty() {
            return None;
        }
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        let operations = draft.operations.iter();
        let batch = Batch {
            id,
            guards: draft.guards.values().cloned().collect(),
            operations: operations.map(|(_, operation)| operation.clone()).collect(),
        };
        let guards = draft.guards.into_keys().collect();
        self.in_flight.send(id, urgent, guards, draft.operations);
        Some(batch)
    }
}
