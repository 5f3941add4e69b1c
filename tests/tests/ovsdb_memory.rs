//! What cached rows cost, in a process where nothing else happens.

use std::{fmt::Write as _, fs};

use neighsteer::ovsdb::{
    Uuid,
    cache::Cache,
    wire::{
        monitor::{MonitorRequest, TableRequest},
        schema,
        updates::Decoder,
    },
};
use neighsteer_tests::database::DatabaseServer;

const FOLLOWERS: usize = 500;
const BINDINGS: usize = 100;

/// The memory that the process has filled, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kib * 1024
}

/// A snapshot as a server sends it.
fn snapshot() -> String {
    let mut json =
        String::from("[false,\"00000000-0000-0000-0000-000000000000\",{\"MAC_Binding\":{");
    for row in 0..FOLLOWERS * BINDINGS {
        let (router, neighbor) = (row / BINDINGS, row % BINDINGS);
        let (uuid, datapath) = (Uuid::random(), uuid::Uuid::from_u128(router as u128));
        write!(
            json,
            r#"{}"{uuid}":{{"initial":{{"logical_port":"rtoe-GR_net{router}_node","ip":"10.0.0.{neighbor}","mac":"02:00:00:00:00:{neighbor:02x}","datapath":["uuid","{datapath}"],"timestamp":{}}}}}"#,
            if row == 0 { "" } else { "," },
            1_700_000_000_000_u64 + row as u64,
        )
        .unwrap();
    }
    json.push_str("}}]");
    json
}

#[test]
fn fifty_thousand_bindings_cost_less_than_twenty_megabytes() {
    let request = MonitorRequest::new().table(TableRequest::new(
        "MAC_Binding",
        ["logical_port", "ip", "mac", "datapath", "timestamp"],
    ));
    let schema = fs::read(DatabaseServer::SOUTHBOUND).unwrap();
    let mut cache = Cache::default();
    cache.set_layouts(schema::layouts(&schema, "OVN_Southbound", &request).unwrap());
    let json = snapshot();
    let before = resident();
    let mut changes = Vec::new();
    let (layouts, interner) = cache.decoder_parts();
    let reply = Decoder::new(layouts, interner)
        .monitor_reply(json.as_bytes())
        .unwrap();
    cache.replace(reply.updates, &mut changes).unwrap();
    assert_eq!(changes.len(), FOLLOWERS * BINDINGS);
    // A consumer that keeps the rows shares them.
    let kept: Vec<_> = changes.into_iter().map(|change| change.new).collect();
    let grown = resident() - before;
    println!("{} bytes a row", grown / kept.len() as u64);
    assert!(grown < 20_000_000, "{grown} bytes");
}
