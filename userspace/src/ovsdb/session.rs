//! A connection that is up: updates in, transactions out.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::{
    client::Options,
    connection::Connection,
    error::{SessionError, TransactError},
    pending::Shared,
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
}

/// Serves one connection.
pub(crate) struct Session<'a> {
    connection: Connection,
    replica: &'a mut Replica,
    options: &'a Options,
    shared: &'a Shared,
    in_flight: HashMap<u64, Sent>,
    /// The request that changes conditions, with what they will be.
    changing: Option<(u64, Conditions)>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        connection: Connection,
        replica: &'a mut Replica,
        options: &'a Options,
        shared: &'a Shared,
    ) -> Self {
        Self {
            connection,
            replica,
            options,
            shared,
            in_flight: HashMap::new(),
            changing: None,
        }
    }

    /// Serves until the connection ends, or no handle is left (`None`). Whoever waits for an
    /// answer gets one.
    pub(crate) async fn run(
        mut self,
        transactions: &mut mpsc::Receiver<Transaction>,
    ) -> Option<Arc<SessionError>> {
        let error = Arc::new(self.serve(transactions).await.err()?);
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
        loop {
            let room = self.in_flight.len() < self.options.max_in_flight.max(1);
            tokio::select! {
                incoming = self.connection.next() => self.receive(incoming?)?,
                transaction = transactions.recv(), if room => match transaction {
                    Some(transaction) => self.send(transaction),
                    None => return Ok(()),
                },
                () = self.shared.conditions_changed() => self.change_conditions(),
            }
        }
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
        let id = self.connection.request("transact", &params);
        self.in_flight.insert(id, Sent { operations, reply });
    }

    fn receive(&mut self, incoming: Incoming) -> Result<(), SessionError> {
        match incoming {
            Incoming::Notification { method, params } if method == "update3" => {
                let mut changes = Vec::new();
                let result = self.replica.update(&params, self.options, &mut changes);
                self.shared.changed(changes);
                result
            }
            Incoming::Notification { method, .. } if method == "monitor_canceled" => {
                // The rows of a converted database are not those of the last transaction.
                self.replica.last_transaction = Uuid::NIL;
                Err(SessionError::MonitorCanceled)
            }
            Incoming::Reply { id, result } => self.answer(id, result),
            other => {
                tracing::debug!(?other, "message passed over");
                Ok(())
            }
        }
    }

    fn answer(&mut self, id: u64, result: Result<Bytes, ServerError>) -> Result<(), SessionError> {
        if let Some(sent) = self.in_flight.remove(&id) {
            let outcome = match result {
                Err(error) => Err(TransactError::Refused(error)),
                Ok(result) => match parse_outcome(&result, sent.operations) {
                    Ok(outcome) => outcome.map_err(TransactError::Aborted),
                    Err(error) => Err(TransactError::Unreadable(Arc::new(error))),
                },
            };
            let _gone = sent.reply.send(outcome);
            return Ok(());
        }
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
