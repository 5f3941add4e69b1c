//! What the consumer has not seen yet: at most one change a row, however slow it is.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

use super::{
    cache::Change,
    error::SessionError,
    lock::{LockState, WantedLocks},
    remote::Remote,
    replica::Conditions,
    value::Uuid,
    wire::monitor::MonitorCondition,
};

/// News of the monitored tables.
#[derive(Clone, Debug)]
pub enum Event {
    /// A connection is up and every table's rows are known: the first such event is the first at
    /// which anything may be concluded from what is absent. The changes lead from what the consumer
    /// knew to what is there now; they may be empty.
    Synced(Batch),
    /// Rows changed. Only between [`Event::Synced`] and the next.
    Changes(Batch),
    /// The connection was lost, or none could be made. The rows stay what they were; the client
    /// goes on trying. Repeated for every failed attempt that the consumer is in time to see.
    Disconnected {
        /// Why.
        error: Arc<SessionError>,
    },
}

/// Changes that belong together: they end at the end of a transaction, and hold one entry a row.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The changes, in the order in which rows first changed.
    pub changes: Vec<Change>,
    /// The conditions under which these rows were selected: what [`Client::set_condition`]
    /// returned, or a later call of it.
    ///
    /// [`Client::set_condition`]: super::Client::set_condition
    pub conditions: u64,
}

/// What the driver and the handles share. Locked for moments only, never across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something for the consumer.
    news: Notify,
    /// Something for the driver.
    conditions_changed: Notify,
    /// The same.
    locks_changed: Notify,
    /// The same.
    remotes_changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    /// The conditions that are wanted.
    wanted: Conditions,
    /// The locks that are wanted.
    locks: WantedLocks,
    /// The servers that are wanted, where others than at first.
    remotes: Option<Arc<[Remote]>>,
    /// The driver has ended.
    closed: bool,
    /// The consumer has gone.
    unread: bool,
}

/// The events that wait.
#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    /// Where each row's entry is among `changes`; empty until a second message adds to them.
    places: HashMap<(Arc<str>, Uuid), usize>,
    /// A batch is due although it may be empty.
    due: bool,
    /// A connection is up, which the consumer does not know.
    synced: bool,
    /// The consumer knows the rows of some connection.
    primed: bool,
    /// Changes wait that are only part of what a new connection brings.
    partial: bool,
    disconnected: Option<Arc<SessionError>>,
    /// The conditions in force.
    conditions: u64,
}

/// The row that a change is about.
fn key(change: &Change) -> (Arc<str>, Uuid) {
    (Arc::clone(&change.table), change.uuid)
}

impl Queue {
    fn add(&mut self, changes: Vec<Change>) {
        if self.changes.is_empty() {
            // Mostly the consumer keeps up: then nothing needs to be found again.
            self.changes = changes;
            return;
        }
        if self.places.is_empty() {
            let places = self.changes.iter().enumerate();
            self.places = places.map(|(place, change)| (key(change), place)).collect();
        }
        for change in changes {
            let key = key(&change);
            match self
                .places
                .get(&key)
                .and_then(|place| self.changes.get_mut(*place))
            {
                Some(waiting) => waiting.new = change.new,
                None => {
                    self.places.insert(key, self.changes.len());
                    self.changes.push(change);
                }
            }
        }
    }

    fn take(&mut self) -> Option<Event> {
        if self.synced {
            self.synced = false;
            self.primed = true;
            return Some(Event::Synced(self.take_batch()));
        }
        if self.primed && !self.partial && (self.due || !self.changes.is_empty()) {
            let due = self.due;
            let batch = self.take_batch();
            if due || !batch.changes.is_empty() {
                return Some(Event::Changes(batch));
            }
        }
        self.disconnected
            .take()
            .map(|error| Event::Disconnected { error })
    }

    fn take_batch(&mut self) -> Batch {
        self.due = false;
        self.places = HashMap::new();
        let mut changes = std::mem::take(&mut self.changes);
        // A row that is again what the consumer knows is no news.
        changes.retain(|change| change.old != change.new);
        Batch {
            changes,
            conditions: self.conditions,
        }
    }
}

impl Shared {
    pub(crate) fn new(conditions: Vec<MonitorCondition>) -> Self {
        Self {
            state: Mutex::new(State {
                wanted: Conditions {
                    tables: conditions,
                    generation: 0,
                },
                ..State::default()
            }),
            news: Notify::new(),
            conditions_changed: Notify::new(),
            locks_changed: Notify::new(),
            remotes_changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every section leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every row of a new connection is known, under these conditions.
    pub(crate) fn synced(&self, changes: Vec<Change>, conditions: u64) {
        let mut state = self.lock();
        if !state.unread {
            state.queue.add(changes);
            state.queue.synced = true;
            state.queue.partial = false;
            state.queue.disconnected = None;
            state.queue.conditions = conditions;
        }
        drop(state);
        self.news.notify_one();
    }

    /// Rows changed.
    pub(crate) fn changed(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut state = self.lock();
        if !state.unread {
            state.queue.add(changes);
        }
        drop(state);
        self.news.notify_one();
    }

    /// Rows changed, but their connection ended before all were known: they wait for the next.
    pub(crate) fn changed_unsynced(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut state = self.lock();
        if !state.unread {
            state.queue.add(changes);
            state.queue.partial = true;
        }
    }

    /// Conditions came into force, and the rows that they add have been queued.
    pub(crate) fn conditions_in_force(&self, conditions: u64) {
        let mut state = self.lock();
        state.queue.conditions = conditions;
        state.queue.due = true;
        drop(state);
        self.news.notify_one();
    }

    /// The connection ended, or none was made.
    pub(crate) fn disconnected(&self, error: Arc<SessionError>) {
        let mut state = self.lock();
        if !state.queue.primed {
            // What was not seen under one connection is part of the next one's news.
            state.queue.synced = false;
        }
        state.queue.disconnected = Some(error);
        state.locks.forget();
        drop(state);
        self.news.notify_one();
    }

    /// The driver has ended.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.locks.forget();
        drop(state);
        self.news.notify_one();
    }

    /// The consumer has gone.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.unread = true;
        state.queue = Queue::default();
    }

    /// The next event; `None` once the driver has ended. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut state = self.lock();
                if let Some(event) = state.queue.take() {
                    return Some(event);
                }
                if state.closed {
                    return None;
                }
            }
            self.news.notified().await;
        }
    }

    /// Wants another condition for a table; returns the number of this wish.
    pub(crate) fn want_condition(&self, table: usize, condition: MonitorCondition) -> u64 {
        let mut state = self.lock();
        let wanted = &mut state.wanted;
        if let Some(slot) = wanted.tables.get_mut(table)
            && *slot != condition
        {
            *slot = condition;
            wanted.generation += 1;
        }
        let generation = wanted.generation;
        drop(state);
        self.conditions_changed.notify_one();
        generation
    }

    /// The conditions that are wanted.
    pub(crate) fn wanted_conditions(&self) -> Conditions {
        self.lock().wanted.clone()
    }

    /// The number of the last wish.
    pub(crate) fn wanted_generation(&self) -> u64 {
        self.lock().wanted.generation
    }

    /// Wants a lock once more.
    pub(crate) fn want_lock(&self, name: &Arc<str>) -> watch::Receiver<LockState> {
        let state = self.lock().locks.add(name);
        self.locks_changed.notify_one();
        state
    }

    /// Wants a lock once less.
    pub(crate) fn unwant_lock(&self, name: &str) {
        self.lock().locks.remove(name);
        self.locks_changed.notify_one();
    }

    /// The names of the locks that are wanted.
    pub(crate) fn wanted_locks(&self) -> Vec<Arc<str>> {
        self.lock().locks.names()
    }

    /// What became of a lock.
    pub(crate) fn set_lock(&self, name: &str, state: LockState) {
        self.lock().locks.set(name, state);
    }

    /// Wants other servers.
    pub(crate) fn want_remotes(&self, remotes: Vec<Remote>) {
        self.lock().remotes = Some(remotes.into());
        self.remotes_changed.notify_one();
    }

    /// The servers that are wanted, where others than at first.
    pub(crate) fn wanted_remotes(&self) -> Option<Arc<[Remote]>> {
        self.lock().remotes.clone()
    }

    /// Waits until other servers are wanted than these.
    pub(crate) async fn other_remotes(&self, present: &[Remote]) {
        while self
            .wanted_remotes()
            .is_none_or(|wanted| *wanted == *present)
        {
            self.remotes_changed.notified().await;
        }
    }

    /// Waits until other locks may be wanted.
    pub(crate) async fn locks_changed(&self) {
        self.locks_changed.notified().await;
    }

    /// Waits until other conditions may be wanted.
    pub(crate) async fn conditions_changed(&self) {
        self.conditions_changed.notified().await;
    }
}

#[cfg(test)]
mod tests;
