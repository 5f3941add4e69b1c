//! Many rows, read and kept.

use std::{env, fs, path::PathBuf, process::Command, time::Instant};

use anyhow::{Context as _, ensure};
use neighsteer::ovsdb::{Client, MonitorCondition, Operation, Remote};
use neighsteer_tests::{database::DatabaseServer, raw_database::RawClient, southbound};

/// Rows a transaction while the table is filled.
const CHUNK: usize = 1000;
/// Bindings a port: 500 ports for 50,000 rows.
const BINDINGS: usize = 100;

#[derive(serde::Serialize)]
pub(crate) struct Report {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// Read and thrown away.
    pub(crate) raw_ms: f64,
    /// Connected, read and cached.
    pub(crate) client_ms: f64,
    pub(crate) ratio: f64,
    /// By how much the process grew (10^6 bytes).
    pub(crate) cache_mb: f64,
}

pub(crate) async fn measure(rows: usize) -> anyhow::Result<Report> {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND)?;
    let writer = southbound::writer(server.remote()).await?;
    let datapaths = southbound::datapaths(&writer, rows.div_ceil(BINDINGS)).await?;
    let inserts: Vec<Operation> = (0..rows)
        .map(|row| {
            let (router, neighbor) = (row / BINDINGS, row % BINDINGS);
            let datapath = datapaths.get(router).copied().unwrap_or_default();
            let ip = format!("10.0.0.{neighbor}");
            southbound::insert(
                &format!("rtoe-GR_net{router}_node"),
                datapath,
                &ip,
                1_700_000_000_000,
            )
        })
        .collect();
    for chunk in inserts.chunks(CHUNK) {
        writer.transact(chunk).await?;
    }
    drop((inserts, writer));

    let request = br#"{"id":1,"method":"monitor_cond_since","params":["OVN_Southbound","m",{"MAC_Binding":[{"columns":["logical_port","ip","mac","timestamp","datapath"]}]},"00000000-0000-0000-0000-000000000000"]}"#;
    let start = Instant::now();
    let (bytes, _) = RawClient::connect(&server.socket())?.call(request)?;
    let raw = start.elapsed();

    // In a process of its own: this one has memory to spare after filling the table.
    let output = Command::new(env::current_exe()?)
        .arg(format!("--read-from={}", server.socket().display()))
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let loaded: Loaded = serde_json::from_slice(&output.stdout)?;
    ensure!(
        loaded.rows == rows,
        "{} rows instead of {rows}",
        loaded.rows
    );
    let raw_ms = raw.as_secs_f64() * 1e3;
    Ok(Report {
        rows,
        bytes,
        raw_ms,
        client_ms: loaded.elapsed_ms,
        ratio: loaded.elapsed_ms / raw_ms,
        cache_mb: loaded.grown_mb,
    })
}

/// What the process that reads has to say.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Loaded {
    rows: usize,
    elapsed_ms: f64,
    grown_mb: f64,
}

/// Reads every binding behind a socket and keeps it.
pub(crate) async fn read(socket: PathBuf) -> anyhow::Result<Loaded> {
    let before = resident()?;
    let start = Instant::now();
    let options = southbound::options(Remote::Unix(socket), MonitorCondition::Every);
    let (client, mut monitor, driver) = Client::connect(options);
    tokio::spawn(driver.run());
    let rows = southbound::synced(&mut monitor).await?;
    let elapsed = start.elapsed();
    let grown = resident()?.saturating_sub(before);
    drop((client, monitor));
    Ok(Loaded {
        rows,
        elapsed_ms: elapsed.as_secs_f64() * 1e3,
        grown_mb: f64::from(u32::try_from(grown).unwrap_or(u32::MAX)) / 1e6,
    })
}

/// The memory that the process itself has filled, in bytes.
fn resident() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .context("/proc/self/status has no RssAnon")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
