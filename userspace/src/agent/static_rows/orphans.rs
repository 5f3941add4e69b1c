//! Rows of ports that nobody has.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    agent::{Connection, databases::STATIC_MAC_BINDING},
    ovsdb::{MonitorRequest, Options, Snapshot, SnapshotError, TableRequest},
    rows::{Database, Table},
};

/// External ports of gateway routers that northbound static rows name and that no router has. A row
/// left for such a port serves nobody, and stops northd before OVN 25.03. The state file, which says
/// which ports were ours, does not outlive a reboot, and the northbound database does.
///
/// # Errors
/// Where the northbound database does not answer.
pub async fn orphaned_ports(connection: &Connection) -> Result<BTreeSet<Arc<str>>, SnapshotError> {
    let request = MonitorRequest::new()
        .table(TableRequest::new(STATIC_MAC_BINDING, ["logical_port"]))
        .table(TableRequest::new(Table::LogicalRouterPort.name(), ["name"]));
    let snapshot = Snapshot::fetch_with(Options {
        tls: connection.tls.clone(),
        ..Options::new(
            connection.northbound.clone(),
            Database::Northbound.name(),
            request,
        )
    })
    .await?;
    let texts = |table: &str, column: &str| -> BTreeSet<Arc<str>> {
        let rows = snapshot.rows(table);
        rows.filter_map(|(_, row)| row.string(column).ok())
            .collect()
    };
    let ports = texts(Table::LogicalRouterPort.name(), "name");
    let mut orphaned = texts(STATIC_MAC_BINDING, "logical_port");
    orphaned.retain(|port| port.starts_with("rtoe-GR_") && !ports.contains(port));
    Ok(orphaned)
}
