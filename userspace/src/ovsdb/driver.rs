//! Keeps one session after the other going.

use std::sync::Arc;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{
    client::Options,
    error::{SessionError, TransactError},
    link::{Link, Purpose},
    pending::Shared,
    remote::{ConnectError, Remote},
    replica::Replica,
    session::{Session, Transaction},
};

/// The task behind a [`super::Client`].
#[must_use = "nothing happens until it runs"]
#[derive(Debug)]
pub struct Driver {
    options: Arc<Options>,
    shared: CloseOnDrop,
    transactions: mpsc::Receiver<Transaction>,
}

/// Tells the consumer that the driver has ended, whatever ended it.
#[derive(Debug)]
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// No handle is left.
struct Unused;

impl Driver {
    pub(crate) const fn new(
        options: Arc<Options>,
        shared: Arc<Shared>,
        transactions: mpsc::Receiver<Transaction>,
    ) -> Self {
        Self {
            options,
            shared: CloseOnDrop(shared),
            transactions,
        }
    }

    /// Connects, serves, and connects again, until every handle is gone.
    pub async fn run(self) {
        let Self {
            options,
            shared,
            mut transactions,
        } = self;
        let shared = &*shared.0;
        let mut replica = Replica::default();
        let mut cause = None;
        let mut failures = 0;
        let mut remotes: Arc<[Remote]> = options.remotes.as_slice().into();
        loop {
            if let Some(wanted) = shared.wanted_remotes() {
                remotes = wanted;
            }
            let mut order: Vec<&Remote> = remotes.iter().collect();
            fastrand::shuffle(&mut order);
            for remote in order {
                let mut changes = Vec::new();
                let connected = async {
                    let wanted = shared.wanted_conditions();
                    let connection = replica
                        .establish(remote, &options, wanted, &mut changes)
                        .await?;
                    let writer = if options.dedicated_writer {
                        let newest = replica.newest;
                        Some(Link::open(remote, &options, newest, Purpose::Write).await?)
                    } else {
                        None
                    };
                    Ok::<_, SessionError>((connection, writer))
                };
                let connected = tokio::select! {
                    connected = timeout(options.snapshot_timeout, connected) => {
                        let after = options.snapshot_timeout;
                        connected.unwrap_or(Err(SessionError::NoSnapshot { after }))
                    }
                    () = shared.other_remotes(&remotes) => break,
                    Unused = refuse(&mut transactions, cause.as_ref()) => return,
                };
                let error = match connected {
                    Ok((connection, writer)) => {
                        tracing::info!(%remote, database = %options.database, "database connected");
                        let since = Instant::now();
                        shared.synced(changes, replica.conditions.generation);
                        let session = Session::new(
                            connection,
                            writer,
                            &mut replica,
                            &options,
                            &remotes,
                            shared,
                        );
                        match session.run(&mut transactions).await {
                            None => return,
                            Some(error) => {
                                // A server that takes us only to drop us is no better than none.
                                if since.elapsed() >= options.backoff.longest {
                                    failures = 0;
                                }
                                error
                            }
                        }
                    }
                    Err(error) => {
                        shared.changed_unsynced(changes);
                        Arc::new(error)
                    }
                };
                // Every failure is an event; the log has them at a level of its own.
                tracing::debug!(%remote, database = %options.database, error = %error, "database disconnected");
                shared.disconnected(Arc::clone(&error));
                cause = Some(error);
            }
            if remotes.is_empty() {
                let error = Arc::new(SessionError::Connect(ConnectError::NoRemote));
                shared.disconnected(Arc::clone(&error));
                cause = Some(error);
            }
            failures += 1;
            let wait = options.backoff.wait(failures, fastrand::f64());
            tokio::select! {
                () = sleep(wait) => {}
                () = shared.other_remotes(&remotes) => failures = 0,
                Unused = refuse(&mut transactions, cause.as_ref()) => return,
            }
        }
    }
}

/// Answers transactions while there is no connection, until no handle is left.
async fn refuse(
    transactions: &mut mpsc::Receiver<Transaction>,
    cause: Option<&Arc<SessionError>>,
) -> Unused {
    while let Some(transaction) = transactions.recv().await {
        let _gone = transaction.reply.send(Err(TransactError::NotConnected {
            cause: cause.map(Arc::clone),
        }));
    }
    Unused
}
