//! What a node goes through: rows written, an agent that finds them there, a node with another MAC, and
//! nothing at all.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use neighsteer_tests::lab::{OvnVersion, wait_until};
use serde::Serialize;

use crate::{
    memory::RESIDENT_TARGET_MB,
    node::{AGE_S, Bench, State, Strategy},
    process::{Cpu, Memory},
    size::Size,
};

/// Everything of one strategy at one size.
#[derive(Serialize)]
pub(crate) struct Report {
    ovn: OvnVersion,
    strategy: Strategy,
    size: Size,
    write: Write,
    restart: Restart,
    change: Change,
    rest: Rest,
}

/// All rows, into databases that have none.
#[derive(Serialize)]
pub(crate) struct Write {
    /// From the manifest to the last row committed.
    pub(crate) committed_s: f64,
    /// From the manifest until northd and ovn-controller have followed, where they have.
    pub(crate) followed_s: Option<f64>,
    pub(crate) transactions: u64,
    pub(crate) cpu: Cpu,
    pub(crate) agent: Memory,
    /// By daemon.
    pub(crate) daemons: BTreeMap<&'static str, Memory>,
    pub(crate) errors: BTreeMap<String, u64>,
}

/// An agent that starts where all rows are right.
#[derive(Serialize)]
pub(crate) struct Restart {
    /// From its start until it has found nothing to do.
    pub(crate) idle_s: f64,
    pub(crate) transactions: u64,
    /// Rows written, by why or how.
    pub(crate) written: BTreeMap<String, u64>,
    /// By which the northbound server's log has grown.
    pub(crate) log_bytes: u64,
    pub(crate) cpu: Cpu,
    pub(crate) agent: Memory,
}

/// One node shows up with another MAC.
#[derive(Serialize)]
struct Change {
    committed_s: f64,
    followed_s: Option<f64>,
    transactions: u64,
    rows: u64,
    cpu: Cpu,
}

/// Nothing changes.
#[derive(Serialize)]
struct Rest {
    seconds: f64,
    transactions: u64,
    /// Rows written, by why or how.
    written: BTreeMap<String, u64>,
    log_bytes: u64,
    cpu: Cpu,
    agent: Memory,
}

/// How it is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Resting {
    pub(crate) time: Duration,
    /// Not before the agent refreshes rows.
    pub(crate) refreshed: bool,
}

/// Measures all of it.
///
/// # Errors
/// When lab or agent do not do their part.
pub(crate) fn measure(
    ovn: OvnVersion,
    strategy: Strategy,
    size: Size,
    rest: Resting,
) -> anyhow::Result<Report> {
    let mut bench = Bench::start(ovn, strategy, size)?;
    Ok(Report {
        ovn,
        strategy,
        size,
        write: write(&mut bench)?,
        restart: restart(&mut bench)?,
        change: change(&mut bench)?,
        rest: self::rest(&mut bench, rest)?,
    })
}

/// Tells the agent of all other nodes.
///
/// # Errors
/// When rows do not come.
pub(crate) fn write(bench: &mut Bench) -> anyhow::Result<Write> {
    let (name, wanted) = (bench.strategy.name(), bench.wanted());
    eprintln!("{name}, {}: {wanted} rows are written", bench.size);
    let (cpu, start) = (bench.cpu()?, Instant::now());
    bench.tell()?;
    let state = bench.settle("all rows", |state| state.rows == wanted)?;
    let committed_s = start.elapsed().as_secs_f64();
    eprintln!("{name}, {}: OVN follows, {committed_s:.1} s", bench.size);
    let followed_s = bench.followed(start)?;
    Ok(Write {
        committed_s,
        followed_s,
        transactions: state.transactions,
        cpu: bench.cpu()?.since(cpu),
        agent: bench.agent_memory()?,
        daemons: bench.memory()?,
        errors: state.errors,
    })
}

/// Starts the agent again.
///
/// # Errors
/// When it does not come to know the rows.
pub(crate) fn restart(bench: &mut Bench) -> anyhow::Result<Restart> {
    let (name, wanted) = (bench.strategy.name(), bench.wanted());
    eprintln!("{name}, {}: the agent starts again", bench.size);
    bench.stop_agent()?;
    let (cpu, log, start) = (bench.cpu()?, bench.northbound_log()?, Instant::now());
    bench.start_agent()?;
    let state = bench.settle("the agent to know all rows", |state| state.rows == wanted)?;
    Ok(Restart {
        idle_s: start.elapsed().as_secs_f64(),
        transactions: state.transactions,
        written: state.written_at_all(),
        log_bytes: bench.northbound_log()?.saturating_sub(log),
        cpu: bench.cpu()?.since(cpu),
        agent: bench.agent_memory()?,
    })
}

fn change(bench: &mut Bench) -> anyhow::Result<Change> {
    let (name, wanted) = (bench.strategy.name(), bench.wanted());
    eprintln!("{name}, {}: one node changes its MAC", bench.size);
    let updates = |state: &State| {
        let counts = ["updated", "mac_change"].map(|how| state.written.get(how).copied());
        counts.into_iter().flatten().sum::<u64>()
    };
    let (before, rows) = (bench.state()?, bench.rows_of_a_node());
    let goal = updates(&before) + rows;
    bench.others.change_mac(bench.size.nodes / 2, 1);
    let (cpu, start) = (bench.cpu()?, Instant::now());
    bench.tell()?;
    let after = bench.settle("the rows of one node", |state| {
        state.rows == wanted && updates(state) >= goal
    })?;
    let committed_s = start.elapsed().as_secs_f64();
    let followed_s = bench.followed(start)?;
    Ok(Change {
        committed_s,
        followed_s,
        transactions: after.transactions - before.transactions,
        rows: updates(&after) - updates(&before),
        cpu: bench.cpu()?.since(cpu),
    })
}

/// Dynamic rows that were written together are refreshed together.
fn rest(bench: &mut Bench, resting: Resting) -> anyhow::Result<Rest> {
    let (name, wanted) = (bench.strategy.name(), bench.wanted());
    if resting.refreshed {
        eprintln!("{name}, {}: until rows are refreshed", bench.size);
        let refreshed = |state: &State| state.written.get("refresh").copied().unwrap_or_default();
        let before = refreshed(&bench.state()?);
        bench.settle("rows to be refreshed", |state| {
            state.rows == wanted && refreshed(state) > before
        })?;
    }
    eprintln!("{name}, {}: nothing changes", bench.size);
    let (before, log) = (bench.state()?, bench.northbound_log()?);
    let (cpu, start) = (bench.cpu()?, Instant::now());
    // The window that is measured: that nothing happens has no moment to wait for. ^C ends it.
    wait_until(resting.time * 2, "time to pass", || {
        let left = resting.time.saturating_sub(start.elapsed());
        match left.is_zero() {
            true => Ok(()),
            false => Err(format!("{left:?} left")),
        }
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = bench.cpu()?.since(cpu);
    let after = bench.state()?;
    Ok(Rest {
        seconds,
        transactions: after.transactions - before.transactions,
        written: after.since(&before),
        log_bytes: bench.northbound_log()?.saturating_sub(log),
        cpu,
        agent: bench.agent_memory()?,
    })
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let (mut missed, what) = (
            Vec::new(),
            format!("{} {}", self.strategy.name(), self.size),
        );
        if self.strategy == Strategy::Static {
            let restart = &self.restart;
            if restart.agent.resident_mb > RESIDENT_TARGET_MB {
                missed.push(format!("{what}: memory of the agent"));
            }
            if restart.transactions > 0 || restart.log_bytes > 0 {
                missed.push(format!(
                    "{what}: a start that writes although every row is right"
                ));
            }
            if self.change.transactions != 1 {
                missed.push(format!("{what}: one node's change in one transaction"));
            }
            if self.rest.transactions > 0 || self.rest.log_bytes > 0 {
                missed.push(format!("{what}: rows written although nothing changes"));
            }
        }
        missed
    }

    pub(crate) fn print(&self) {
        println!(
            "{} rows on OVN {}, {} followers and {} other nodes: {} rows",
            self.strategy.name(),
            self.ovn,
            self.size.followers,
            self.size.nodes,
            self.size.rows()
        );
        self.write.print();
        let is_static = self.strategy == Strategy::Static;
        let target = |text: &str| {
            if is_static {
                format!(" (target: {text})")
            } else {
                String::new()
            }
        };
        let restart = &self.restart;
        println!(
            "  agent restarted: nothing left to do after {:.1} s, {} transactions{}, {}; northbound log grew by {} bytes{}",
            restart.idle_s,
            restart.transactions,
            target("none"),
            written(&restart.written),
            restart.log_bytes,
            target("none")
        );
        println!(
            "    agent {:.1} MB{}, {:.1} MB at most; {}",
            restart.agent.resident_mb,
            target(&format!("at most {RESIDENT_TARGET_MB}")),
            restart.agent.peak_mb,
            restart.cpu
        );
        let change = &self.change;
        println!(
            "  one node's MAC: {} rows in {} transactions{}, committed after {:.2} s, {}",
            change.rows,
            change.transactions,
            target("1"),
            change.committed_s,
            followed(change.followed_s)
        );
        println!("    {}", change.cpu);
        let rest = &self.rest;
        println!(
            "  nothing changes for {:.0} s: {} transactions{}, {}; northbound log grew by {} bytes; agent {:.1} MB",
            rest.seconds,
            rest.transactions,
            target("none"),
            written(&rest.written),
            rest.log_bytes,
            rest.agent.resident_mb
        );
        println!("    {}", rest.cpu);
        if !is_static {
            let rows = |rows: u64| f64::from(u32::try_from(rows).unwrap_or(u32::MAX));
            let a_minute = rows(rest.written.values().sum()) * 60.0 / rest.seconds;
            // From half of the threshold on, spread over an eighth of it by address.
            let cycle = f64::from(AGE_S) * (0.5 + 0.125 / 2.0);
            let all = u64::try_from(self.size.rows()).unwrap_or(u64::MAX);
            println!(
                "    {a_minute:.0} rows a minute by the agent in this time; on average {:.0}, each row once in {cycle:.0} s",
                rows(all) * 60.0 / cycle
            );
        }
    }
}

impl Write {
    fn print(&self) {
        println!(
            "  written: committed after {:.1} s in {} transactions, {}",
            self.committed_s,
            self.transactions,
            followed(self.followed_s)
        );
        println!("    {}", self.cpu);
        let daemons: String = self
            .daemons
            .iter()
            .map(|(name, memory)| format!("{name} {:.0}, ", memory.resident_mb))
            .collect();
        println!(
            "    memory, MB: {daemons}agent {:.1} ({:.1} at most)",
            self.agent.resident_mb, self.agent.peak_mb
        );
        if !self.errors.is_empty() {
            println!("    errors: {:?}", self.errors);
        }
    }
}

/// When OVN had followed.
fn followed(seconds: Option<f64>) -> String {
    seconds.map_or_else(
        || "OVN has not followed".to_owned(),
        |seconds| format!("OVN has followed after {seconds:.2} s"),
    )
}

/// Rows by why or how they were written.
fn written(written: &BTreeMap<String, u64>) -> String {
    if written.is_empty() {
        return "no row written".to_owned();
    }
    let rows = written.iter().map(|(how, rows)| format!("{rows} {how}"));
    format!("rows written: {}", rows.collect::<Vec<_>>().join(", "))
}
