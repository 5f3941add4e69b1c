//! What the node looks like now, for commands that look once.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    agent::{
        Connection, ModeError, NodeMode, chain,
        databases::{
            MAC_BINDING, MAC_BINDING_COLUMNS, STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS,
            external_ids, request,
        },
        host_side::{self, HostSide},
        model::Model,
    },
    mirror::{BindingRow, GroupMembers, Member},
    ovsdb::{
        Change, Clause, Client, Event, Monitor, MonitorCondition, MonitorRequest, Operation,
        Options, Remote, Snapshot, TableRequest, TransactError,
    },
    rows::{Database, Table},
    statics::{StaticRow, Target},
};

/// How long one database may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

async fn fetch(
    connection: &Connection,
    remotes: &[Remote],
    database: Database,
    request: MonitorRequest,
) -> anyhow::Result<Vec<Change>> {
    if connection.host.mode == NodeMode::DpuHost {
        return Err(ModeError::NoDatabase.into());
    }
    let snapshot = Snapshot::fetch_with(Options {
        connect_timeout: PATIENCE,
        tls: connection.tls.clone(),
        ..Options::new(remotes.to_vec(), database.name(), request)
    })
    .await?;
    let changes = snapshot.tables.into_iter().flat_map(|(table, rows)| {
        rows.into_iter().map(move |(uuid, row)| Change {
            table: Arc::clone(&table),
            uuid,
            old: None,
            new: Some(row),
        })
    });
    Ok(changes.collect())
}

/// Reads what the switch is configured to be; there are no groups without OVN's databases.
///
/// # Errors
/// Where the Open_vSwitch database does not answer.
pub(super) async fn switch_model(connection: &Connection) -> anyhow::Result<Model> {
    let mut model = Model::default();
    model.apply(
        &fetch(
            connection,
            &connection.ovs,
            Database::OpenVSwitch,
            request(Database::OpenVSwitch, ""),
        )
        .await?,
    );
    Ok(model)
}

/// Reads what the switch and OVN are configured to be. Without the southbound database no router has
/// a datapath.
///
/// # Errors
/// Where a database does not answer.
pub(super) async fn northbound_model(connection: &Connection) -> anyhow::Result<Model> {
    let mut model = switch_model(connection).await?;
    let chassis = {
        let mut roots = model.rows().open_vswitch.values();
        let root = roots.next();
        let root = root.context("the Open_vSwitch database has no Open_vSwitch row")?;
        let chassis = root.external_ids.get("system-id").cloned();
        chassis.context("external_ids:system-id of the Open_vSwitch row is not set")?
    };
    let northbound = fetch(
        connection,
        &connection.northbound,
        Database::Northbound,
        request(Database::Northbound, &chassis),
    )
    .await?;
    model.apply(&northbound);
    rebuild(connection, &mut model);
    Ok(model)
}

/// Reads the rows of `Static_MAC_Binding` of these ports, all of the same moment.
///
/// # Errors
/// Where the northbound database does not answer.
pub(super) async fn static_rows(
    connection: &Connection,
    targets: &[Target],
) -> anyhow::Result<Vec<StaticRow>> {
    let clauses = targets
        .iter()
        .map(|target| Clause::equal("logical_port", &*target.port))
        .collect();
    let table = TableRequest::new(STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS)
        .filter(MonitorCondition::AnyOf(clauses));
    let changes = fetch(
        connection,
        &connection.northbound,
        Database::Northbound,
        MonitorRequest::new().table(table),
    )
    .await?;
    let rows = changes
        .iter()
        .filter_map(|change| StaticRow::parse(change.uuid, change.new.as_ref()?).ok());
    Ok(rows.collect())
}

/// Writes to a database for as long as it lives.
pub(super) struct Writer {
    client: Client,
    _monitor: Monitor,
    task: JoinHandle<()>,
}

impl Writer {
    /// A writer to the northbound database, once it is connected.
    ///
    /// # Errors
    /// Where the database does not answer.
    pub(super) async fn to_northbound(connection: &Connection) -> anyhow::Result<Self> {
        let options = Options {
            connect_timeout: PATIENCE,
            tls: connection.tls.clone(),
            ..Options::new(
                connection.northbound.clone(),
                Database::Northbound.name(),
                MonitorRequest::new(),
            )
        };
        let (client, mut monitor, driver) = Client::connect(options);
        let task = tokio::spawn(driver.run());
        let mut last = None;
        let connected = timeout(PATIENCE, async {
            loop {
                match monitor.next().await {
                    Some(Event::Synced(_)) => return true,
                    Some(Event::Changes(_)) => {}
                    Some(Event::Disconnected { error }) => last = Some(error),
                    None => return false,
                }
            }
        });
        if connected.await == Ok(true) {
            return Ok(Self {
                client,
                _monitor: monitor,
                task,
            });
        }
        let why = last.map(|error| format!(": {}", chain(&*error)));
        anyhow::bail!(
            "the northbound database takes no transaction{}",
            why.unwrap_or_default()
        )
    }

    /// Carries out a transaction.
    ///
    /// # Errors
    /// Where it is refused, or the database does not answer.
    pub(super) async fn transact(&self, operations: &[Operation]) -> Result<(), TransactError> {
        self.client.transact(operations).await.map(drop)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads the rows of all three databases and finds the groups.
///
/// # Errors
/// Where a database does not answer.
pub(super) async fn model(connection: &Connection) -> anyhow::Result<Model> {
    model_of(connection, |northbound| northbound).await
}

/// The same, with the routers of other chassis among what is left out.
///
/// # Errors
/// Where a database does not answer.
pub(super) async fn model_of_every_chassis(connection: &Connection) -> anyhow::Result<Model> {
    model_of(connection, |mut northbound| {
        for table in &mut northbound.tables {
            if &*table.table == Table::LogicalRouter.name() {
                table.condition = MonitorCondition::Every;
            }
        }
        northbound
    })
    .await
}

async fn model_of(
    connection: &Connection,
    adjust: impl FnOnce(MonitorRequest) -> MonitorRequest,
) -> anyhow::Result<Model> {
    let mut model = Model::default();
    let ovs = fetch(
        connection,
        &connection.ovs,
        Database::OpenVSwitch,
        request(Database::OpenVSwitch, ""),
    )
    .await?;
    let ids = external_ids(&ovs).context("the Open_vSwitch database has no Open_vSwitch row")?;
    let chassis = ids
        .get("system-id")
        .context("external_ids:system-id of the Open_vSwitch row is not set")?;
    let southbound = southbound(connection, &ids)?;
    let northbound = fetch(
        connection,
        &connection.northbound,
        Database::Northbound,
        adjust(request(Database::Northbound, chassis)),
    )
    .await?;
    let bindings = fetch(
        connection,
        &southbound,
        Database::Southbound,
        request(Database::Southbound, chassis),
    )
    .await?;
    for changes in [ovs, northbound, bindings] {
        model.apply(&changes);
    }
    rebuild(connection, &mut model);
    Ok(model)
}

/// Finds the groups, on a DPU with the host behind a representor.
fn rebuild(connection: &Connection, model: &mut Model) {
    host_side::rebuild(model, HostSide::of(&connection.host).as_mut());
}

fn southbound(
    connection: &Connection,
    ids: &crate::rows::StringMap,
) -> anyhow::Result<Vec<Remote>> {
    match &connection.southbound {
        Some(remotes) => Ok(remotes.clone()),
        None => {
            let text = ids
                .get("ovn-remote")
                .context("external_ids:ovn-remote is not set: give --ovn-sb")?;
            Remote::parse_list(text)
                .context("external_ids:ovn-remote of the Open_vSwitch row: give --ovn-sb instead")
        }
    }
}

/// Reads the rows of `MAC_Binding` of a group's routers.
///
/// # Errors
/// Where the southbound database does not answer.
pub(super) async fn binding_rows(
    connection: &Connection,
    model: &Model,
    members: &GroupMembers,
) -> anyhow::Result<Vec<BindingRow>> {
    let routers = members.source.iter().chain(&members.followers);
    rows_of(connection, model, routers).await
}

/// Reads the rows of `MAC_Binding` of these routers, all of the same moment.
///
/// # Errors
/// Where the southbound database does not answer.
pub(super) async fn rows_of(
    connection: &Connection,
    model: &Model,
    routers: impl Iterator<Item = &Member>,
) -> anyhow::Result<Vec<BindingRow>> {
    let root = model
        .rows()
        .open_vswitch
        .values()
        .next()
        .context("the Open_vSwitch row is gone")?;
    let clauses = routers
        .map(|member| Clause::equal("logical_port", &*member.port))
        .collect();
    let table = TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS)
        .filter(MonitorCondition::AnyOf(clauses));
    let remotes = southbound(connection, &root.external_ids)?;
    let changes = fetch(
        connection,
        &remotes,
        Database::Southbound,
        MonitorRequest::new().table(table),
    )
    .await?;
    // Rows without an address are nobody's binding; the running agent counts them.
    let rows = changes
        .iter()
        .filter_map(|change| BindingRow::parse(change.uuid, change.new.as_ref()?).ok());
    // Those of IPv6 addresses are nobody's business on a DPU.
    let ipv4_only = connection.host.mode == NodeMode::Dpu;
    Ok(rows.filter(|row| !ipv4_only || row.ip.is_ipv4()).collect())
}
