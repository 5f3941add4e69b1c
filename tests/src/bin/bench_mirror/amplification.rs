//! How many rows a mirror writes for neighbours that go on being there, and what that costs.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, ensure};
use neighsteer_tests::lab::{AgentProcess, Daemon, Lab, MacBinding, Network, wait_until};
use serde::Serialize;
use serde_json::json;

use crate::node::{self, AGE_S, Cpu, Neighbour, REFRESH};

/// Rows by the default cooldown may be so many times those of one write a cooldown.
const ROWS_TARGET: f64 = 1.1;
/// The default cooldown at [`AGE_S`].
const COOLDOWN_S: u32 = AGE_S / 2;
/// An agent with nothing to write compares everything this often, seconds.
const COMPARE_S: &str = "15";
/// For the last refreshes to be mirrored.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Write amplification")]
pub(crate) struct Args {
    /// Followers
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    amplification_followers: u16,
    /// Neighbours that are refreshed
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    sources: u16,
    /// By how much time is scaled: ages, refreshes and the cooldown become so much shorter
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=30))]
    speed: u32,
    /// How long each run is measured, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(30..=150))]
    seconds: u64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    followers: u16,
    sources: u16,
    /// By how much time was scaled while sources were refreshed.
    speed: u32,
    default_cooldown: Run,
    no_cooldown: Run,
    /// What one write a row and cooldown comes to, rows a minute of the node's time.
    one_a_cooldown: f64,
    /// Not scaled.
    nothing_changes: Rest,
}

/// Per minute of the node's time, which is what the wall clock shows times the speed.
#[derive(Serialize)]
struct Run {
    seconds: f64,
    rows: f64,
    /// Written for another reason than that they grew old.
    not_refreshed: f64,
    cpu: Cpu,
}

/// A node on which nothing changes.
#[derive(Serialize)]
struct Rest {
    seconds: f64,
    /// Rows that the agent says it wrote since its start.
    written: u64,
    /// Rows that are not what they were, or are new or gone.
    changed: usize,
    /// Per minute.
    cpu: Cpu,
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.default_cooldown.rows > ROWS_TARGET * self.one_a_cooldown {
            missed.push("rows written with the default cooldown".to_owned());
        }
        if self.nothing_changes.written > 0 || self.nothing_changes.changed > 0 {
            missed.push("rows written although nothing changes".to_owned());
        }
        missed
    }

    pub(crate) fn print(&self) {
        println!(
            "{} sources refreshed every {} s for {} followers, age threshold {AGE_S} s; scaled: time passes {} times as fast",
            self.sources,
            REFRESH.as_secs(),
            self.followers,
            self.speed
        );
        let cpu = |cpu: &Cpu| {
            format!(
                "CPU s/min: southbound {:.2}, northd {:.2}, ovn-controller {:.2}, agent {:.2}",
                cpu.southbound, cpu.northd, cpu.controller, cpu.agent
            )
        };
        for (what, run) in [
            ("default cooldown", &self.default_cooldown),
            ("cooldown 0", &self.no_cooldown),
        ] {
            println!(
                "  {what:<17} {:>6.0} rows/min ({:.0} not as a refresh); {}",
                run.rows,
                run.not_refreshed,
                cpu(&run.cpu)
            );
        }
        println!(
            "  one write a row and cooldown is {:.0} rows/min (target: at most {ROWS_TARGET} times that)",
            self.one_a_cooldown
        );
        let rest = &self.nothing_changes;
        println!(
            "  nothing changes, not scaled: {} rows written, {} changed in {:.0} s (target: none); {}",
            rest.written,
            rest.changed,
            rest.seconds,
            cpu(&rest.cpu)
        );
    }
}

/// Measures three agents, one after the other, on one lab.
///
/// # Errors
/// When lab or agent do not do their part.
pub(crate) fn measure(args: &Args) -> anyhow::Result<Report> {
    let bench = Bench {
        lab: node::lab(args.amplification_followers, [], AGE_S / args.speed)?,
        args,
    };
    let numbers: Vec<u16> = (0..args.sources).collect();
    let sources = node::learn(&bench.lab, &numbers)?;
    let (stop, stopped) = channel();
    let (default_cooldown, no_cooldown, agent) = thread::scope(|scope| {
        let load = scope.spawn({
            let (bench, sources) = (&bench, &sources);
            move || bench.load(sources, &stopped)
        });
        let runs = bench.runs();
        drop(stop);
        let load = load.join().map_err(|_| anyhow!("the load has panicked"))?;
        load.context("the load has failed")?;
        runs
    })?;
    wait_until(
        PATIENCE,
        "the last refreshes to reach all followers",
        || {
            let stale = bench.stale_rows().map_err(|error| format!("{error:#}"))?;
            if stale == 0 {
                Ok(())
            } else {
                Err(format!("{stale} rows are older"))
            }
        },
    )?;
    drop(agent);
    let rows = f64::from(args.sources) * f64::from(args.amplification_followers);
    Ok(Report {
        followers: args.amplification_followers,
        sources: args.sources,
        speed: args.speed,
        default_cooldown,
        no_cooldown,
        one_a_cooldown: rows * 60.0 / f64::from(COOLDOWN_S),
        nothing_changes: bench.rest(&sources)?,
    })
}

struct Bench<'a> {
    lab: Lab,
    args: &'a Args,
}

impl Bench<'_> {
    /// Refreshes the sources one after the other, evenly over the time.
    fn load(&self, sources: &[Neighbour], stop: &Receiver<()>) -> anyhow::Result<()> {
        let pace = REFRESH / self.args.speed / u32::from(self.args.sources);
        let start = Instant::now();
        for (due, source) in (1_u32..)
            .map(|turn| pace * turn)
            .zip(sources.iter().cycle())
        {
            let wait = due.saturating_sub(start.elapsed());
            if stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            node::refresh(&self.lab, &[source])?;
        }
        Ok(())
    }

    /// The default cooldown and none, both while sources are refreshed. The second agent still runs,
    /// and rows age as slowly as on a node from then on.
    fn runs(&self) -> anyhow::Result<(Run, Run, AgentProcess)> {
        // Until what was written first has been refreshed once, one cooldown later.
        let warm = Duration::from_secs(u64::from(COOLDOWN_S)) / self.args.speed;
        eprintln!("sources are refreshed: default cooldown");
        let agent = node::agent(&self.lab, &[])?;
        let default_cooldown = self.watch(&agent, warm)?;
        drop(agent);
        eprintln!("sources are refreshed: cooldown 0");
        let agent = node::agent(&self.lab, &["--mirror-cooldown=0"])?;
        let no_cooldown = self.watch(&agent, warm)?;
        self.age_slowly()?;
        Ok((default_cooldown, no_cooldown, agent))
    }

    fn watch(&self, agent: &AgentProcess, warm: Duration) -> anyhow::Result<Run> {
        // Time itself is waited for: so long after a start, no row's first refresh is still due.
        thread::sleep(warm);
        let (written, cpu) = (
            node::mirror(&self.lab)?.written(),
            Cpu::read(&self.lab, agent)?,
        );
        let start = Instant::now();
        // The window that is measured.
        thread::sleep(Duration::from_secs(self.args.seconds));
        let now = node::mirror(&self.lab)?.written();
        let seconds = start.elapsed().as_secs_f64();
        let minutes = seconds * f64::from(self.args.speed) / 60.0;
        let rows = now.rows - written.rows;
        let refreshed = now.refreshed - written.refreshed;
        Ok(Run {
            seconds,
            rows: per(rows, minutes),
            not_refreshed: per(rows - refreshed, minutes),
            cpu: Cpu::read(&self.lab, agent)?.since(cpu, minutes),
        })
    }

    /// Gives all routers the age threshold of a node.
    fn age_slowly(&self) -> anyhow::Result<()> {
        let key = "mac_binding_age_threshold";
        self.lab.with_database(Daemon::Northbound, |northbound| {
            northbound.transact(vec![json!({
                "op": "mutate", "table": "Logical_Router", "where": [],
                "mutations": [
                    ["options", "delete", ["set", [key]]],
                    ["options", "insert", ["map", [[key, AGE_S.to_string()]]]],
                ],
            })])
        })?;
        Ok(self.lab.sync_northd()?)
    }

    /// Followers' rows that are older than the source's.
    fn stale_rows(&self) -> anyhow::Result<usize> {
        let rows = self.lab.all_mac_bindings()?;
        let source = Network::DEFAULT.external_port();
        let sources: HashMap<&str, u64> = rows
            .iter()
            .filter(|row| row.logical_port == source)
            .map(|row| (&*row.ip, row.timestamp))
            .collect();
        let stale = |row: &&MacBinding| sources.get(&*row.ip).is_some_and(|it| row.timestamp < *it);
        Ok(rows.iter().filter(stale).count())
    }

    /// An agent that finds every row right and fresh.
    fn rest(&self, sources: &[Neighbour]) -> anyhow::Result<Rest> {
        eprintln!("nothing changes");
        let agent = node::agent(&self.lab, &["--mirror-compare-interval", COMPARE_S])?;
        // A router may learn something by itself, which is no doing of the agent's.
        let ours: HashSet<String> = sources.iter().map(|it| it.ip.to_string()).collect();
        let rows = || -> anyhow::Result<BTreeSet<MacBinding>> {
            let rows = self.lab.all_mac_bindings()?.into_iter();
            Ok(rows.filter(|row| ours.contains(&row.ip)).collect())
        };
        let (before, cpu) = (rows()?, Cpu::read(&self.lab, &agent)?);
        let wanted = usize::from(self.args.sources) * (self.lab.udns().count() + 1);
        ensure!(before.len() == wanted, "{} of {wanted} rows", before.len());
        let start = Instant::now();
        // The window that is measured: that nothing happens has no moment to wait for.
        thread::sleep(Duration::from_secs(self.args.seconds));
        let seconds = start.elapsed().as_secs_f64();
        Ok(Rest {
            seconds,
            cpu: Cpu::read(&self.lab, &agent)?.since(cpu, seconds / 60.0),
            written: node::mirror(&self.lab)?.written().rows,
            changed: rows()?.symmetric_difference(&before).count(),
        })
    }
}

fn per(rows: u64, minutes: f64) -> f64 {
    f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) / minutes
}
