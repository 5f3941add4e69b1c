//! The three databases, from nothing to the first snapshot of each.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinHandle, time::timeout};

use super::config::Connection;
use crate::{
    ovsdb::{
        self, Batch, Change, Clause, Client, Driver, Event, Monitor, MonitorCondition,
        MonitorRequest, Options, Remote, RemoteError, SessionError, TableRequest, TlsFiles,
    },
    rows::{self, Database, StringMap},
};

/// The southbound table that the mirror reads and writes.
pub const MAC_BINDING: &str = "MAC_Binding";
/// Its columns.
pub const MAC_BINDING_COLUMNS: [&str; 5] = ["logical_port", "ip", "mac", "timestamp", "datapath"];

/// The northbound table of node IPs' bindings.
pub const STATIC_MAC_BINDING: &str = "Static_MAC_Binding";
/// Its columns.
pub const STATIC_MAC_BINDING_COLUMNS: [&str; 4] =
    ["logical_port", "ip", "mac", "override_dynamic_mac"];

/// Why the databases could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// No snapshot came.
    #[error("cannot read database {database} at {remotes}")]
    Unreachable {
        /// The database.
        database: &'static str,
        /// Where it should be.
        remotes: String,
        /// Why not.
        source: Arc<SessionError>,
    },
    /// Nothing came at all.
    #[error("database {database} at {remotes} gave no answer in {after:?}")]
    Silent {
        /// The database.
        database: &'static str,
        /// Where it should be.
        remotes: String,
        /// How long was waited.
        after: Duration,
    },
    /// The row that names this chassis is not complete.
    #[error("external_ids:{key} of the Open_vSwitch row is not set: is this node an OVN chassis?")]
    NoChassis {
        /// The key that is missing.
        key: &'static str,
    },
    /// `ovn-remote` is not a remote.
    #[error("external_ids:ovn-remote of the Open_vSwitch row; give --ovn-sb instead")]
    OvnRemote {
        /// Why not.
        source: RemoteError,
    },
    /// A database's task has ended, which it never should.
    #[error("the task that follows database {database} has ended")]
    TaskEnded {
        /// The database.
        database: &'static str,
    },
}

/// One database: its handle and its news.
#[derive(Debug)]
pub struct Followed {
    /// Which one.
    pub database: Database,
    /// Sends transactions.
    pub client: Client,
    monitor: Monitor,
    task: JoinHandle<()>,
    remotes: Vec<Remote>,
}

impl Followed {
    fn start(
        database: Database,
        remotes: Vec<Remote>,
        request: MonitorRequest,
        tls: Option<&TlsFiles>,
        writes: bool,
    ) -> Self {
        let options = Options {
            tls: tls.cloned(),
            // A lock excludes nobody who asks another member for it. Rows that are only read are known
            // to any member that is not behind.
            leader_only: writes,
            // Whoever waits for bindings need not wait for their way back to the mirror.
            dedicated_writer: writes,
            ..Options::new(remotes.clone(), database.name(), request)
        };
        let (client, monitor, driver): (Client, Monitor, Driver) = Client::connect(options);
        Self {
            database,
            client,
            monitor,
            task: tokio::spawn(driver.run()),
            remotes,
        }
    }

    /// Looks for the database elsewhere from now on.
    fn move_to(&mut self, remotes: Vec<Remote>) {
        if remotes != self.remotes {
            let (database, from) = (self.database.name(), self.remotes());
            self.remotes.clone_from(&remotes);
            tracing::warn!(database, %from, to = %self.remotes(), "database is elsewhere now");
            self.client.set_remotes(remotes);
        }
    }

    /// The next event. Cancel-safe.
    ///
    /// # Errors
    /// Where the task behind it has ended.
    pub async fn next(&mut self) -> Result<Event, DatabaseError> {
        self.monitor.next().await.ok_or(DatabaseError::TaskEnded {
            database: self.database.name(),
        })
    }

    /// Waits for the first snapshot. What retrying will hardly mend (a socket that is not there, no
    /// permission, a schema that lacks a table) ends it at once.
    async fn first_snapshot(&mut self, patience: Duration) -> Result<Batch, DatabaseError> {
        let (database, remotes) = (self.database.name(), self.remotes());
        let mut last = None;
        let waited = timeout(patience, async {
            loop {
                match self.next().await? {
                    Event::Synced(batch) => return Ok(batch),
                    Event::Changes(_) => {}
                    // Of several servers another may do better.
                    Event::Disconnected { error }
                        if self.remotes.len() == 1 && is_final(&error) =>
                    {
                        return Err(DatabaseError::Unreachable {
                            database,
                            remotes: remotes.clone(),
                            source: error,
                        });
                    }
                    Event::Disconnected { error } => last = Some(error),
                }
            }
        });
        match waited.await {
            Ok(result) => result,
            Err(_) => Err(match last {
                Some(source) => DatabaseError::Unreachable {
                    database,
                    remotes,
                    source,
                },
                None => DatabaseError::Silent {
                    database,
                    remotes,
                    after: patience,
                },
            }),
        }
    }

    fn remotes(&self) -> String {
        self.remotes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_final(error: &SessionError) -> bool {
    use ovsdb::ConnectError::{NoPermission, NoTlsFiles, SocketMissing};
    matches!(
        error,
        SessionError::Connect(SocketMissing { .. } | NoPermission { .. } | NoTlsFiles { .. })
            | SessionError::Schema(_)
            | SessionError::Refused { .. }
    )
}

/// All three, each with its first snapshot taken.
#[derive(Debug)]
pub struct Databases {
    /// Open_vSwitch.
    pub ovs: Followed,
    /// OVN_Northbound.
    pub northbound: Followed,
    /// OVN_Southbound.
    pub southbound: Followed,
    /// `external_ids:system-id` of the Open_vSwitch row.
    pub chassis: String,
    /// Whether the southbound database is where `ovn-remote` says.
    follow_ovn_remote: bool,
}

impl Databases {
    /// Connects to all three and returns the first snapshots, in the order of the fields.
    ///
    /// No row of `MAC_Binding`, `Static_MAC_Binding` and `Datapath_Binding` is among them: which ones
    /// matter is known only afterwards.
    ///
    /// # Errors
    /// Where one of them does not answer, or this node is not an OVN chassis.
    pub async fn connect(
        connection: &Connection,
        writes_static_rows: bool,
    ) -> Result<(Self, [Batch; 3]), DatabaseError> {
        Self::start(connection, writes_static_rows, true).await
    }

    /// The same for somebody who only reads: any member of a cluster will do.
    ///
    /// # Errors
    /// The same.
    pub async fn connect_to_read(
        connection: &Connection,
    ) -> Result<(Self, [Batch; 3]), DatabaseError> {
        Self::start(connection, false, false).await
    }

    async fn start(
        connection: &Connection,
        writes_static_rows: bool,
        mirrors: bool,
    ) -> Result<(Self, [Batch; 3]), DatabaseError> {
        let patience = connection.startup_timeout;
        let tls = connection.tls.as_ref();
        let request = request(Database::OpenVSwitch, "");
        let remotes = connection.ovs.clone();
        let mut ovs = Followed::start(Database::OpenVSwitch, remotes, request, tls, false);
        let ovs_batch = ovs.first_snapshot(patience).await?;
        let ids = external_ids(&ovs_batch.changes).unwrap_or_default();
        let id = |key| ids.get(key).ok_or(DatabaseError::NoChassis { key });
        let chassis = id("system-id")?;
        let remotes = match &connection.southbound {
            Some(remotes) => remotes.clone(),
            None => Remote::parse_list(id("ovn-remote")?)
                .map_err(|source| DatabaseError::OvnRemote { source })?,
        };
        let statics = TableRequest::new(STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS)
            .filter(MonitorCondition::AnyOf(Vec::new()));
        let mut northbound = Followed::start(
            Database::Northbound,
            connection.northbound.clone(),
            self::request(Database::Northbound, chassis).table(statics),
            tls,
            writes_static_rows,
        );
        let bindings = TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS)
            .filter(MonitorCondition::AnyOf(Vec::new()));
        let table = rows::Table::DatapathBinding;
        let datapaths = TableRequest::new(table.name(), table.columns().iter().copied())
            .filter(MonitorCondition::AnyOf(Vec::new()));
        let mut southbound = Followed::start(
            Database::Southbound,
            remotes,
            self::request(Database::Southbound, chassis)
                .table(bindings)
                .table(datapaths),
            tls,
            mirrors,
        );
        let northbound_batch = northbound.first_snapshot(patience).await?;
        let southbound_batch = southbound.first_snapshot(patience).await?;
        Ok((
            Self {
                ovs,
                northbound,
                southbound,
                chassis: chassis.to_string(),
                follow_ovn_remote: connection.southbound.is_none(),
            },
            [ovs_batch, northbound_batch, southbound_batch],
        ))
    }

    /// Takes changes of the Open_vSwitch database: the southbound one is where `ovn-remote` says, as
    /// for ovn-controller. One that is gone or cannot be read leaves things as they are.
    pub fn follow_ovn_remote(&mut self, changes: &[Change]) {
        if !self.follow_ovn_remote {
            return;
        }
        let ids = external_ids(changes);
        let Some(text) = ids.as_ref().and_then(|ids| ids.get("ovn-remote")) else {
            return;
        };
        match Remote::parse_list(text) {
            Ok(remotes) => self.southbound.move_to(remotes),
            Err(error) => {
                tracing::warn!(%error, "ovn-remote cannot be read; the former one stays");
            }
        }
    }

    /// The next event of any of them. Cancel-safe.
    ///
    /// # Errors
    /// Where a task behind one has ended.
    pub async fn next(&mut self) -> Result<(Database, Event), DatabaseError> {
        tokio::select! {
            // Bindings first: a packet may be waiting for one.
            biased;
            event = self.southbound.next() => Ok((Database::Southbound, event?)),
            event = self.ovs.next() => Ok((Database::OpenVSwitch, event?)),
            event = self.northbound.next() => Ok((Database::Northbound, event?)),
        }
    }
}

/// `external_ids` of the one Open_vSwitch row.
#[must_use]
pub fn external_ids(changes: &[Change]) -> Option<StringMap> {
    changes
        .iter()
        .filter(|change| &*change.table == rows::Table::OpenVSwitch.name())
        .find_map(|change| change.new.as_ref())?
        .string_map("external_ids")
        .ok()
}

/// What the agent monitors of a database, bindings aside.
#[must_use]
pub fn request(database: Database, chassis: &str) -> MonitorRequest {
    rows::monitored(database, chassis).into_iter().fold(
        MonitorRequest::new(),
        |request, monitored| {
            let table = TableRequest::new(
                monitored.table.name(),
                monitored.table.columns().iter().copied(),
            );
            request.table(if monitored.conditions.is_empty() {
                table
            } else {
                let clauses = monitored.conditions.into_iter().map(clause);
                table.filter(MonitorCondition::AnyOf(clauses.collect()))
            })
        },
    )
}

fn clause(condition: rows::Condition) -> Clause {
    let function = match condition.function {
        "includes" => ovsdb::Function::Includes,
        _ => ovsdb::Function::Equal,
    };
    Clause::new(condition.column, function, condition.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ovsdb::{Atom, Datum, Row};

    /// What a change of the Open_vSwitch row brings; `None`: it goes.
    fn ovs_row(remote: Option<&str>) -> Change {
        let new = remote.map(|remote| {
            let ids = [(
                Atom::String("ovn-remote".into()),
                Atom::String(remote.into()),
            )];
            let columns: [Arc<str>; 1] = ["external_ids".into()];
            Row::new(columns.into(), vec![Datum::map(ids)]).unwrap()
        });
        Change {
            table: rows::Table::OpenVSwitch.name().into(),
            uuid: ovsdb::Uuid(uuid::Uuid::nil()),
            old: None,
            new,
        }
    }

    fn databases(follow_ovn_remote: bool) -> Databases {
        let start = |database: Database| {
            let remotes = vec!["unix:/nowhere".parse().unwrap()];
            Followed::start(database, remotes, request(database, "a"), None, false)
        };
        Databases {
            ovs: start(Database::OpenVSwitch),
            northbound: start(Database::Northbound),
            southbound: start(Database::Southbound),
            chassis: "a".to_owned(),
            follow_ovn_remote,
        }
    }

    #[tokio::test]
    async fn southbound_database_is_where_ovn_remote_says_unless_it_was_given() {
        let mut given = databases(false);
        given.follow_ovn_remote(&[ovs_row(Some("unix:/a"))]);
        assert_eq!(given.southbound.remotes(), "unix:/nowhere");
        let mut followed = databases(true);
        // A row that is made anew goes and comes.
        followed.follow_ovn_remote(&[ovs_row(None), ovs_row(Some("unix:/a,tcp:b:1"))]);
        assert_eq!(followed.southbound.remotes(), "unix:/a,tcp:b:1");
        for nothing in [ovs_row(Some("garbage")), ovs_row(Some("")), ovs_row(None)] {
            followed.follow_ovn_remote(&[nothing]);
            assert_eq!(followed.southbound.remotes(), "unix:/a,tcp:b:1");
        }
    }
}
