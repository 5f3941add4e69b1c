//! Schemas that change while a client is connected.

use std::{fs, path::PathBuf, process::Command};

use neighsteer::ovsdb::{MonitorRequest, Options, SessionError, TableRequest};
use neighsteer_tests::{cluster::Cluster, database::DatabaseServer};
use tempfile::TempDir;

use crate::{
    peer::{Peer, bindings, southbound},
    writer::{self, Writer},
};

/// The southbound schema with another version, and a column more in `MAC_Binding` if asked for.
fn schema(directory: &TempDir, version: &str, with_column: bool) -> PathBuf {
    let text = fs::read_to_string(DatabaseServer::SOUTHBOUND).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    schema["version"] = version.into();
    schema.as_object_mut().unwrap().remove("cksum");
    if with_column {
        schema["tables"]["MAC_Binding"]["columns"]["neighsteer_added"] =
            serde_json::json!({ "type": "integer" });
    }
    let path = directory.path().join(version);
    fs::write(&path, schema.to_string()).unwrap();
    path
}

fn convert(server: &DatabaseServer, schema: &std::path::Path) {
    let output = Command::new("ovsdb-client")
        .args(["--timeout=30", "convert"])
        .arg(server.remote().to_string())
        .arg(schema)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Follows the column where there is one.
fn options(options: Options) -> Options {
    Options {
        monitor: MonitorRequest::new().table(bindings().optional_column("neighsteer_added")),
        dedicated_writer: true,
        ..options
    }
}

async fn survives_conversions(server: &DatabaseServer, other: Options) {
    let directory = tempfile::tempdir().unwrap();
    let mut peer = Peer::synced(options(other.clone())).await;
    let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
    for (version, with_column) in [("90.1.0", true), ("90.2.0", false), ("90.3.0", true)] {
        writer.progress().await;
        peer.errors.clear();
        let synced = peer.synced;
        convert(server, &schema(&directory, version, with_column));
        peer.until(|peer| peer.synced > synced).await;
        assert!(
            peer.errors
                .iter()
                .any(|error| matches!(**error, SessionError::MonitorCanceled)),
            "{:?}",
            peer.errors
        );
        let has_column = |peer: &Peer| {
            let row = peer.rows.values().next().unwrap();
            row.integer("neighsteer_added").is_ok()
        };
        assert_eq!(has_column(&peer), with_column);
    }
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, options(other)).await;
}

#[tokio::test]
async fn converted_database_is_read_anew_under_its_new_schema() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    survives_conversions(&server, southbound(&server)).await;
}

#[tokio::test]
async fn converted_cluster_is_read_anew_under_its_new_schema() {
    let cluster = Cluster::start(DatabaseServer::SOUTHBOUND, "OVN_Southbound", 3).unwrap();
    let leader = &cluster.members[cluster.leader().unwrap()];
    let other = Options {
        remotes: cluster.remotes(),
        ..southbound(leader)
    };
    survives_conversions(leader, other).await;
}

#[tokio::test]
async fn schema_that_lacks_a_needed_column_is_named_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(schema(&directory, "90.1.0", true)).unwrap();
    let table = TableRequest::new("MAC_Binding", ["neighsteer_added", "ip"]);
    let mut peer = Peer::synced(Options {
        monitor: MonitorRequest::new().table(table),
        ..southbound(&server)
    })
    .await;
    convert(&server, &schema(&directory, "90.2.0", false));
    peer.until(|peer| {
        peer.errors
            .iter()
            .any(|error| matches!(**error, SessionError::Schema(_)))
    })
    .await;
    let text = neighsteer::agent::chain(&**peer.errors.last().unwrap());
    assert!(text.contains("neighsteer_added"), "{text}");
    convert(&server, &schema(&directory, "90.3.0", true));
    peer.until(|peer| peer.synced == 2).await;
}
