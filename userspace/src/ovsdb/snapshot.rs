//! One look at a database, for commands that run and end.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    client::Options,
    error::SessionError,
    remote::{ConnectError, Remote, RemoteError},
    replica::{Conditions, Replica},
    value::{Row, Uuid},
    wire::monitor::MonitorRequest,
};

/// The rows of some tables at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// By table; every table that was asked for has its entry.
    pub tables: HashMap<Arc<str>, Vec<(Uuid, Row)>>,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// No server was named.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// None of the servers gave one; this is what the last one did.
    #[error("cannot read database {database} at {remote}")]
    Session {
        /// The database.
        database: String,
        /// The last server that was tried.
        remote: Remote,
        /// Why.
        #[source]
        source: Box<SessionError>,
    },
}

impl Snapshot {
    /// Reads the tables of `request` from the first of `remotes` that answers. Each has `timeout`
    /// for all of it.
    ///
    /// # Errors
    /// Where none answers.
    pub async fn fetch(
        remotes: &[Remote],
        database: &str,
        request: MonitorRequest,
        timeout: Duration,
    ) -> Result<Self, SnapshotError> {
        Self::fetch_with(Options {
            connect_timeout: timeout,
            ..Options::new(remotes.to_vec(), database, request)
        })
        .await
    }

    /// The same with all options of a connection; `connect_timeout` is what each server has for
    /// all of it. A follower is as good as its leader here.
    ///
    /// # Errors
    /// Where none answers.
    pub async fn fetch_with(options: Options) -> Result<Self, SnapshotError> {
        let timeout = options.connect_timeout;
        let mut last = SnapshotError::Remote(RemoteError::Empty);
        for remote in &options.remotes {
            let fetched = tokio::time::timeout(timeout, Self::fetch_from(remote, &options));
            let error = match fetched.await {
                Ok(Ok(snapshot)) => return Ok(snapshot),
                Ok(Err(error)) => error,
                Err(_) => ConnectError::TimedOut {
                    remote: remote.clone(),
                    after: timeout,
                }
                .into(),
            };
            last = SnapshotError::Session {
                database: options.database.to_string(),
                remote: remote.clone(),
                source: Box::new(error),
            };
        }
        Err(last)
    }

    async fn fetch_from(remote: &Remote, options: &Options) -> Result<Self, SessionError> {
        let conditions = Conditions {
            tables: options
                .monitor
                .tables
                .iter()
                .map(|table| table.condition.clone())
                .collect(),
            generation: 0,
        };
        let mut replica = Replica::default();
        // The rows are taken from the cache.
        let mut changes = Vec::new();
        replica
            .establish(remote, options, conditions, &mut changes)
            .await?;
        Ok(Self {
            tables: options
                .monitor
                .tables
                .iter()
                .enumerate()
                .map(|(index, table)| (Arc::clone(&table.table), replica.cache.take_rows(index)))
                .collect(),
        })
    }

    /// The rows of a table; none where it was not asked for.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = (Uuid, &Row)> {
        self.tables
            .get(table)
            .into_iter()
            .flatten()
            .map(|(uuid, row)| (*uuid, row))
    }
}
