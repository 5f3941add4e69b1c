//! What steering costs: beside a manager that removes our flows, and at scale.

mod manager;
mod scale;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use neighsteer_tests::report::Output;
use serde::Serialize;

/// Flags of an agent that steers and does not attach.
const STEERING: [&str; 3] = [
    "--enable-network-segmentation",
    "--disable-udn-arp-ndp-flood",
    "--datapath=none",
];

/// Our flows are back within this time of their removal, in ms, at some hundred flows.
const GAP_TARGET_MS: f64 = 10.0;
/// The agent's share of one CPU beside a manager.
const CPU_TARGET: f64 = 0.02;
/// Plan and comparison at rest, in ms of CPU.
const REST_TARGET_MS: f64 = 20.0;
/// The first no-flood flags of all followers, in ms.
const NO_FLOOD_TARGET_MS: f64 = 1000.0;
/// Lookups of one frame may grow by this much from 1 UDN to the most.
const LOOKUPS_TARGET: usize = 2;

/// Measures steering on a real Open vSwitch.
#[derive(Parser)]
struct Args {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// How long the manager is at work, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Flows that the manager has, one run for each number
    #[arg(long, value_delimiter = ',', default_value = "130,5000")]
    flows: Vec<usize>,
    /// UDNs, one lab for each number
    #[arg(long, value_delimiter = ',', default_value = "1,100,500")]
    udns: Vec<u16>,
}

#[derive(Serialize)]
struct Report {
    beside_a_manager: Vec<manager::Report>,
    scale: Vec<scale::Report>,
    missed: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    neighsteer_tests::lab::end_labs_on_signals()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report {
        beside_a_manager: Vec::new(),
        scale: Vec::new(),
        missed: Vec::new(),
    };
    for flows in &args.flows {
        let time = Duration::from_secs(args.seconds);
        let measured = runtime.block_on(manager::measure(*flows, time))?;
        report.beside_a_manager.push(measured);
    }
    for udns in &args.udns {
        report.scale.push(runtime.block_on(scale::measure(*udns))?);
    }
    report.missed = missed(&report);
    Ok(args.output.finish(&report, &report.missed, print)?)
}

fn missed(report: &Report) -> Vec<String> {
    let mut missed = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            missed.push(what);
        }
    };
    // The targets are for an ordinary number of flows, which is asked for first.
    if let Some(run) = report.beside_a_manager.first() {
        check(
            run.gap_ms.median <= GAP_TARGET_MS,
            format!("gap at {} flows", run.flows),
        );
        check(
            run.agent_cpu <= CPU_TARGET,
            format!("agent's CPU at {} flows", run.flows),
        );
    }
    for run in &report.scale {
        let udns = run.udns;
        check(run.rest_cpu_ms <= REST_TARGET_MS, format!("plan at {udns}"));
        check(
            run.no_flood_ms <= NO_FLOOD_TARGET_MS,
            format!("no-flood at {udns}"),
        );
    }
    if let [first, .., last] = report.scale.as_slice() {
        for (name, (few, many)) in scale::FRAMES
            .iter()
            .zip(first.lookups.iter().zip(&last.lookups))
        {
            check(
                few.abs_diff(*many) <= LOOKUPS_TARGET,
                format!("lookups of {name}"),
            );
        }
    }
    missed
}

fn print(report: &Report) {
    for run in &report.beside_a_manager {
        println!(
            "a manager that replaced {} flows {} times in {:.0} s",
            run.flows, run.replacements, run.seconds
        );
        println!(
            "  {} flows of ours, {} removals, at least one absent {:.3} % of the time",
            run.our_flows,
            run.removals,
            run.absent * 100.0
        );
        let gap = &run.gap_ms;
        println!(
            "  gap median {:.2} ms, p99 {:.2} ms, longest {:.2} ms (target: median at most {GAP_TARGET_MS} at the first number); agent {:.2} % CPU (target: at most {:.0})",
            gap.median,
            gap.p99,
            gap.longest,
            run.agent_cpu * 100.0,
            CPU_TARGET * 100.0
        );
    }
    for run in &report.scale {
        println!(
            "{} UDNs: plan and comparison at rest {:.2} ms CPU (target: at most {REST_TARGET_MS}), no-flood on {} ports {:.0} ms (target: at most {NO_FLOOD_TARGET_MS}), audit {:.0} ms",
            run.udns, run.rest_cpu_ms, run.no_flood_ports, run.no_flood_ms, run.audit_ms
        );
        let lookups = scale::FRAMES.iter().zip(&run.lookups);
        let lookups: Vec<_> = lookups
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        println!("  lookups: {}", lookups.join(", "));
    }
}
