//! What a server says of a database that it serves: the database `_Server` (ovsdb-server(5)).

use std::sync::Arc;

use super::{
    cache::Cache,
    error::SessionError,
    remote::Remote,
    value::{Row, Uuid},
    wire::{
        condition::Clause,
        message::write_params,
        monitor::{MonitorCondition, MonitorRequest, Requests, TableRequest},
        schema,
        updates::Decoder,
    },
};

/// The database that servers have of themselves.
pub(crate) const DATABASE: &str = "_Server";
/// The name of its monitor on a connection.
const MONITOR: &str = "server";

/// Why a server is left for another although it answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitServer {
    /// A member that has lost its cluster, or a relay that has lost its source: what it knows is
    /// old, and it can commit nothing.
    #[error("{remote} has lost touch with the {model} of database {database}")]
    Disconnected {
        /// The server.
        remote: Remote,
        /// The database.
        database: Arc<str>,
        /// `cluster` or `relay source`.
        model: &'static str,
    },
    /// A member that lags behind what another has shown already.
    #[error(
        "{remote} is behind: database {database} is at {index} there, at {newest} elsewhere in its cluster"
    )]
    Behind {
        /// The server.
        remote: Remote,
        /// The database.
        database: Arc<str>,
        /// Its place in the cluster's log.
        index: i64,
        /// The newest place that was seen.
        newest: i64,
    },
    /// A follower, where only the leader will do.
    #[error("{remote} does not lead the cluster of database {database}; only its leader will do")]
    NotLeader {
        /// The server.
        remote: Remote,
        /// The database.
        database: Arc<str>,
    },
}

/// The newest place in a cluster's log that any member has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newest {
    /// A database that was made anew starts anew.
    cluster: Option<Uuid>,
    index: i64,
}

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(crate) struct Demands {
    pub(crate) remote: Remote,
    pub(crate) database: Arc<str>,
    pub(crate) leader_only: bool,
    /// Whether to follow its place in the log, which changes with every transaction.
    pub(crate) index: bool,
}

/// What a server says of itself, kept up to date.
#[derive(Debug)]
pub(crate) struct Served {
    demands: Demands,
    cache: Cache,
    newest: Newest,
}

impl Served {
    /// Reads what `get_schema` says of `_Server`.
    ///
    /// # Errors
    /// Where it is not as any server has it.
    pub(crate) fn new(
        schema: &[u8],
        demands: Demands,
        newest: Newest,
    ) -> Result<Self, SessionError> {
        let mut table = TableRequest::new("Database", ["name", "model", "connected", "leader"])
            .optional_column("cid");
        if demands.index {
            table = table.optional_column("index");
        }
        let request = MonitorRequest::new().table(table);
        let mut cache = Cache::default();
        cache.set_layouts(schema::layouts(schema, DATABASE, &request)?);
        Ok(Self {
            demands,
            cache,
            newest,
        })
    }

    /// The params of the `monitor_cond_since` that follows the one row.
    pub(crate) fn monitor_params(&self) -> Vec<u8> {
        let name = Clause::equal("name", &*self.demands.database);
        let requests = Requests {
            layouts: self.cache.layouts(),
            conditions: &[MonitorCondition::AnyOf(vec![name])],
        };
        write_params(&(DATABASE, MONITOR, requests, Uuid::NIL))
    }

    /// Takes the answer to it.
    ///
    /// # Errors
    /// Where it cannot be read, or the server is of no use.
    pub(crate) fn reply(&mut self, result: &[u8]) -> Result<(), SessionError> {
        let (layouts, interner) = self.cache.decoder_parts();
        let reply = Decoder::new(layouts, interner)
            .monitor_reply(result)
            .map_err(unreadable)?;
        self.cache.replace(reply.updates, &mut Vec::new())?;
        self.check()
    }

    /// Takes the params of an `update3` that [`concerns_server`].
    ///
    /// # Errors
    /// Where it cannot be read, or the server has ceased to be of use.
    pub(crate) fn update(&mut self, params: &[u8]) -> Result<(), SessionError> {
        let (layouts, interner) = self.cache.decoder_parts();
        let update = Decoder::new(layouts, interner)
            .update3(params, MONITOR)
            .map_err(unreadable)?;
        if let Some(update) = update {
            self.cache.apply(update.updates, &mut Vec::new())?;
        }
        self.check()
    }

    /// The newest place in the log that was seen so far.
    pub(crate) const fn newest(&self) -> Newest {
        self.newest
    }

    fn check(&mut self) -> Result<(), SessionError> {
        // A database that is not served at all is told by the answer to its own requests.
        let row = self.cache.rows(0).next().map(|(_, row)| row.clone());
        match row {
            Some(row) => Ok(self.check_row(&row)?),
            None => Ok(()),
        }
    }

    fn check_row(&mut self, row: &Row) -> Result<(), UnfitServer> {
        let model = match row.string("model").as_deref() {
            Ok("clustered") => "cluster",
            Ok("relay") => "relay source",
            // A standalone database is all there is of it.
            _ => return Ok(()),
        };
        let Demands {
            remote, database, ..
        } = &self.demands;
        let named = || (remote.clone(), Arc::clone(database));
        if row.boolean("connected") == Ok(false) {
            let (remote, database) = named();
            return Err(UnfitServer::Disconnected {
                remote,
                database,
                model,
            });
        }
        if let (Ok(Some(cluster)), Ok(Some(index))) =
            (optional_uuid(row, "cid"), row.optional_integer("index"))
        {
            if self.newest.cluster == Some(cluster) && index < self.newest.index {
                let (remote, database) = named();
                return Err(UnfitServer::Behind {
                    remote,
                    database,
                    index,
                    newest: self.newest.index,
                });
            }
            self.newest = Newest {
                cluster: Some(cluster),
                index,
            };
        }
        if self.demands.leader_only && row.boolean("leader") == Ok(false) {
            let (remote, database) = named();
            return Err(UnfitServer::NotLeader { remote, database });
        }
        Ok(())
    }
}

fn optional_uuid(row: &Row, column: &str) -> Result<Option<Uuid>, super::value::RowError> {
    row.uuids(column).map(|uuids| uuids.first().copied())
}

fn unreadable(source: serde_json::Error) -> SessionError {
    SessionError::Update {
        database: DATABASE.to_owned(),
        source,
    }
}

/// Whether the params of an `update3` belong to the monitor of `_Server`; tells without reading the
/// rows.
pub(crate) fn concerns_server(params: &[u8]) -> bool {
    params
        .trim_ascii_start()
        .strip_prefix(b"[")
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\"server\""))
}

#[cfg(test)]
mod tests;
