//! The handles on a database.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::{
    backoff::Backoff,
    driver::Driver,
    error::{NotMonitored, TransactError},
    lock::{Lock, LockNameError},
    pending::{Event, Shared},
    remote::Remote,
    session::Transaction,
    tls::TlsFiles,
    wire::{
        message::write_params,
        monitor::{MonitorCondition, MonitorRequest},
        operation::Operation,
        outcome::{OperationResult, Outcome},
    },
};

/// What to connect to, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Servers of the same database, tried in an order left to chance.
    pub remotes: Vec<Remote>,
    /// The database's name, such as `OVN_Southbound`.
    pub database: Arc<str>,
    /// Key, certificate and authorities, for `ssl:` remotes.
    pub tls: Option<TlsFiles>,
    /// Whether only the leader of a cluster will do: transactions take one hop less, and locks,
    /// which each server keeps for itself, exclude everybody. Otherwise any member serves that is
    /// connected to its cluster and not behind. A database of its own is always good enough.
    pub leader_only: bool,
    /// The rows to follow.
    pub monitor: MonitorRequest,
    /// After this long without a word from the server it is asked for an echo; after as long again
    /// the connection is given up. Zero: never. `None`: [`Options::PROBE_INTERVAL`], and
    /// [`Options::LOCAL_PROBE_INTERVAL`] on local sockets.
    pub probe_interval: Option<Duration>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long it may take until a connection is made and the rows have come over it, however busy
    /// the server keeps it.
    pub snapshot_timeout: Duration,
    /// How long a transaction may take until its answer, waiting for its turn included.
    pub transact_timeout: Duration,
    /// A longer message ends the connection, before it takes more memory.
    pub max_message_bytes: usize,
    /// Transactions that may be without an answer; more wait.
    pub max_in_flight: usize,
    /// Sends transactions over a second connection. A server that has committed a transaction tells
    /// the monitors of the same connection what it changed before it answers: with many rows that
    /// doubles the time. Over a connection without a monitor the answer comes at once, and may come
    /// before the changes. The two stand and fall together.
    pub dedicated_writer: bool,
    /// Between rounds of attempts to connect.
    pub backoff: Backoff,
}

/// Sends transactions. Cheap to clone; the driver ends when every clone and the monitor are gone.
#[derive(Clone, Debug)]
pub struct Client {
    transactions: mpsc::Sender<Transaction>,
    shared: Arc<Shared>,
    options: Arc<Options>,
}

/// Receives the changes of the monitored rows.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
    /// Keeps the driver running.
    _transactions: mpsc::Sender<Transaction>,
}

impl Options {
    /// The usual silence before a probe.
    pub const PROBE_INTERVAL: Duration = Duration::from_secs(5);
    /// The same on a local socket, which never half-opens: only a server that hangs is silent.
    pub const LOCAL_PROBE_INTERVAL: Duration = Duration::from_secs(60);

    /// The usual options.
    pub fn new(
        remotes: Vec<Remote>,
        database: impl Into<Arc<str>>,
        monitor: MonitorRequest,
    ) -> Self {
        Self {
            remotes,
            database: database.into(),
            tls: None,
            leader_only: false,
            monitor,
            probe_interval: None,
            connect_timeout: Duration::from_secs(5),
            snapshot_timeout: Duration::from_secs(120),
            transact_timeout: Duration::from_secs(30),
            max_message_bytes: 256 * 1024 * 1024,
            max_in_flight: 32,
            dedicated_writer: false,
            backoff: Backoff::default(),
        }
    }
}

impl Client {
    /// The handles on a database, and the driver that must run for them to work. Nothing is
    /// connected before [`Driver::run`] is.
    pub fn connect(options: Options) -> (Self, Monitor, Driver) {
        let (sender, receiver) = mpsc::channel(options.max_in_flight.max(1));
        let conditions = options
            .monitor
            .tables
            .iter()
            .map(|table| table.condition.clone())
            .collect();
        let shared = Arc::new(Shared::new(conditions));
        let options = Arc::new(options);
        let client = Self {
            transactions: sender.clone(),
            shared: Arc::clone(&shared),
            options: Arc::clone(&options),
        };
        let monitor = Monitor {
            shared: Arc::clone(&shared),
            _transactions: sender,
        };
        (client, monitor, Driver::new(options, shared, receiver))
    }

    /// Executes operations as one transaction and returns one result for each. Many may be in
    /// flight; the server executes them in the order of the calls. Without
    /// [`Options::dedicated_writer`], what it changes among the monitored rows is queued for the
    /// [`Monitor`] before this returns.
    ///
    /// # Errors
    /// Where it is not known to be committed; see [`TransactError::changed_nothing`].
    pub async fn transact(
        &self,
        operations: &[Operation],
    ) -> Result<Vec<OperationResult>, TransactError> {
        self.execute(None, operations).await
    }

    async fn execute(
        &self,
        lock: Option<&str>,
        operations: &[Operation],
    ) -> Result<Vec<OperationResult>, TransactError> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let params = Bytes::from(write_params(&Params {
            database: &self.options.database,
            assertion: lock.map(|lock| Operation::assert_lock(lock.to_owned())),
            operations,
        }));
        let (reply, answer) = oneshot::channel();
        let transaction = Transaction {
            params,
            operations: usize::from(lock.is_some()) + operations.len(),
            reply,
        };
        let executed = async {
            self.transactions
                .send(transaction)
                .await
                .map_err(|_| TransactError::ShutDown)?;
            answer.await.map_err(|_| TransactError::ShutDown)?
        };
        let after = self.options.transact_timeout;
        tokio::time::timeout(after, executed)
            .await
            .map_err(|_| TransactError::TimedOut { after })?
    }

    /// The same for whoever holds `lock` (as [`Lock::name`] has it), with no result for that. The
    /// server decides: a client that has lost the lock and does not know it yet changes nothing.
    ///
    /// # Errors
    /// The same, and [`TransactError::NotLocked`].
    pub async fn transact_locked(
        &self,
        lock: &str,
        operations: &[Operation],
    ) -> Result<Vec<OperationResult>, TransactError> {
        match self.execute(Some(lock), operations).await {
            Ok(results) if results.is_empty() => Ok(results),
            Ok(mut results) => {
                results.remove(0);
                Ok(results)
            }
            Err(TransactError::Aborted(mut aborted)) => {
                if aborted.operations.is_empty() {
                    return Err(TransactError::Aborted(aborted));
                }
                match aborted.operations.remove(0) {
                    Outcome::Failed(_) => Err(TransactError::NotLocked {
                        lock: lock.to_owned(),
                    }),
                    Outcome::Undone(_) | Outcome::Skipped => Err(TransactError::Aborted(aborted)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Wants to hold a lock, on the present connection and on those after it, until the handle is
    /// dropped.
    ///
    /// # Errors
    /// Where no lock can have the name.
    pub fn lock(&self, name: impl Into<Arc<str>>) -> Result<Lock, LockNameError> {
        Lock::new(Arc::clone(&self.shared), name.into())
    }

    /// Looks for the database at other servers from now on: a connection to any of the former ones
    /// ends, with [`SessionError::RemotesChanged`]. What is known stays until the new servers are
    /// heard, as after any loss of a connection.
    ///
    /// [`SessionError::RemotesChanged`]: super::SessionError::RemotesChanged
    pub fn set_remotes(&self, remotes: Vec<Remote>) {
        self.shared.want_remotes(remotes);
    }

    /// Changes which rows of a table the monitor covers, on the present connection and on those
    /// after it. Returns at once, with a number: the rows are those of this condition (or a later
    /// one) from the first [`super::Batch`] on whose `conditions` is not below it; such a batch
    /// follows in any case, without changes if need be.
    ///
    /// # Errors
    /// Where the monitor does not cover the table.
    pub fn set_condition(
        &self,
        table: &str,
        condition: MonitorCondition,
    ) -> Result<u64, NotMonitored> {
        let position = self
            .options
            .monitor
            .position(table)
            .ok_or_else(|| NotMonitored {
                table: table.to_owned(),
            })?;
        Ok(self.shared.want_condition(position, condition))
    }
}

impl Monitor {
    /// The next event; `None` once the driver has ended. However late it is called, no more than
    /// one change a row waits. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.shared.next().await
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

/// The params of `transact`: the database, then the operations.
struct Params<'a> {
    database: &'a str,
    /// Before the operations.
    assertion: Option<Operation>,
    operations: &'a [Operation],
}

impl serde::Serialize for Params<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut seq = serializer.serialize_seq(None)?;
        seq.serialize_element(self.database)?;
        for operation in self.assertion.iter().chain(self.operations) {
            seq.serialize_element(operation)?;
        }
        seq.end()
    }
}
