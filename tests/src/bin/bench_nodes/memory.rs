//! What an agent's connection holds of rows that are all right: static rows on a server alone, read by
//! a process of their own.

use std::{
    collections::BTreeSet,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use neighsteer::{
    agent::{
        clock::Clock,
        database_locks::lock_name,
        databases::{self, STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS},
        state::StateFile,
        static_rows::StaticRows,
    },
    ovsdb::{Client, Event, MonitorCondition, Options, Remote, TableRequest},
    rows::Database,
    statics::{BridgeBindings, Mode, Settings, Target, Treatment, Wanted, WantedBindings},
};
use neighsteer_tests::{
    database::DatabaseServer,
    lab::{BRIDGE, Network},
    raw_database::RawClient,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::{others::Others, process::Memory, size::Size};

/// With both families of the largest size, MB.
pub(crate) const RESIDENT_TARGET_MB: f64 = 200.0;
/// Rows of a transaction by hand.
const RAW_ROWS: usize = 5_000;
/// How long the rows may take to be read.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Serialize)]
pub(crate) struct Report {
    size: Size,
    /// Rows a second that the server took by hand.
    filled_rows_per_s: f64,
    reader: Reader,
}

/// What the process says that has read all rows.
#[derive(Serialize, Deserialize)]
struct Reader {
    /// Before the first row.
    empty: Memory,
    /// With all of them known and found right.
    known: Memory,
    /// Until then, s.
    seconds: f64,
    transactions: u64,
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let mb = self.reader.known.resident_mb;
        if mb > RESIDENT_TARGET_MB {
            missed.push(format!(
                "memory of {} static rows: {mb:.0} MB",
                self.size.rows()
            ));
        }
        if self.reader.transactions > 0 {
            missed.push("transactions although every static row is right".to_owned());
        }
        missed
    }

    pub(crate) fn print(&self) {
        let reader = &self.reader;
        println!(
            "{} static rows ({}) on a server alone: known and found right in {:.1} s, {} transactions (target: none)",
            self.size.rows(),
            self.size,
            reader.seconds,
            reader.transactions
        );
        println!(
            "  memory {:.1} MB before, {:.1} MB after (target: at most {RESIDENT_TARGET_MB}), {:.1} MB at most; by hand {:.0} rows/s",
            reader.empty.resident_mb,
            reader.known.resident_mb,
            reader.known.peak_mb,
            self.filled_rows_per_s
        );
    }
}

/// Fills a server, and has a process of its own read it.
///
/// # Errors
/// When server or process do not do their part.
pub(crate) fn measure(size: Size) -> anyhow::Result<Report> {
    let server = DatabaseServer::start(DatabaseServer::NORTHBOUND)?;
    eprintln!("{} static rows by hand", size.rows());
    let start = Instant::now();
    fill(&server, size)?;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("they are read");
    let program = std::env::current_exe().context("where is this program?")?;
    let remote = server.remote().to_string();
    let output = Command::new(program)
        .args(["--read-size", &size.to_string(), "--read-from", &remote])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "reading {size} failed");
    Ok(Report {
        size,
        filled_rows_per_s: f64::from(u32::try_from(size.rows())?) / seconds,
        reader: serde_json::from_slice(&output.stdout).context("the reader printed no JSON")?,
    })
}

fn followers(size: Size) -> impl Iterator<Item = Network> {
    (1..=size.followers).map(Network)
}

fn fill(server: &DatabaseServer, size: Size) -> anyhow::Result<()> {
    let mut client = RawClient::connect(&server.socket())?;
    let mut operations = Vec::new();
    let mut send = |operations: &mut Vec<String>| -> anyhow::Result<()> {
        let rows = operations.join(",");
        let request =
            format!(r#"{{"id":1,"method":"transact","params":["OVN_Northbound",{rows}]}}"#);
        let (_, end) = client.call(request.as_bytes())?;
        let end = String::from_utf8_lossy(&end);
        ensure!(!end.contains("\"details\""), "{end}");
        operations.clear();
        Ok(())
    };
    for (ip, mac) in Others::new(size.nodes).bindings() {
        for network in followers(size) {
            let port = network.external_port();
            operations.push(format!(
                r#"{{"op":"insert","table":"{STATIC_MAC_BINDING}","row":{{"logical_port":"{port}","ip":"{ip}","mac":"{mac}","override_dynamic_mac":true}}}}"#
            ));
            if operations.len() == RAW_ROWS {
                send(&mut operations)?;
            }
        }
    }
    if !operations.is_empty() {
        send(&mut operations)?;
    }
    Ok(())
}

/// Reads what another process has filled, as the agent would.
///
/// # Errors
/// When not all rows become known.
pub(crate) async fn read(size: Size, remote: Remote) -> anyhow::Result<impl Serialize> {
    let directory = tempfile::tempdir()?;
    let statics = TableRequest::new(STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS)
        .filter(MonitorCondition::AnyOf(Vec::new()));
    let request = databases::request(Database::Northbound, "chassis").table(statics);
    let options = Options {
        leader_only: true,
        dedicated_writer: true,
        ..Options::new(vec![remote], Database::Northbound.name(), request)
    };
    let (client, mut monitor, driver) = Client::connect(options);
    let driver = tokio::spawn(driver.run());
    let lock = client.lock(lock_name("static", "chassis"))?;
    let state = StateFile::open(directory.path())?;
    let mut rows = StaticRows::new(client, Clock::start(), Settings::default(), lock, state);
    let targets: Vec<Target> = followers(size)
        .map(|network| Target {
            port: network.external_port().into(),
            port_row: None,
            bridge: Some(BRIDGE.into()),
            treatment: Treatment::Follower,
        })
        .collect();
    let wanted = wanted(size);
    let empty = Memory::own()?;
    let start = Instant::now();
    let mut planned = false;
    let read = timeout(PATIENCE, async {
        loop {
            let due = rows.next_deadline();
            tokio::select! {
                event = monitor.next() => match event.context("the client has ended")? {
                    Event::Synced(batch) => {
                        rows.apply(&batch.changes, batch.conditions);
                        drop(batch);
                        rows.synced();
                        if !planned {
                            planned = true;
                            rows.plan(targets.clone(), Some(&wanted), Mode::Write);
                        }
                    }
                    Event::Changes(batch) => rows.apply(&batch.changes, batch.conditions),
                    Event::Disconnected { error } => return Err(error.into()),
                },
                done = rows.finished() => rows.settle(done),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => {}
            }
            rows.pump();
            if rows.is_idle() && rows.status().ours == size.rows() {
                return anyhow::Ok(());
            }
        }
    });
    read.await.context("not all rows were read in time")??;
    let reader = Reader {
        empty,
        known: Memory::own()?,
        seconds: start.elapsed().as_secs_f64(),
        transactions: rows.status().counters.transactions,
    };
    driver.abort();
    Ok(reader)
}

fn wanted(size: Size) -> WantedBindings {
    let bindings: Vec<_> = Others::new(size.nodes).bindings().collect();
    let bridge = BridgeBindings {
        bindings: bindings
            .iter()
            .map(|(ip, mac)| (*ip, Wanted::Binding(*mac)))
            .collect(),
        keep_unlisted: false,
        node_ips: bindings.iter().map(|(ip, _)| *ip).collect::<BTreeSet<_>>(),
    };
    WantedBindings {
        bridges: [(Arc::from(BRIDGE), bridge)].into(),
        warnings: BTreeSet::new(),
    }
}
