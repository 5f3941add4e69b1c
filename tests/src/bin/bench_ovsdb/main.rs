//! What the database client and the mirror cost, each beside the least that could be done.

mod fan_out;
mod load;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use neighsteer_tests::report::Output;
use serde::Serialize;

/// From a binding of the source to one for every follower, at most this much slower than one
/// hand-packed transaction of the same rows.
const FAN_OUT_TARGET: f64 = 1.5;
/// 50,000 rows in the cache cost at most this many MB.
const MEMORY_TARGET: f64 = 20.0;

/// Measures the database client and the mirror on a real ovsdb-server.
#[derive(Parser)]
struct Args {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Bindings of the source to fan out
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Followers
    #[arg(long, default_value_t = 500)]
    followers: usize,
    /// Rows to load
    #[arg(long, default_value_t = 50_000)]
    rows: usize,
    /// Only read the bindings behind this socket, for the memory that it takes
    #[arg(long, hide = true)]
    read_from: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    fan_out: fan_out::Report,
    load: load::Report,
    missed: Vec<&'static str>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if let Some(socket) = args.read_from {
        let loaded = runtime.block_on(load::read(socket))?;
        println!("{}", serde_json::to_string(&loaded)?);
        return Ok(ExitCode::SUCCESS);
    }
    let load = runtime.block_on(load::measure(args.rows))?;
    let fan_out = runtime.block_on(fan_out::measure(args.followers, args.rounds))?;
    let mut missed = Vec::new();
    if fan_out.ratio > FAN_OUT_TARGET {
        missed.push("fan-out");
    }
    if load.cache_mb > MEMORY_TARGET {
        missed.push("memory");
    }
    let report = Report {
        fan_out,
        load,
        missed,
    };
    Ok(args.output.finish(&report, &report.missed, print)?)
}

fn print(report: &Report) {
    let fan_out = &report.fan_out;
    println!(
        "{} rounds: one binding of the source to {} followers, beside the same rows by hand",
        fan_out.rounds, fan_out.followers
    );
    for (what, times) in [
        ("one hand-packed transaction", &fan_out.raw),
        ("  of rows that nobody monitors", &fan_out.raw_unmonitored),
        (
            "source row seen -> all committed",
            &fan_out.seen_to_committed,
        ),
        (
            "source row seen -> first chunk",
            &fan_out.seen_to_first_chunk,
        ),
        (
            "source row sent -> all committed",
            &fan_out.sent_to_committed,
        ),
    ] {
        println!(
            "  {what:<34} median {:>8.2} ms   p90 {:>8.2}   max {:>8.2}",
            times.median_ms, times.p90_ms, times.max_ms
        );
    }
    println!(
        "  ratio of the medians {:.2} (target: at most {FAN_OUT_TARGET}), {:.2} to rows that nobody monitors; {:.1} transactions a round; inserts written in {:.0} µs",
        fan_out.ratio, fan_out.ratio_unmonitored, fan_out.transactions, fan_out.serialise_us
    );
    let load = &report.load;
    println!(
        "{} rows of MAC_Binding, {} bytes of JSON",
        load.rows, load.bytes
    );
    println!(
        "  read and thrown away {:.0} ms, in the cache {:.0} ms: ratio {:.2}",
        load.raw_ms, load.client_ms, load.ratio
    );
    println!(
        "  resident memory + {:.1} MB (target: at most {MEMORY_TARGET})",
        load.cache_mb
    );
}
