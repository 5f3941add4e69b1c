//! A southbound database without OVN: datapaths to refer to, and bindings.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use neighsteer::{
    agent::databases::{MAC_BINDING, MAC_BINDING_COLUMNS},
    ovsdb::{
        Client, Event, Monitor, MonitorCondition, MonitorRequest, Operation, OperationResult,
        Options, Remote, TableRequest, Uuid,
    },
};
use tokio::time::timeout;

/// The MAC of [`insert`]'s rows.
pub const NEIGHBOUR_MAC: &str = "02:00:00:00:00:01";

/// The bindings that match, and nothing else.
#[must_use]
pub fn options(remote: Remote, condition: MonitorCondition) -> Options {
    let bindings = TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS).filter(condition);
    Options {
        transact_timeout: Duration::from_secs(300),
        ..Options::new(
            vec![remote],
            "OVN_Southbound",
            MonitorRequest::new().table(bindings),
        )
    }
}

/// How long the first snapshot may take, whichever server gives it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for the first snapshot; its number of rows.
///
/// # Errors
/// Where no server gives one.
pub async fn synced(monitor: &mut Monitor) -> anyhow::Result<usize> {
    let mut last = None;
    let first = timeout(PATIENCE, async {
        loop {
            match monitor.next().await.context("the client has ended")? {
                Event::Synced(batch) => return anyhow::Ok(batch.changes.len()),
                // Another one may do better: of a cluster, only one leads.
                Event::Disconnected { error } => last = Some(error),
                other => bail!("instead of a snapshot: {other:?}"),
            }
        }
    });
    match first.await {
        Ok(rows) => rows,
        Err(_) => bail!("no snapshot within {PATIENCE:?}: {last:?}"),
    }
}

/// A client that only writes.
///
/// # Errors
/// Where the server does not answer.
pub async fn writer(remote: Remote) -> anyhow::Result<Client> {
    let none = MonitorCondition::AnyOf(Vec::new());
    let (client, mut monitor, driver) = Client::connect(options(remote, none));
    tokio::spawn(driver.run());
    synced(&mut monitor).await?;
    Ok(client)
}

/// As many datapaths.
///
/// # Errors
/// Where the server refuses them.
pub async fn datapaths(client: &Client, count: usize) -> anyhow::Result<Vec<Uuid>> {
    let inserts: Vec<Operation> = (1..=count)
        .map(|key| {
            let key = i64::try_from(key).unwrap_or(i64::MAX);
            Operation::insert("Datapath_Binding")
                .set("tunnel_key", key)
                .into()
        })
        .collect();
    let results = client.transact(&inserts).await?;
    results
        .into_iter()
        .map(|result| match result {
            OperationResult::Inserted(uuid) => Ok(uuid),
            other => bail!("an insert gave {other:?}"),
        })
        .collect()
}

/// A binding to insert; `timestamp` in ms since the epoch.
#[must_use]
pub fn insert(port: &str, datapath: Uuid, ip: &str, timestamp: i64) -> Operation {
    Operation::insert(MAC_BINDING)
        .set("logical_port", port)
        .set("datapath", datapath)
        .set("ip", ip)
        .set("mac", NEIGHBOUR_MAC)
        .set("timestamp", timestamp)
        .into()
}

/// ms since the epoch.
#[must_use]
pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
