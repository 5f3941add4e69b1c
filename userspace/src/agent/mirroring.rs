//! Carries out what the mirrors want: one mirror a bridge, one southbound connection for all.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use tokio::task::JoinSet;

use super::{
    clock::Clock,
    covered::CoveredPorts,
    database_locks::{lock_changed, note_lock},
    databases::MAC_BINDING,
    transactions::{failure, missed, operation, read_again},
    unconfirmed::Unconfirmed,
};
use crate::{
    mirror::{Batch, BindingRow, GroupMembers, Mirror, Settings, Status},
    ovsdb::{
        Change, Client, Lock, LockState, Operation, OperationResult, Row, TransactError, Uuid,
    },
};

/// What became of a transaction.
type Finished = (Arc<str>, Batch, Result<Vec<OperationResult>, TransactError>);

/// What the mirrors wait for.
#[derive(Debug)]
pub enum Done {
    /// A batch was carried out, or not.
    Batch(Box<Finished>),
    /// Rows at fault were read again.
    Read(Vec<(Uuid, Row)>),
    /// The lock came or went.
    Lock(LockState),
}

/// The mirrors of all groups.
#[derive(Debug)]
pub struct Mirrors {
    client: Client,
    clock: Clock,
    settings: Settings,
    mirrors: BTreeMap<Arc<str>, Mirror>,
    /// Every row of `MAC_Binding` that the monitor covers and that can be read, shared with its cache.
    rows: BTreeMap<Uuid, Row>,
    /// Those among them of which only a transaction knows.
    unconfirmed: Unconfirmed,
    /// Rows that cannot be read since the start.
    bad_rows: u64,
    wanted: BTreeMap<Arc<str>, GroupMembers>,
    covered: CoveredPorts,
    connected: bool,
    grouped: bool,
    /// Whether rows of IPv6 addresses are nobody's business.
    ipv4_only: bool,
    /// Without it, whoever likes may write.
    lock: Option<Lock>,
    tasks: JoinSet<Done>,
}

impl Mirrors {
    /// No mirrors yet.
    #[must_use]
    pub fn new(client: Client, clock: Clock, settings: Settings) -> Self {
        Self {
            client,
            clock,
            settings,
            mirrors: BTreeMap::new(),
            rows: BTreeMap::new(),
            unconfirmed: Unconfirmed::default(),
            bad_rows: 0,
            wanted: BTreeMap::new(),
            covered: CoveredPorts::of(MAC_BINDING),
            connected: true,
            grouped: false,
            ipv4_only: false,
            lock: None,
            tasks: JoinSet::new(),
        }
    }

    /// Leaves IPv6 alone, as on a DPU: rows of such addresses are neither copied nor compared.
    #[must_use]
    pub const fn ipv4_only(mut self, ipv4_only: bool) -> Self {
        self.ipv4_only = ipv4_only;
        self
    }

    /// Writes only while this lock is held: another agent may mirror for the same chassis.
    #[must_use]
    pub fn under(mut self, lock: Lock) -> Self {
        self.lock = Some(lock);
        self
    }

    /// What is known of the lock.
    #[must_use]
    pub fn lock_state(&self) -> Option<LockState> {
        self.lock.as_ref().map(Lock::state)
    }

    fn may_write(&self) -> bool {
        self.lock_state()
            .is_none_or(|state| state == LockState::Held)
    }

    /// Takes the groups that are mirrored, by bridge. The mirrors hear of them once the monitor covers
    /// their ports.
    pub fn regroup(&mut self, wanted: BTreeMap<Arc<str>, GroupMembers>) {
        if wanted == self.wanted && self.grouped {
            return;
        }
        self.wanted = wanted;
        let ports = self
            .wanted
            .values()
            .flat_map(|members| members.source.iter().chain(&members.followers));
        let ports = ports.map(|member| Arc::clone(&member.port)).collect();
        match self.covered.cover(&self.client, ports) {
            Ok(true) => self.apply_groups(),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "bindings are not monitored"),
        }
    }

    fn apply_groups(&mut self) {
        let now = self.clock.now();
        self.mirrors
            .retain(|bridge, _| self.wanted.contains_key(bridge));
        for (bridge, members) in &self.wanted {
            let mirror = self
                .mirrors
                .entry(Arc::clone(bridge))
                .or_insert_with(|| Mirror::new(self.settings));
            let rows = self.rows.iter();
            let rows = rows.filter_map(|(uuid, row)| BindingRow::parse(*uuid, row).ok());
            mirror.set_group(members.clone(), rows, now);
            if self.connected {
                mirror.synced(now);
            }
        }
        self.grouped = true;
    }

    /// Takes changed rows of `MAC_Binding`; `conditions` as the monitor's batch says them.
    pub fn apply(&mut self, changes: &[Change], conditions: u64) {
        let now = self.clock.now();
        for change in changes
            .iter()
            .filter(|change| &*change.table == MAC_BINDING)
        {
            self.unconfirmed.told(change.uuid);
            let new = change.new.as_ref();
            let row = new.map(|row| (row, BindingRow::parse(change.uuid, row)));
            if self.ipv4_only && matches!(&row, Some((_, Ok(row))) if row.ip.is_ipv6()) {
                continue;
            }
            match &row {
                Some((row, Ok(parsed))) => {
                    // A row whose MAC cannot be read still holds its place in the index.
                    self.bad_rows += u64::from(parsed.mac.is_none());
                    self.rows.insert(change.uuid, Row::clone(row));
                }
                Some((_, Err(skip))) => {
                    self.rows.remove(&change.uuid);
                    self.bad_rows += 1;
                    tracing::debug!(uuid = %change.uuid, ?skip, "binding skipped");
                }
                None => {
                    self.rows.remove(&change.uuid);
                }
            }
            for mirror in self.mirrors.values_mut() {
                match &row {
                    Some((_, Ok(row))) => mirror.upsert(row, now),
                    _ => mirror.remove(change.uuid, now),
                }
            }
        }
        if self.covered.reached(conditions) {
            self.apply_groups();
        }
    }

    /// The connection stands and every row is known.
    pub fn synced(&mut self) {
        self.connected = true;
        let now = self.clock.now();
        if self.grouped {
            for mirror in self.mirrors.values_mut() {
                mirror.synced(now);
            }
        }
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        self.connected = false;
        for mirror in self.mirrors.values_mut() {
            mirror.disconnected();
        }
    }

    /// Sends every transaction that is due; none without the lock.
    pub fn pump(&mut self) {
        let now = self.clock.now();
        for row in self.unconfirmed.expire(now.at) {
            self.rows.remove(&row);
            for mirror in self.mirrors.values_mut() {
                mirror.remove(row, now);
            }
        }
        if !self.may_write() {
            return;
        }
        let lock = self.lock.as_ref().map(|lock| Arc::clone(lock.name()));
        for (bridge, mirror) in &mut self.mirrors {
            while let Some(batch) = mirror.take_batch(now) {
                let (client, bridge) = (self.client.clone(), Arc::clone(bridge));
                let lock = lock.clone();
                self.tasks.spawn(async move {
                    let operations: Vec<Operation> =
                        batch.operations.iter().map(operation).collect();
                    let result = match lock {
                        Some(lock) => client.transact_locked(&lock, &operations).await,
                        None => client.transact(&operations).await,
                    };
                    Done::Batch(Box::new((bridge, batch, result)))
                });
            }
        }
    }

    /// When [`Mirrors::pump`] is due again, if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.may_write() {
            return None;
        }
        let next = self
            .mirrors
            .values()
            .filter_map(Mirror::next_deadline)
            .chain(self.unconfirmed.next())
            .min()?;
        Some(self.clock.instant(next))
    }

    /// The next transaction that is done, or news of the lock; for ever pending where neither is
    /// awaited. Cancel-safe.
    pub async fn finished(&mut self) -> Done {
        loop {
            let ended = tokio::select! {
                Some(ended) = self.tasks.join_next() => ended,
                state = lock_changed(self.lock.as_mut()) => return Done::Lock(state),
            };
            match ended {
                Ok(done) => return done,
                Err(error) => tracing::error!(%error, "a transaction's task ended early"),
            }
        }
    }

    /// Tells the mirror what became of its batch.
    pub fn settle(&mut self, done: Done) {
        match done {
            Done::Lock(state) => note_lock(self.lock.as_ref(), state),
            Done::Read(rows) => {
                let now = self.clock.now();
                for (uuid, row) in rows {
                    if self.rows.contains_key(&uuid) {
                        // The monitor knows it, and may have told of a later change already.
                        continue;
                    }
                    let Ok(parsed) = BindingRow::parse(uuid, &row) else {
                        continue;
                    };
                    self.unconfirmed.add(uuid, now.at);
                    self.rows.insert(uuid, row);
                    for mirror in self.mirrors.values_mut() {
                        mirror.upsert(&parsed, now);
                    }
                }
            }
            Done::Batch(finished) => {
                let (bridge, batch, result) = *finished;
                self.settle_batch(&bridge, &batch, result);
            }
        }
    }

    fn settle_batch(
        &mut self,
        bridge: &Arc<str>,
        batch: &Batch,
        result: Result<Vec<OperationResult>, TransactError>,
    ) {
        let now = self.clock.now();
        let Some(mirror) = self.mirrors.get_mut(bridge) else {
            return;
        };
        match result {
            Ok(results) => {
                let missed = missed(batch, &results);
                mirror.committed(batch.id, &missed, now);
                tracing::debug!(%bridge, rows = batch.operations.len(), missed = missed.len(), "bindings written");
            }
            Err(error) => {
                tracing::warn!(%bridge, rows = batch.operations.len(), error = %crate::agent::chain(&error), "bindings not written");
                let at_fault = mirror.failed(batch.id, &failure(batch, &error), now);
                if !at_fault.is_empty() {
                    let client = self.client.clone();
                    self.tasks
                        .spawn(async move { Done::Read(read_again(&client, at_fault).await) });
                }
            }
        }
    }

    /// Rows seen since the start whose address or MAC is empty or cannot be read.
    #[must_use]
    pub const fn bad_rows(&self) -> u64 {
        self.bad_rows
    }

    /// Whether every follower of a bridge has every binding that is pinned there.
    #[must_use]
    pub fn has_all_pinned(&self, bridge: &str) -> bool {
        // What waits for the monitor is not known to the mirror yet.
        let settled = self.connected && self.covered.are_known();
        let mirror = self.mirrors.get(bridge);
        settled && mirror.is_some_and(|mirror| mirror.pinned_missing() == 0)
    }

    /// The mirrors' states by bridge.
    #[must_use]
    pub fn status(&self) -> BTreeMap<String, Status> {
        let now = self.clock.now();
        self.mirrors
            .iter()
            .map(|(bridge, mirror)| (bridge.to_string(), mirror.status(now)))
            .collect()
    }
}
