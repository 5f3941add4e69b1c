//! The mirror at scale on both pairs of versions, while neighbours are being refreshed.

mod load;
mod measure;
mod rows;

use std::{fmt::Display, process::ExitCode};

use clap::Parser;
use neighsteer_tests::{
    lab::OvnVersion,
    report::{Output, Times},
};
use serde::Serialize;

/// Measures first packets, a gateway that changes its MAC and a thundering herd.
#[derive(Parser)]
struct Args {
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Primary UDNs besides the default network
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    udns: u16,
    /// Times that each is measured
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=40))]
    rounds: u8,
    /// External neighbours that are refreshed meanwhile
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=200))]
    neighbours: u8,
    /// The pairs of versions, by the OVN release
    #[arg(long, value_delimiter = ',', default_value = "23.03,25.03")]
    ovn: Vec<OvnVersion>,
}

#[derive(Serialize)]
struct Report {
    udns: u16,
    neighbours: u8,
    runs: Vec<measure::Report>,
    missed: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    neighsteer_tests::lab::end_labs_on_signals()?;
    let mut report = Report {
        udns: args.udns,
        neighbours: args.neighbours,
        runs: Vec::new(),
        missed: Vec::new(),
    };
    for version in &args.ovn {
        let run = measure::measure(*version, args.udns, args.rounds, args.neighbours)?;
        if run.lost > 0 {
            let lost = format!("{} first pings lost on OVN {}", run.lost, run.versions.ovn);
            report.missed.push(lost);
        }
        report.runs.push(run);
    }
    Ok(args.output.finish(&report, &report.missed, print)?)
}

fn print(report: &Report) {
    println!(
        "{} followers, {} neighbours being refreshed; medians (longest) in ms",
        report.udns, report.neighbours
    );
    let line = |what: &str, of: &dyn Fn(&measure::Report) -> String| {
        let cells: String = report
            .runs
            .iter()
            .map(|run| format!("{:>18}", of(run)))
            .collect();
        println!("{what:<62}{cells}");
    };
    let times = |times: &Times| format!("{:.0} ({:.0})", times.median_ms, times.max_ms);
    let shown = |text: &dyn Display| text.to_string();
    line("OVN", &|run| shown(&run.versions.ovn));
    line("Open vSwitch", &|run| shown(&run.versions.open_vswitch));
    line(
        "first ping of a UDN's pod to an unresolved host, IPv4",
        &|run| times(&run.ping_ipv4),
    );
    line(
        "first ping of a UDN's pod to an unresolved host, IPv6",
        &|run| times(&run.ping_ipv6),
    );
    line("of these without an answer", &|run| {
        format!("{} of {}", run.lost, run.pings)
    });
    line(
        "gateway announces a MAC to last follower's row, IPv4",
        &|run| times(&run.mac_change_ipv4),
    );
    line(
        "gateway announces a MAC to last follower's row, IPv6",
        &|run| times(&run.mac_change_ipv6),
    );
    line(
        "all followers' rows deleted, put back by themselves",
        &|run| times(&run.put_back),
    );
    line("deleted again, restored by one announcement", &|run| {
        times(&run.herd)
    });
    line("network up, s", &|run| format!("{:.1}", run.up_s));
    line("agent's resident memory, MiB", &|run| {
        shown(&(run.agent_resident_bytes >> 20))
    });
}
