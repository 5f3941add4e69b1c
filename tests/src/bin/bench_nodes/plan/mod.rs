//! Planning alone: no daemon, no socket. Each size has a process of its own, so that what one has
//! freed is not counted as the next one's memory.

mod model;
mod pins;
mod rows;

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, ensure};
use neighsteer_tests::report::Times;
use serde::{Deserialize, Serialize};

use self::model::Model;
use crate::{others::Others, size::Size};

/// One node's change, from the inventory to the transaction, ms.
const CHANGE_TARGET_MS: f64 = 5.0;
/// Changes of one node.
const ROUNDS: u8 = 40;

/// One size.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    size: Size,
    /// Whether the program was built for speed: only then do times count.
    optimized: bool,
    statics: Machine,
    dynamic: Machine,
}

/// What one of the two machines takes.
#[derive(Serialize, Deserialize)]
struct Machine {
    rows: usize,
    /// In the machine, whatever the client of the database holds besides.
    bytes_per_row: f64,
    /// Until all rows that were there were found right.
    first_ms: f64,
    /// From one node's change to its transaction.
    change: Times,
    /// From one node more to its transaction.
    join: Times,
}

/// One of the two machines, with the nodes that it is told of.
trait Planner {
    fn others(&mut self) -> &mut Others;

    /// From another inventory to the transaction, which is then carried out.
    ///
    /// # Errors
    /// When something else is planned than is wanted.
    fn turn(&mut self, followers: usize) -> anyhow::Result<Duration>;

    /// So many changes of one node, and a quarter as many that join.
    fn turns(&mut self, followers: usize, rounds: u8) -> anyhow::Result<(Times, Times)> {
        let (mut changes, mut joins) = (Vec::new(), Vec::new());
        let nodes = u16::try_from(self.others().count())?;
        for round in 1..=rounds {
            let node = fastrand::u16(..nodes);
            self.others().change_mac(node, round);
            changes.push(self.turn(followers)?);
        }
        for _ in 0..rounds.div_ceil(4) {
            self.others().join();
            joins.push(self.turn(followers)?);
        }
        Ok((Times::of(changes), Times::of(joins)))
    }

    /// The same, with what it took until now: the rows there are, the memory that they took in bytes,
    /// and how long until all were found right.
    fn measured(
        &mut self,
        (rows, bytes, first): (usize, u64, Duration),
        followers: usize,
        rounds: u8,
    ) -> anyhow::Result<Machine> {
        let (change, join) = self.turns(followers, rounds)?;
        Ok(Machine {
            rows,
            bytes_per_row: share(bytes, rows),
            first_ms: first.as_secs_f64() * 1e3,
            change,
            join,
        })
    }
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let machines = [("static", &self.statics), ("dynamic", &self.dynamic)];
        machines
            .into_iter()
            .filter(|(_, machine)| self.optimized && machine.change.median_ms > CHANGE_TARGET_MS)
            .map(|(what, machine)| {
                format!(
                    "planning one node's change at {}, {what}: {:.1} ms",
                    self.size, machine.change.median_ms
                )
            })
            .collect()
    }

    /// The lines of all sizes, with their heading.
    pub(crate) fn print(reports: &[Self]) {
        println!("planning alone, followers x nodes, both families");
        println!(
            "  {:<22}{:>9}{:>11}{:>18}{:>28}{:>24}",
            "",
            "rows",
            "bytes/row",
            "all right, ms",
            "one node's MAC, ms (most)",
            "one joins, ms (most)"
        );
        for report in reports {
            let machines = [("static", &report.statics), ("dynamic", &report.dynamic)];
            for (what, machine) in machines {
                let times = |times: &Times| format!("{:.2} ({:.2})", times.median_ms, times.max_ms);
                println!(
                    "  {:<22}{:>9}{:>11.0}{:>18.0}{:>28}{:>24}",
                    format!("{}, {what}", report.size),
                    machine.rows,
                    machine.bytes_per_row,
                    machine.first_ms,
                    times(&machine.change),
                    times(&machine.join)
                );
            }
        }
        let optimized = reports.iter().all(|report| report.optimized);
        let note = if optimized {
            ""
        } else {
            "; not built for release, so that it does not count"
        };
        println!("  target: one node's change at most {CHANGE_TARGET_MS} ms{note}");
    }
}

/// Measures a size in this process.
///
/// # Errors
/// When something else is planned than is wanted.
pub(crate) fn measure(size: Size) -> anyhow::Result<Report> {
    let model = Model::new(size.followers)?;
    let others = Others::new(size.nodes);
    let followers = usize::from(size.followers);
    Ok(Report {
        size,
        optimized: !cfg!(debug_assertions),
        statics: rows::measure(&model, &others, followers, ROUNDS)?,
        dynamic: pins::measure(&model, &others, followers, ROUNDS)?,
    })
}

/// Measures a size in a process of its own.
///
/// # Errors
/// When that fails.
pub(crate) fn measure_alone(size: Size) -> anyhow::Result<Report> {
    eprintln!("planning {size}");
    let program = std::env::current_exe().context("where is this program?")?;
    let output = Command::new(program)
        .args(["--plan-size", &size.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "planning {size} failed");
    serde_json::from_slice(&output.stdout).context("planning printed no JSON")
}

/// The memory that this process has filled, in bytes.
fn resident() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib.context("no RssAnon")?.parse()?;
    Ok(kib * 1024)
}

fn share(bytes: u64, rows: usize) -> f64 {
    let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(bytes) / float(u64::try_from(rows).unwrap_or(u64::MAX).max(1))
}
