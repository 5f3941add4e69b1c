//! How rows grow with followers and nodes, static ones beside dynamic ones, and where an old northd stops
//! being usable.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use neighsteer_tests::lab::{Daemon, Network, OvnVersion, wait_until};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    node::{Bench, Strategy},
    phases::{self, Restart, Write},
    size::Size,
};

/// A node whose northd takes longer for any change is of no use.
const USABLE: Duration = Duration::from_secs(10);
/// How long northd may take for one row more.
const PATIENCE: Duration = Duration::from_secs(600);
/// One of the gateway's own addresses, whose rows the agent leaves alone.
const SPARED: &str = "169.254.0.99";

/// One size on one version.
#[derive(Serialize)]
pub(crate) struct Point {
    ovn: OvnVersion,
    strategy: Strategy,
    size: Size,
    write: Write,
    restart: Restart,
    /// From one northbound row more until ovn-controller has followed: one loop of northd.
    one_more_s: f64,
    northd_cpu_s: f64,
    /// Memory once all rows are there, MB, by daemon.
    resident_mb: BTreeMap<&'static str, f64>,
}

impl Point {
    /// Whether northd is fast enough for anything.
    pub(crate) fn is_usable(&self) -> bool {
        self.one_more_s <= USABLE.as_secs_f64()
    }
}

/// Measures one size.
///
/// # Errors
/// When lab or agent do not do their part.
pub(crate) fn measure(ovn: OvnVersion, strategy: Strategy, size: Size) -> anyhow::Result<Point> {
    let mut bench = Bench::start(ovn, strategy, size)?;
    let write = phases::write(&mut bench)?;
    let restart = phases::restart(&mut bench)?;
    eprintln!("{}, {size}: one northbound row more", strategy.name());
    let cpu = bench.cpu()?;
    let start = Instant::now();
    one_more(&bench)?;
    let one_more_s = start.elapsed().as_secs_f64();
    let daemons = bench.memory()?.into_iter();
    Ok(Point {
        ovn,
        strategy,
        size,
        write,
        restart,
        one_more_s,
        northd_cpu_s: bench.cpu()?.since(cpu).northd,
        resident_mb: daemons
            .map(|(name, memory)| (name, memory.resident_mb))
            .collect(),
    })
}

/// One row, in the transaction that asks northd to say when it has followed: one loop.
fn one_more(bench: &Bench) -> anyhow::Result<()> {
    let configuration = |rows: &[Value], column: &str| {
        let row = rows.first();
        row.and_then(|row| row[column].as_i64()).unwrap_or_default()
    };
    let port = Network(1).external_port();
    let wanted = bench.lab.with_database(Daemon::Northbound, |northbound| {
        northbound.transact(vec![
            json!({"op": "insert", "table": "Static_MAC_Binding", "row": {
                "logical_port": port, "ip": SPARED, "mac": "0a:58:a9:fe:00:63",
                "override_dynamic_mac": true,
            }}),
            json!({"op": "mutate", "table": "NB_Global", "where": [],
                "mutations": [["nb_cfg", "+=", 1]]}),
        ])?;
        let rows = northbound.select("NB_Global", json!([]), &["nb_cfg"])?;
        Ok(configuration(&rows, "nb_cfg"))
    })?;
    wait_until(PATIENCE, "OVN to follow one row more", || {
        let rows = bench.lab.with_database(Daemon::Northbound, |northbound| {
            northbound.select("NB_Global", json!([]), &["hv_cfg"])
        });
        let reached = configuration(&rows.map_err(|error| error.to_string())?, "hv_cfg");
        if reached >= wanted {
            Ok(())
        } else {
            Err(format!("{reached} instead of {wanted}"))
        }
    })?;
    Ok(())
}

/// The lines of all points, with their heading.
pub(crate) fn print(points: &[Point]) {
    println!("rows, followers x nodes, both families; memory in MB");
    println!(
        "  {:<25}{:>8}{:>14}{:>13}{:>17}{:>15}{:>12}{:>8}{:>8}{:>8}{:>12}{:>14}",
        "OVN",
        "rows",
        "committed, s",
        "followed, s",
        "one more row, s",
        "northd CPU, s",
        "restart, s",
        "NB",
        "SB",
        "northd",
        "controller",
        "agent (most)"
    );
    for point in points {
        let daemon = |daemon: Daemon| {
            point
                .resident_mb
                .get(daemon.name())
                .copied()
                .unwrap_or_default()
        };
        println!(
            "  {:<25}{:>8}{:>14.1}{:>13}{:>17.2}{:>15.2}{:>12.1}{:>8.0}{:>8.0}{:>8.0}{:>12.0}{:>14}",
            format!("{} {} {}", point.ovn, point.strategy.name(), point.size),
            point.size.rows(),
            point.write.committed_s,
            point
                .write
                .followed_s
                .map_or("not".to_owned(), |seconds| format!("{seconds:.1}")),
            point.one_more_s,
            point.northd_cpu_s,
            point.restart.idle_s,
            daemon(Daemon::Northbound),
            daemon(Daemon::Southbound),
            daemon(Daemon::Northd),
            daemon(Daemon::Controller),
            format!(
                "{:.0} ({:.0})",
                point.restart.agent.resident_mb, point.restart.agent.peak_mb
            )
        );
    }
    for ovn in OvnVersion::ALL {
        let mut of_version = points.iter().filter(|point| point.ovn == ovn);
        if let Some(point) =
            of_version.find(|point| point.strategy == Strategy::Static && !point.is_usable())
        {
            println!(
                "  OVN {ovn}: static rows stop being usable at {} rows: one northd loop takes more than {} s",
                point.size.rows(),
                USABLE.as_secs()
            );
        }
    }
}
