//! What it costs that every follower knows every other node: planned alone, and on a real node.

mod grid;
mod memory;
mod node;
mod others;
mod phases;
mod plan;
mod process;
mod size;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum as _};
use neighsteer::ovsdb::Remote;
use neighsteer_tests::{
    lab::{self, LabError, OvnVersion},
    report::Output,
};
use serde::Serialize;

use crate::{node::Strategy, size::Size};

/// Measures node IPs: planning, static rows, dynamic rows, and how they grow.
#[derive(Parser)]
struct Args {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::value_variants().to_vec())]
    only: Vec<Part>,
    /// Followers, of static and dynamic rows and of their memory
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    followers: u16,
    /// Other nodes, of the same
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=30_000))]
    nodes: u16,
    /// The version of OVN [default: 25.03, and both for the grid]
    #[arg(long)]
    ovn: Option<OvnVersion>,
    /// Sizes that are planned
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "50x50,100x100,200x200,500x500"
    )]
    plan_sizes: Vec<Size>,
    /// The grid's sizes on OVN 25.03
    #[arg(long, value_delimiter = ',', default_value = "50x50,100x100,200x200")]
    grid: Vec<Size>,
    /// 500x500 in the grid too
    #[arg(long)]
    full: bool,
    /// The grid's sizes on OVN 23.03, up to the first at which static rows stop being usable
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "50x20,50x50,100x50,100x100"
    )]
    grid_old: Vec<Size>,
    /// How long nothing changes with static rows, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    static_rest: u64,
    /// How long nothing changes with dynamic rows, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    dynamic_rest: u64,
    /// Look at dynamic rows only once the agent refreshes them: some eight minutes later, since
    /// ovn-controller does that itself while a new binding's flow counts as used
    #[arg(long)]
    until_refreshed: bool,
    /// Plans this size, and prints the result as JSON
    #[arg(long, hide = true)]
    plan_size: Option<Size>,
    /// Reads rows of this size from a server, and prints what that took as JSON
    #[arg(long, hide = true, requires = "read_from")]
    read_size: Option<Size>,
    /// The server
    #[arg(long, hide = true, requires = "read_size")]
    read_from: Option<Remote>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Planning, without any daemon
    Plan,
    /// Memory of static rows that are right, on a server alone
    Memory,
    /// Static rows on a node
    Static,
    /// Dynamic rows on a node
    Dynamic,
    /// Static and dynamic rows of several sizes on both versions of OVN
    Grid,
}

#[derive(Default, Serialize)]
struct Report {
    plan: Vec<plan::Report>,
    memory: Option<memory::Report>,
    nodes: Vec<phases::Report>,
    grid: Vec<grid::Point>,
    missed: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(size) = args.plan_size {
        println!("{}", serde_json::to_string(&plan::measure(size)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(size), Some(remote)) = (args.read_size, &args.read_from) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let reader = runtime.block_on(memory::read(size, remote.clone()))?;
        println!("{}", serde_json::to_string(&reader)?);
        return Ok(ExitCode::SUCCESS);
    }
    lab::end_labs_on_signals()?;
    let report = measure(&args)?;
    Ok(args.output.finish(&report, &report.missed, print)?)
}

/// Takes what was measured, or notes why it could not be: that is no reason to measure nothing else.
///
/// # Errors
/// When somebody wants it to end.
fn take<T>(
    missed: &mut Vec<String>,
    what: &str,
    part: anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    match part {
        Ok(part) => Ok(Some(part)),
        Err(error) => {
            let causes = error.chain();
            let mut causes = causes.filter_map(|cause| cause.downcast_ref::<LabError>());
            if causes.any(|cause| matches!(cause, LabError::Interrupted)) {
                return Err(error);
            }
            eprintln!("{what}: {error:#}");
            missed.push(format!("{what} could not be measured: {error:#}"));
            Ok(None)
        }
    }
}

/// Static rows of each size, up to the first at which they are of no use, beside dynamic ones.
fn grid(
    version: OvnVersion,
    sizes: &[Size],
    points: &mut Vec<grid::Point>,
    missed: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mut strategies = vec![Strategy::Dynamic, Strategy::Static];
    for size in sizes {
        strategies = strategies
            .into_iter()
            .try_fold(Vec::new(), |mut left, strategy| {
                let what = format!("grid {} {size} on OVN {version}", strategy.name());
                let point = take(missed, &what, grid::measure(version, strategy, *size))?;
                // What is worse still tells nothing new.
                if point.as_ref().is_some_and(grid::Point::is_usable) {
                    left.push(strategy);
                }
                points.extend(point);
                anyhow::Ok(left)
            })?;
    }
    Ok(())
}

fn measure(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let mut missed = Vec::new();
    let wanted = |part| args.only.contains(&part);
    let size = Size {
        followers: args.followers,
        nodes: args.nodes,
    };
    if wanted(Part::Plan) {
        for size in &args.plan_sizes {
            let part = take(&mut missed, "planning", plan::measure_alone(*size))?;
            report.plan.extend(part);
        }
    }
    if wanted(Part::Memory) {
        report.memory = take(&mut missed, "memory", memory::measure(size))?;
    }
    let ovn = args.ovn.unwrap_or(OvnVersion::V25_03);
    for (part, strategy, rest) in [
        (Part::Static, Strategy::Static, args.static_rest),
        (Part::Dynamic, Strategy::Dynamic, args.dynamic_rest),
    ] {
        if wanted(part) {
            let rest = phases::Resting {
                time: Duration::from_secs(rest),
                refreshed: args.until_refreshed && strategy == Strategy::Dynamic,
            };
            let measured = phases::measure(ovn, strategy, size, rest);
            let what = format!("{} {size}", strategy.name());
            report.nodes.extend(take(&mut missed, &what, measured)?);
        }
    }
    if wanted(Part::Grid) {
        let mut sizes = args.grid.clone();
        if args.full {
            sizes.push(Size {
                followers: 500,
                nodes: 500,
            });
        }
        for (version, sizes) in [
            (OvnVersion::V25_03, &sizes),
            (OvnVersion::V23_03, &args.grid_old),
        ] {
            if args.ovn.is_some_and(|only| only != version) {
                continue;
            }
            grid(version, sizes, &mut report.grid, &mut missed)?;
        }
    }
    let plans = report.plan.iter().flat_map(plan::Report::missed);
    let memory = report.memory.iter().flat_map(memory::Report::missed);
    let nodes = report.nodes.iter().flat_map(phases::Report::missed);
    report.missed = missed
        .into_iter()
        .chain(plans)
        .chain(memory)
        .chain(nodes)
        .collect();
    Ok(report)
}

fn print(report: &Report) {
    if !report.plan.is_empty() {
        plan::Report::print(&report.plan);
    }
    if let Some(memory) = &report.memory {
        memory.print();
    }
    for node in &report.nodes {
        node.print();
    }
    if !report.grid.is_empty() {
        grid::print(&report.grid);
    }
}
