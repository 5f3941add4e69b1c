//! What the mirror costs and how fast it is: beside the least that could be done, and on a node.

mod throughput;

use std::process::ExitCode;

use clap::Parser;
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
    /// Followers
    #[arg(long, default_value_t = 500)]
    followers: usize,
    /// Bindings of the source at once, and how often
    #[arg(long, value_delimiter = ',', value_parser = burst, default_value = "1:200,10:20,50:5")]
    bursts: Vec<(usize, usize)>,
}

fn burst(text: &str) -> Result<(usize, usize), String> {
    let (burst, rounds) = text
        .split_once(':')
        .ok_or("<bindings>:<rounds> is wanted")?;
    let number = |text: &str| text.parse().map_err(|error| format!("{text:?}: {error}"));
    Ok((number(burst)?, number(rounds)?))
}

#[derive(Serialize)]
struct Report {
    throughput: Vec<throughput::Report>,
    naive: throughput::Naive,
    missed: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut throughput = Vec::new();
    for (burst, rounds) in &args.bursts {
        throughput.push(runtime.block_on(throughput::measure(args.followers, *burst, *rounds))?);
    }
    let mut report = Report {
        naive: runtime.block_on(throughput::naive(args.followers, 50))?,
        throughput,
        missed: Vec::new(),
    };
    report.missed = missed(&report);
    match args.output {
        Output::Json => println!("{}", serde_json::to_string(&report)?),
        Output::Text => print(&report),
    }
    Ok(if report.missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
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
    println!(
        "targets: ratio at least {RATE_TARGET} from {LARGE} bindings on; p99 of one binding at most {LATENCY_TARGET} times that by hand"
    );
    let naive = &report.naive;
    println!(
        "refresh among {} rows: by row {:.0} rows/s, by port and address {:.0} rows/s: ratio {:.0}",
        naive.table, naive.by_uuid, naive.by_port_and_ip, naive.ratio
    );
    for missed in &report.missed {
        println!("missed: {missed}");
    }
}
