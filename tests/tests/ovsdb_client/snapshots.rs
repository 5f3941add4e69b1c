//! One look, for commands.

use std::{error::Error, time::Duration};

use neighsteer::ovsdb::{
    MonitorRequest, Remote, SessionError, Snapshot, SnapshotError, TableRequest,
};
use neighsteer_tests::database::DatabaseServer;

use crate::peer::{DEADLINE, Peer, bindings, southbound};

async fn fetch(remote: Remote, table: TableRequest) -> Result<Snapshot, SnapshotError> {
    let request = MonitorRequest::new().table(table);
    Snapshot::fetch(&[remote], "OVN_Southbound", request, DEADLINE).await
}

/// The session's error.
fn cause(error: &SnapshotError) -> &SessionError {
    error
        .source()
        .unwrap()
        .downcast_ref::<Box<SessionError>>()
        .unwrap()
}

#[tokio::test]
async fn snapshot_reads_every_table_that_was_asked_for() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuids = peer.bind(datapath, &["a"]).await;
    let request = MonitorRequest::new()
        .table(bindings())
        .table(TableRequest::new("Chassis", ["name"]).optional_column("no_such_column"));
    let remotes = [
        "unix:/nonexistent/db.sock".parse().unwrap(),
        server.tcp_remote(),
    ];
    let snapshot = Snapshot::fetch(&remotes, "OVN_Southbound", request, DEADLINE)
        .await
        .unwrap();
    let found: Vec<_> = snapshot.rows("MAC_Binding").map(|(uuid, _)| uuid).collect();
    assert_eq!(found, uuids);
    assert_eq!(snapshot.tables["Chassis"], []);
}

#[tokio::test]
async fn missing_socket_and_dead_server_say_what_to_do() {
    let missing: Remote = "unix:/nonexistent/db.sock".parse().unwrap();
    let error = fetch(missing, bindings()).await.unwrap_err();
    assert_eq!(
        cause(&error).to_string(),
        "socket missing: /nonexistent/db.sock: is ovsdb-server running?"
    );
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    server.kill().unwrap();
    let error = fetch(server.remote(), bindings()).await.unwrap_err();
    let said = cause(&error).to_string();
    assert!(said.starts_with("nobody listens on socket"), "{said}");
    let error = fetch(server.tcp_remote(), bindings()).await.unwrap_err();
    let said = cause(&error).to_string();
    assert!(
        said.starts_with("cannot connect to tcp:127.0.0.1:"),
        "{said}"
    );
}

#[tokio::test]
async fn table_and_column_that_the_schema_lacks_are_named() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let table = TableRequest::new("Old_Table", ["name"]);
    let error = fetch(server.remote(), table).await.unwrap_err();
    let said = cause(&error).to_string();
    assert!(said.contains("has no table Old_Table"), "{said}");
    let table = TableRequest::new("Chassis", ["name", "old_column"]);
    let error = fetch(server.remote(), table).await.unwrap_err();
    let said = cause(&error).to_string();
    assert!(said.contains("has no column old_column"), "{said}");
}

#[tokio::test]
async fn server_that_says_nothing_is_left_in_time() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    server.pause().unwrap();
    let request = MonitorRequest::new().table(bindings());
    let error = Snapshot::fetch(
        &[server.remote()],
        "OVN_Southbound",
        request,
        Duration::from_millis(100),
    )
    .await
    .unwrap_err();
    let said = cause(&error).to_string();
    assert!(said.contains("did not answer within 0.1 s"), "{said}");
}
