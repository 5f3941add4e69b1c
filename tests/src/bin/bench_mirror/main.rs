//! What the mirror costs and how fast it is: beside the least that could be done, and on a node.

mod amplification;
mod first_ping;
mod memory;
mod node;
mod throughput;

use std::process::ExitCode;

use clap::{Parser, ValueEnum as _};
use neighsteer_tests::report::Output;
use serde::Serialize;

/// Of the rate of hand-packed transactions, from [`LARGE`] bindings at once on.
const RATE_TARGET: f64 = 0.9;
/// Bindings at once from which on the rate counts.
const LARGE: usize = 10;
/// p99 of one binding to all followers, by that of hand-packed transactions.
const LATENCY_TARGET: f64 = 1.3;

/// Measures the mirror on a real ovsdb-server and on a real node.
#[derive(Parser)]
struct Args {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::value_variants().to_vec())]
    only: Vec<Part>,
    /// Followers
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    followers: u16,
    /// Bindings of the source at once, and how often
    #[arg(long, value_delimiter = ',', value_parser = burst, default_value = "1:200,10:20,50:5")]
    bursts: Vec<(usize, usize)>,
    #[command(flatten)]
    amplification: amplification::Args,
    #[command(flatten)]
    ping: first_ping::Args,
    #[command(flatten)]
    memory: memory::Args,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Rates and latencies beside hand-packed transactions, on a server alone
    Throughput,
    /// Rows addressed by row and by port and address, on a server alone
    Naive,
    /// Rows written for neighbours that go on being there
    Amplification,
    /// First pings of pods
    Ping,
    /// The agent's memory
    Memory,
}

fn burst(text: &str) -> Result<(usize, usize), String> {
    let (burst, rounds) = text
        .split_once(':')
        .ok_or("<bindings>:<rounds> is wanted")?;
    let number = |text: &str| text.parse().map_err(|error| format!("{text:?}: {error}"));
    Ok((number(burst)?, number(rounds)?))
}

#[derive(Default, Serialize)]
struct Report {
    throughput: Vec<throughput::Report>,
    naive: Option<throughput::Naive>,
    amplification: Option<amplification::Report>,
    ping: Option<first_ping::Report>,
    memory: Option<memory::Report>,
    missed: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    neighsteer_tests::lab::end_labs_on_signals()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = Report::default();
    let wanted = |part| args.only.contains(&part);
    let followers = usize::from(args.followers);
    if wanted(Part::Throughput) {
        for (burst, rounds) in &args.bursts {
            let run = runtime.block_on(throughput::measure(followers, *burst, *rounds))?;
            report.throughput.push(run);
        }
    }
    if wanted(Part::Naive) {
        report.naive = Some(runtime.block_on(throughput::naive(followers, 50))?);
    }
    if wanted(Part::Amplification) {
        report.amplification = Some(amplification::measure(&args.amplification)?);
    }
    if wanted(Part::Ping) || wanted(Part::Memory) {
        let pods = first_ping::pods(args.followers);
        let lab = node::lab(args.followers, pods, node::AGE_S)?;
        if wanted(Part::Ping) {
            report.ping = Some(first_ping::measure(&lab, &args.ping)?);
        }
        if wanted(Part::Memory) {
            report.memory = Some(memory::measure(&lab, &args.memory)?);
        }
    }
    report.missed = missed(&report);
    Ok(args.output.finish(&report, &report.missed, print)?)
}

fn missed(report: &Report) -> Vec<String> {
    let mut missed = Vec::new();
    for run in &report.throughput {
        if run.burst >= LARGE {
            for (what, rates) in [("first", &run.first), ("refresh", &run.refresh)] {
                if rates.ratio < RATE_TARGET {
                    missed.push(format!("rate of {} bindings, {what}", run.burst));
                }
            }
        } else if run.burst == 1 && run.mirror.p99_ms > LATENCY_TARGET * run.raw.p99_ms {
            missed.push("p99 of one binding".to_owned());
        }
    }
    let nodes = [
        report.amplification.as_ref().map(|it| it.missed()),
        report.ping.as_ref().map(|it| it.missed()),
        report.memory.as_ref().map(|it| it.missed()),
    ];
    missed.extend(nodes.into_iter().flatten().flatten());
    missed
}

fn print(report: &Report) {
    for run in &report.throughput {
        println!(
            "{} bindings at once for {} followers, {} times",
            run.burst, run.followers, run.rounds
        );
        for (what, rates) in [("first time", &run.first), ("refresh", &run.refresh)] {
            println!(
                "  {what:<10} by hand {:>6.0} rows/s, mirror {:>6.0} rows/s: ratio {:.2} ({:.2} of {:.0} rows/s by hand that nobody monitors)",
                rates.raw,
                rates.mirror,
                rates.ratio,
                rates.mirror / rates.unmonitored,
                rates.unmonitored
            );
        }
        println!(
            "  to the last follower: by hand median {:.1} ms, p99 {:.1} ms; mirror median {:.1} ms, p99 {:.1} ms: ratio of p99 {:.2}",
            run.raw.median_ms,
            run.raw.p99_ms,
            run.mirror.median_ms,
            run.mirror.p99_ms,
            run.mirror.p99_ms / run.raw.p99_ms
        );
    }
    if !report.throughput.is_empty() {
        println!(
            "targets: ratio at least {RATE_TARGET} from {LARGE} bindings on; p99 of one binding at most {LATENCY_TARGET} times that by hand"
        );
    }
    if let Some(naive) = &report.naive {
        println!(
            "refresh among {} rows: by row {:.0} rows/s, by port and address {:.0} rows/s: ratio {:.0}",
            naive.table, naive.by_uuid, naive.by_port_and_ip, naive.ratio
        );
    }
    if let Some(amplification) = &report.amplification {
        amplification.print();
    }
    if let Some(ping) = &report.ping {
        ping.print();
    }
    if let Some(memory) = &report.memory {
        memory.print();
    }
}
