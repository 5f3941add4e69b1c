//! The agent's memory with many bindings, and whether it grows.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use neighsteer_tests::lab::{AgentProcess, Lab, Network};
use serde::Serialize;
use serde_json::json;

use crate::node::{self, Neighbour, REFRESH};

/// Resident memory with all bindings, MB.
const RESIDENT_TARGET_MB: f64 = 60.0;
/// By how much it may grow from the first minute of churn to the end.
const GROWTH_TARGET: f64 = 0.05;
/// From when on growth counts.
const FIRST: Duration = Duration::from_secs(60);
/// Between two events. Each is some 500 rows for the mirror, beside the refreshes.
const PACE: Duration = Duration::from_secs(1);
/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// What is measured.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Memory")]
pub(crate) struct Args {
    /// Bindings of the source, and so of each follower
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    bindings: u16,
    /// How long rows change, in seconds
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(70..))]
    churn_seconds: u64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    followers: usize,
    bindings: u16,
    /// Of an agent that has written all of the rows.
    written_mb: f64,
    /// Of an agent that has found them there.
    found_mb: f64,
    churn: Churn,
}

#[derive(Serialize)]
struct Churn {
    seconds: f64,
    mac_changes: u32,
    replaced: u32,
    /// All followers' rows of a neighbour deleted.
    deleted: u32,
    /// All rows of a follower deleted.
    deleted_of_follower: u32,
    refreshes: u32,
    /// Rows that the agent wrote for all that.
    rows_written: u64,
    rows_at_end: usize,
    after_a_minute_mb: f64,
    at_end_mb: f64,
    most_mb: f64,
    /// From the first minute to the end, as a share.
    growth: f64,
    /// Over time, MB.
    samples: Vec<f64>,
}

impl Report {
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.written_mb.max(self.found_mb) > RESIDENT_TARGET_MB {
            missed.push("resident memory".to_owned());
        }
        if self.churn.growth > GROWTH_TARGET {
            missed.push("growth of memory".to_owned());
        }
        missed
    }

    pub(crate) fn print(&self) {
        println!(
            "memory at {} followers with {} bindings each: {:.1} MB resident having written them, {:.1} MB having found them (target: at most {RESIDENT_TARGET_MB})",
            self.followers, self.bindings, self.written_mb, self.found_mb
        );
        let churn = &self.churn;
        println!(
            "  churn for {:.0} s: {} MACs changed, {} neighbours replaced, followers' rows of {} neighbours and of {} followers deleted, {} refreshes; {} rows written, {} there at the end",
            churn.seconds,
            churn.mac_changes,
            churn.replaced,
            churn.deleted,
            churn.deleted_of_follower,
            churn.refreshes,
            churn.rows_written,
            churn.rows_at_end
        );
        println!(
            "  {:.1} MB after a minute, {:.1} MB at the end, {:.1} MB at most: growth {:.1} % (target: at most {:.0})",
            churn.after_a_minute_mb,
            churn.at_end_mb,
            churn.most_mb,
            churn.growth * 100.0,
            GROWTH_TARGET * 100.0
        );
    }
}

/// Fills a lab with bindings and changes them.
///
/// # Errors
/// When lab or agent do not do their part.
pub(crate) fn measure(lab: &Lab, args: &Args) -> anyhow::Result<Report> {
    lab.clear_mac_bindings()?;
    let followers = lab.udns().count();
    eprintln!("{} bindings for {followers} followers", args.bindings);
    let numbers: Vec<u16> = (0..args.bindings).collect();
    // A router may learn something by itself.
    let wanted = numbers.len() * (followers + 1);
    let agent = node::agent(lab, &[])?;
    let neighbours = node::learn(lab, &numbers)?;
    node::settled(lab, |mirror| mirror.rows >= wanted)?;
    let written_mb = resident_mb(&agent)?;
    drop(agent);
    let agent = node::agent(lab, &[])?;
    node::settled(lab, |mirror| mirror.rows >= wanted)?;
    let found_mb = resident_mb(&agent)?;
    eprintln!("they change");
    // Their refreshes are spread over the time.
    let now = Instant::now();
    let last = |turn: u32| now.checked_sub(REFRESH * turn / u32::from(args.bindings));
    let turns = (0..).map(|turn| last(turn).unwrap_or(now));
    let churn = Churning {
        lab,
        neighbours: neighbours.into_iter().zip(turns).collect(),
        next: args.bindings,
    };
    Ok(Report {
        followers,
        bindings: args.bindings,
        written_mb,
        found_mb,
        churn: churn.run(&agent, Duration::from_secs(args.churn_seconds))?,
    })
}

fn resident_mb(agent: &AgentProcess) -> anyhow::Result<f64> {
    let kb = u32::try_from(agent.resident_bytes()? / 1_000)?;
    Ok(f64::from(kb) / 1e3)
}

struct Churning<'a> {
    lab: &'a Lab,
    /// With the time of their last refresh.
    neighbours: Vec<(Neighbour, Instant)>,
    /// The number of the next one.
    next: u16,
}

impl Churning<'_> {
    fn run(mut self, agent: &AgentProcess, time: Duration) -> anyhow::Result<Churn> {
        let before = node::mirror(self.lab)?.written().rows;
        let start = Instant::now();
        let mut churn = Churn {
            seconds: 0.0,
            mac_changes: 0,
            replaced: 0,
            deleted: 0,
            deleted_of_follower: 0,
            refreshes: 0,
            rows_written: 0,
            rows_at_end: 0,
            after_a_minute_mb: 0.0,
            at_end_mb: 0.0,
            most_mb: 0.0,
            growth: 0.0,
            samples: Vec::new(),
        };
        let mut look = start;
        for turn in 0_u32.. {
            if start.elapsed() >= time {
                break;
            }
            self.refresh(&mut churn)?;
            self.event(turn, &mut churn)?;
            if look.elapsed() >= LOOK {
                look = Instant::now();
                let mb = resident_mb(agent)?;
                churn.most_mb = churn.most_mb.max(mb);
                churn.samples.push(mb);
                if churn.after_a_minute_mb == 0.0 && start.elapsed() >= FIRST {
                    churn.after_a_minute_mb = mb;
                }
            }
            let due = start + PACE * (turn + 1);
            // The rate of changes, which the memory is measured under.
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // Where the server is slower than the pace, it sets the pace.
            node::settled(self.lab, |_| true)?;
        }
        let mirror = node::mirror(self.lab)?;
        churn.seconds = start.elapsed().as_secs_f64();
        churn.rows_written = mirror.written().rows - before;
        churn.rows_at_end = mirror.rows;
        churn.at_end_mb = resident_mb(agent)?;
        churn.most_mb = churn.most_mb.max(churn.at_end_mb);
        churn.growth = churn.at_end_mb / churn.after_a_minute_mb - 1.0;
        Ok(churn)
    }

    /// The sources whose time has come.
    fn refresh(&mut self, churn: &mut Churn) -> anyhow::Result<()> {
        let (mut sources, now) = (Vec::new(), Instant::now());
        for (neighbour, last) in &mut self.neighbours {
            if now.duration_since(*last) >= REFRESH {
                *last = now;
                sources.push(&*neighbour);
            }
        }
        node::refresh(self.lab, &sources)?;
        churn.refreshes += u32::try_from(sources.len())?;
        Ok(())
    }

    fn event(&mut self, turn: u32, churn: &mut Churn) -> anyhow::Result<()> {
        let place = fastrand::usize(..self.neighbours.len());
        let (neighbour, last) = self.neighbours.get_mut(place).context("no neighbour")?;
        match turn % 4 {
            0 | 2 => {
                let results = node::transact(self.lab, vec![neighbour.change_mac()])?;
                ensure!(
                    results.first().is_some_and(|it| it["count"] == 1),
                    "the source's row is gone"
                );
                *last = Instant::now();
                churn.mac_changes += 1;
            }
            1 => {
                // As it is when a neighbour's rows have grown old.
                let gone = vec![neighbour.forget(), neighbour.forget_followers()];
                node::transact(self.lab, gone)?;
                let new = node::learn(self.lab, &[self.next])?;
                *neighbour = new.into_iter().next().context("nothing learnt")?;
                *last = Instant::now();
                self.next += 1;
                churn.replaced += 1;
            }
            _ if turn % 8 == 3 => {
                node::transact(self.lab, vec![neighbour.forget_followers()])?;
                churn.deleted += 1;
            }
            _ => {
                let followers: Vec<Network> = self.lab.udns().collect();
                let follower = fastrand::choice(followers).context("no follower")?;
                let rows = json!([["logical_port", "==", follower.external_port()]]);
                let delete = json!({"op": "delete", "table": "MAC_Binding", "where": rows});
                node::transact(self.lab, vec![delete])?;
                churn.deleted_of_follower += 1;
            }
        }
        Ok(())
    }
}
