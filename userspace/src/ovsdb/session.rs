//! A connection that is up: updates in, transactions out.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    client::Options,
    connection::at,
    error::{SessionError, TransactError},
    link::Link,
    lock::{HeldLocks, LockState},
    pending::Shared,
    remote::Remote,
    replica::{Conditions, MONITOR, Replica},
    value::Uuid,
    wire::{
        message::{Incoming, ServerError, write_params},
        monitor::ConditionChanges,
        outcome::{OperationResult, parse_outcome},
    },
};

/// A transaction on its way.
pub(crate) struct Transaction {
    /// The params of `transact`, as JSON.
    pub(crate) params: Bytes,
    /// How many operations they hold.
    pub(crate) operations: usize,
    pub(crate) reply: oneshot::Sender<Result<Vec<OperationResult>, TransactError>>,
}

/// One that was sent.
struct Sent {
    operations: usize,
    reply: oneshot::Sender<Result<Vec<OperationResult>, TransactError>>,
    /// When.
    at: Instant,
}

/// Serves one connection.
pub(crate) struct Session<'a> {
    connection: Link,
    /// The connection of the transactions, where they have their own.
    writer: Option<Link>,
    replica: &'a mut Replica,
    options: &'a Options,
    /// Where the server may be for this connection to go on.
    remotes: &'a [Remote],
    shared: &'a Shared,
    in_flight: HashMap<u64, Sent>,
    /// The request that changes conditions, with what they will be.
    changing: Option<(u64, Conditions)>,
    /// On the connection of the transactions.
    locks: HeldLocks,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        connection: Link,
        writer: Option<Link>,
        replica: &'a mut Replica,
        options: &'a Options,
        remotes: &'a [Remote],
        shared: &'a Shared,
    ) -> Self {
        Self {
            connection,
            writer,
            replica,
            options,
            remotes,
            shared,
            in_flight: HashMap::new(),
            changing: None,
            locks: HeldLocks::default(),
        }
    }

    /// Serves until the connection ends, or no handle is left (`None`). Whoever waits for an
    /// answer gets one.
    pub(crate) async fn run(
        mut self,
        transactions: &mut mpsc::Receiver<Transaction>,
    ) -> Option<Arc<SessionError>> {
        let served = self.serve(transactions).await;
        self.replica.newest = self.connection.newest();
        let error = Arc::new(served.err()?);
        for sent in self.in_flight.into_values() {
            // Whoever gave up waiting does not want to know.
            let _gone = sent.reply.send(Err(TransactError::ConnectionLost {
                cause: Arc::clone(&error),
            }));
        }
        if self.changing.is_some() {
            // Some rows may have come under the new conditions, some not.
            self.replica.last_transaction = Uuid::NIL;
        }
        Some(error)
    }

    async fn serve(
        &mut self,
        transactions: &mut mpsc::Receiver<Transaction>,
    ) -> Result<(), SessionError> {
        self.change_conditions();
        self.change_locks();
        loop {
            let overdue = self.oldest().map(|sent| sent + self.patience());
            let room = self.in_flight.len() < self.options.max_in_flight.max(1);
            tokio::select! {
                incoming = self.connection.next() => self.receive(incoming?)?,
                incoming = next(self.writer.as_mut()) => self.receive_written(incoming?),
                transaction = transactions.recv(), if room => match transaction {
                    Some(transaction) => self.send(transaction),
                    None => return Ok(()),
                },
                () = at(overdue), if overdue.is_some() => {
                    let after = self.patience();
                    return Err(SessionError::Unanswered { after });
                }
                () = self.shared.conditions_changed() => self.change_conditions(),
                () = self.shared.locks_changed() => self.change_locks(),
                () = self.shared.other_remotes(self.remotes) => {
                    return Err(SessionError::RemotesChanged);
                }
            }
        }
    }

    /// When the oldest transaction without an answer was sent.
    fn oldest(&self) -> Option<Instant> {
        self.in_flight.values().map(|sent| sent.at).min()
    }

    /// For how long a server may leave a transaction unanswered. Whoever waited for it has given up
    /// long before; what is left is its place among those in flight.
    fn patience(&self) -> Duration {
        self.options.transact_timeout.saturating_mul(2)
    }

    fn send(&mut self, transaction: Transaction) {
        let Transaction {
            params,
            operations,
            reply,
        } = transaction;
        if reply.is_closed() {
            // Nobody waits any more: it was never sent, and so it stays.
            return;
        }
        let connection = self.writer.as_mut().unwrap_or(&mut self.connection);
        let id = connection.request("transact", &params);
        let sent = Sent {
            operations,
            reply,
            at: Instant::now(),
        };
        self.in_flight.insert(id, sent);
    }

    fn receive(&mut self, incoming: Incoming) -> Result<(), SessionError> {
        match incoming {
            Incoming::Notification { method, params } if method == "update3" => {
                let mut changes = Vec::new();
                let result = self.replica.update(params, self.options, &mut changes);
                self.shared.changed(changes);
                result
            }
            Incoming::Notification { method, .. } if method == "monitor_canceled" => {
                // The rows of a converted database are not those of the last transaction.
                self.replica.last_transaction = Uuid::NIL;
                Err(SessionError::MonitorCanceled)
            }
            // The ids of the two connections have nothing to do with each other.
            Incoming::Reply { id, result } => match self.writer {
                None => match self.settle(id, result) {
                    Some(result) => self.changed_conditions(id, result),
                    None => Ok(()),
                },
                Some(_) => self.changed_conditions(id, result),
            },
            other => {
                self.lock_news(&other);
                Ok(())
            }
        }
    }

    /// What came over the connection of the transactions.
    fn receive_written(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Reply { id, result } => {
                if self.settle(id, result).is_some() {
                    tracing::debug!(id, "reply to nothing that was asked");
                }
            }
            other => self.lock_news(&other),
        }
    }

    /// Asks for the locks that are wanted.
    fn change_locks(&mut self) {
        let connection = self.writer.as_mut().unwrap_or(&mut self.connection);
        self.locks
            .reconcile(&self.shared.wanted_locks(), |method, name| {
                connection.request(method, &write_params(&[name]))
            });
    }

    /// The answer to a request for a lock.
    fn locked(&self, name: &str, result: Result<Bytes, ServerError>) {
        #[derive(serde::Deserialize)]
        struct Answer {
            locked: bool,
        }
        let answer = match result {
            Ok(result) => serde_json::from_slice(&result).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(Answer { locked: true }) => self.shared.set_lock(name, LockState::Held),
            Ok(Answer { locked: false }) => self.shared.set_lock(name, LockState::Waiting),
            Err(error) => tracing::warn!(lock = name, error, "lock not granted"),
        }
    }

    /// A lock that came or went without our doing.
    fn lock_news(&self, news: &Incoming) {
        let Incoming::Notification { method, params } = news else {
            tracing::debug!(?news, "message passed over");
            return;
        };
        let state = match &**method {
            "locked" => LockState::Held,
            "stolen" => LockState::Stolen,
            _ => {
                tracing::debug!(?news, "message passed over");
                return;
            }
        };
        if let Ok((name,)) = serde_json::from_slice::<(String,)>(params)
            && self.locks.knows(&name)
        {
            self.shared.set_lock(&name, state);
        }
    }

    /// Hands a transaction its outcome; the result comes back where it is not a transaction's.
    fn settle(
        &mut self,
        id: u64,
        result: Result<Bytes, ServerError>,
    ) -> Option<Result<Bytes, ServerError>> {
        let Some(sent) = self.in_flight.remove(&id) else {
            if let Some(name) = self.locks.answered(id) {
                self.locked(&name, result);
                return None;
            }
            return Some(result);
        };
        let outcome = match result {
            Err(error) => Err(TransactError::Refused(error)),
            Ok(result) => match parse_outcome(&result, sent.operations) {
                Ok(outcome) => outcome.map_err(TransactError::Aborted),
                Err(error) => Err(TransactError::Unreadable(Arc::new(error))),
            },
        };
        let _gone = sent.reply.send(outcome);
        None
    }

    /// The answer to a change of conditions.
    fn changed_conditions(
        &mut self,
        id: u64,
        result: Result<Bytes, ServerError>,
    ) -> Result<(), SessionError> {
        let Some((_, conditions)) = self.changing.take_if(|(changing, _)| *changing == id) else {
            tracing::debug!(id, "reply to nothing that was asked");
            return Ok(());
        };
        result.map_err(|error| SessionError::Refused {
            method: "monitor_cond_change",
            database: self.options.database.to_string(),
            error,
        })?;
        self.in_force(conditions);
        self.change_conditions();
        Ok(())
    }

    /// Asks for the wanted conditions, unless a request is on its way: its answer comes back here.
    fn change_conditions(&mut self) {
        if self.changing.is_some()
            || self.shared.wanted_generation() == self.replica.conditions.generation
        {
            return;
        }
        let wanted = self.shared.wanted_conditions();
        let changes: Vec<_> = self
            .options
            .monitor
            .tables
            .iter()
            .zip(wanted.tables.iter().zip(&self.replica.conditions.tables))
            .filter(|(_, (wanted, present))| wanted != present)
            .map(|(request, (wanted, _))| (&*request.table, wanted))
            .collect();
        if changes.is_empty() {
            self.in_force(wanted);
            return;
        }
        let params = write_params(&(MONITOR, MONITOR, ConditionChanges(changes)));
        let id = self.connection.request("monitor_cond_change", &params);
        self.changing = Some((id, wanted));
    }

    fn in_force(&mut self, conditions: Conditions) {
        self.shared.conditions_in_force(conditions.generation);
        self.replica.conditions = conditions;
    }
}

/// The next message of a connection; without one, never.
async fn next(connection: Option<&mut Link>) -> Result<Incoming, SessionError> {
    match connection {
        Some(connection) => connection.next().await,
        None => std::future::pending().await,
    }
}
