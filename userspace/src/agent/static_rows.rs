//! Carries out what node IPs want of the northbound database.

pub mod orphans;
pub mod transactions;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use self::transactions::{failure, missed, operations};
use super::{
    clock::Clock,
    covered::CoveredPorts,
    database_locks::{lock_changed, note_lock},
    databases::STATIC_MAC_BINDING,
    state::StateFile,
};
use crate::{
    mirror::Millis,
    ovsdb::{Change, Client, Lock, LockState, OperationResult, TransactError},
    statics::{Batch, Mode, Settings, StaticBindings, StaticRow, Status, Target, WantedBindings},
};

/// For how long nothing is written after the state file could not be.
const STATE_FILE_PAUSE: Duration = Duration::from_secs(5);

/// What static rows wait for.
#[derive(Debug)]
pub enum Done {
    /// A batch was carried out, or not.
    Batch(Box<(Batch, Result<Vec<OperationResult>, TransactError>)>),
    /// The lock came or went.
    Lock(LockState),
}

/// The static bindings of this node's gateway routers, and the connection that writes them.
#[derive(Debug)]
pub struct StaticRows {
    client: Client,
    clock: Clock,
    machine: StaticBindings,
    lock: Lock,
    state: StateFile,
    wanted: Vec<Target>,
    covered: CoveredPorts,
    connected: bool,
    targeted: bool,
    /// Why the state file could not be written last, and when to try again: until then only rows of
    /// ports that are gone are written.
    blocked: Option<(String, Instant)>,
    /// Ports with rows that are not ours: later runs are not told of them.
    guarded: BTreeSet<Arc<str>>,
    /// There may be ports to forget.
    may_forget: bool,
    /// Rows that cannot be read since the start.
    bad_rows: u64,
    tasks: JoinSet<Done>,
}

impl StaticRows {
    /// No rows yet. Nothing is written while `lock` is not held.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        settings: Settings,
        lock: Lock,
        state: StateFile,
    ) -> Self {
        Self {
            client,
            clock,
            machine: StaticBindings::new(settings),
            lock,
            state,
            wanted: Vec::new(),
            covered: CoveredPorts::of(STATIC_MAC_BINDING),
            connected: true,
            targeted: false,
            blocked: None,
            guarded: BTreeSet::new(),
            may_forget: false,
            bad_rows: 0,
            tasks: JoinSet::new(),
        }
    }

    /// The ports that [`targets`](crate::statics::targets()) has to be told of.
    #[must_use]
    pub fn remembered(&self) -> BTreeSet<Arc<str>> {
        if self.targeted {
            self.machine.remembered()
        } else {
            self.state.static_ports()
        }
    }

    /// Takes the ports that are watched for going alone.
    pub fn guard(&mut self, ports: BTreeSet<Arc<str>>) {
        self.guarded = ports;
    }

    /// The ports that later runs are told of.
    fn kept(&self) -> BTreeSet<Arc<str>> {
        let mut ports = self.machine.remembered();
        ports.retain(|port| !self.guarded.contains(port));
        ports
    }

    /// Takes the ports that matter, and what they should hold. The machine hears of new ports once the
    /// monitor covers them.
    pub fn plan(&mut self, targets: Vec<Target>, wanted: Option<&WantedBindings>, mode: Mode) {
        let now = self.now();
        self.machine.set_wanted(wanted, now);
        self.machine.set_mode(mode, now);
        if targets == self.wanted && self.targeted {
            return;
        }
        self.wanted = targets;
        let ports = self.wanted.iter().map(|target| Arc::clone(&target.port));
        match self.covered.cover(&self.client, ports.collect()) {
            Ok(true) => self.apply_targets(),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "static bindings are not monitored"),
        }
    }

    fn now(&self) -> Millis {
        self.clock.now().at
    }

    fn apply_targets(&mut self) {
        let now = self.now();
        self.machine.set_targets(&self.wanted, now);
        self.targeted = true;
        self.may_forget = true;
        if self.connected {
            self.machine.synced(now);
        }
    }

    /// Takes changed rows of `Static_MAC_Binding`; `conditions` as the monitor's batch says them.
    pub fn apply(&mut self, changes: &[Change], conditions: u64) {
        let now = self.now();
        for change in changes
            .iter()
            .filter(|change| &*change.table == STATIC_MAC_BINDING)
        {
            let row = change.new.as_ref();
            match row.map(|row| StaticRow::parse(change.uuid, row)) {
                Some(Ok(row)) => self.machine.upsert(&row, now),
                Some(Err(skip)) => {
                    self.bad_rows += 1;
                    tracing::debug!(uuid = %change.uuid, ?skip, "static binding skipped");
                    self.machine.remove(change.uuid, now);
                }
                None => self.machine.remove(change.uuid, now),
            }
        }
        if self.covered.reached(conditions) {
            self.apply_targets();
        }
    }

    /// The connection stands and every row is known.
    pub fn synced(&mut self) {
        self.connected = true;
        if self.targeted {
            let now = self.now();
            self.machine.synced(now);
        }
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        self.connected = false;
        self.machine.disconnected();
    }

    fn may_write(&self) -> bool {
        self.lock.state() == LockState::Held
    }

    /// Sends every transaction that is due; none without the lock, and none while the rows of all
    /// targets are not known.
    pub fn pump(&mut self) {
        if !self.may_write() || !self.covered.are_known() {
            return;
        }
        let now = self.now();
        if self.machine.next_deadline().is_none_or(|due| due > now) {
            self.forget();
            return;
        }
        if self.remember() {
            while let Some(batch) = self.machine.take_batch(now) {
                self.send(batch);
            }
        } else {
            // On OVN 23.03 such rows stop northd, and their ports were kept when they were written.
            while let Some(batch) = self.machine.take_urgent_batch(now) {
                self.send(batch);
            }
        }
    }

    fn send(&mut self, batch: Batch) {
        let (client, lock) = (self.client.clone(), Arc::clone(self.lock.name()));
        self.tasks.spawn(async move {
            let result = client.transact_locked(&lock, &operations(&batch)).await;
            Done::Batch(Box::new((batch, result)))
        });
    }

    /// Keeps the ports on disk that rows may be written to, before they are; whether they are there.
    fn remember(&mut self) -> bool {
        let now = Instant::now();
        if self.blocked.as_ref().is_some_and(|(_, until)| now < *until) {
            return false;
        }
        if let Err(error) = self.state.set_static_ports(self.kept()) {
            let error = super::chain(&error);
            tracing::warn!(%error, "no static binding is written: its port could not be kept for later runs");
            self.blocked = Some((error, now + STATE_FILE_PAUSE));
            return false;
        }
        self.blocked = None;
        true
    }

    /// Forgets the ports to which nothing of ours is written any more.
    fn forget(&mut self) {
        if !self.may_forget || !self.is_idle() {
            return;
        }
        self.may_forget = false;
        if let Err(error) = self.state.set_static_ports(self.kept()) {
            tracing::warn!(error = %super::chain(&error), "ports without static bindings are not forgotten for later runs");
        }
    }

    /// When [`StaticRows::pump`] is due again, if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.may_write() || !self.covered.are_known() {
            return None;
        }
        let due = self.clock.instant(self.machine.next_deadline()?);
        let blocked = self.blocked.as_ref().map(|(_, until)| *until);
        Some(blocked.map_or(due, |until| due.max(until)))
    }

    /// The next transaction that is done, or news of the lock. Cancel-safe.
    pub async fn finished(&mut self) -> Done {
        loop {
            let ended = tokio::select! {
                Some(ended) = self.tasks.join_next() => ended,
                state = lock_changed(Some(&mut self.lock)) => return Done::Lock(state),
            };
            match ended {
                Ok(done) => return done,
                Err(error) => tracing::error!(%error, "a transaction's task ended early"),
            }
        }
    }

    /// Tells the machine what became of its batch.
    pub fn settle(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Lock(state) => note_lock(Some(&self.lock), state),
            Done::Batch(finished) => {
                self.may_forget = true;
                let (batch, result) = *finished;
                match result {
                    Ok(results) => {
                        let missed = missed(&batch, &results);
                        self.machine.committed(batch.id, &missed, now);
                        tracing::info!(
                            rows = batch.operations.len(),
                            missed = missed.len(),
                            "static bindings written"
                        );
                    }
                    Err(error) => {
                        tracing::warn!(rows = batch.operations.len(), error = %super::chain(&error), "static bindings not written");
                        // A row that is there already is in what the monitor covers: it tells of it.
                        self.machine.failed(batch.id, &failure(&batch, &error), now);
                    }
                }
            }
        }
    }

    /// Whether everything is written that there is to write for now.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.targeted && self.covered.are_known() && self.machine.is_idle()
    }

    /// The state at large.
    #[must_use]
    pub fn status(&self) -> Status {
        self.machine.status(self.now())
    }

    /// What is known of the lock.
    #[must_use]
    pub fn lock_state(&self) -> LockState {
        self.lock.state()
    }

    /// Why nothing is written, where the state file cannot be.
    #[must_use]
    pub fn state_error(&self) -> Option<&str> {
        self.blocked.as_ref().map(|(error, _)| &**error)
    }

    /// Rows seen since the start that name no port.
    #[must_use]
    pub const fn bad_rows(&self) -> u64 {
        self.bad_rows
    }
}
