//! Many rows.

use std::time::{Duration, Instant};

use neighsteer::ovsdb::Operation;
use neighsteer_tests::database::DatabaseServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use crate::peer::{Peer, binding, southbound};

const ROWS: usize = 20_000;

/// Reads the same rows and only counts brackets.
async fn raw_read(server: &DatabaseServer) -> Duration {
    let start = Instant::now();
    let mut stream = UnixStream::connect(server.socket()).await.unwrap();
    let request = br#"{"id":1,"method":"monitor_cond_since","params":["OVN_Southbound","m",{"MAC_Binding":[{"columns":["logical_port","ip","mac","datapath","timestamp"]}]},"00000000-0000-0000-0000-000000000000"]}"#;
    stream.write_all(request).await.unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut depth = 0_u32;
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0);
        // No text among the rows holds a brace.
        for byte in &buffer[..read] {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => continue,
            }
            if depth == 0 {
                return start.elapsed();
            }
        }
    }
}

#[tokio::test]
async fn twenty_thousand_rows_arrive_once() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let writer = Peer::synced(southbound(&server)).await;
    let datapath = writer.datapath().await;
    let inserts: Vec<Operation> = (0..ROWS)
        .map(|number| {
            let ip = format!("10.0.{}.{}", number / 200 % 100, number % 200);
            binding(datapath, &format!("rtoe-GR_{}", number / 100), &ip).1
        })
        .collect();
    for chunk in inserts.chunks(1000) {
        writer.client.transact(chunk).await.unwrap();
    }
    drop(writer);
    let mut times = [Duration::MAX; 2];
    for _ in 0..3 {
        times[0] = times[0].min(raw_read(&server).await);
        let start = Instant::now();
        let reader = Peer::synced(southbound(&server)).await;
        times[1] = times[1].min(start.elapsed());
        assert_eq!(reader.rows.len(), ROWS);
    }
    // For people: a debug build and a busy machine say little about time.
    println!(
        "{ROWS} rows: {:?} to read, {:?} to have in the cache, {:.2} times",
        times[0],
        times[1],
        times[1].as_secs_f64() / times[0].as_secs_f64()
    );
}

#[tokio::test]
async fn slow_consumer_finds_the_newest_state_and_no_history() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuids = peer.bind(datapath, &["a", "b"]).await;
    peer.until(|peer| peer.rows.len() == 2).await;
    for round in 0..500_i64 {
        let update = Operation::update("MAC_Binding").set("timestamp", round);
        peer.client.transact(&[update.into()]).await.unwrap();
    }
    let changes = peer.take().await;
    assert_eq!(changes.len(), 2);
    for uuid in uuids {
        assert_eq!(peer.rows[&uuid].integer("timestamp"), Ok(499));
    }
}
