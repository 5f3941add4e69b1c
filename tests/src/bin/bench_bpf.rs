//! What the programs cost a frame, beside an empty program that returns the same code.
//!
//! `BPF_PROG_TEST_RUN`, the programs by turns in short rounds. The least of the rounds counts: it is
//! the one that nothing else on the machine disturbed.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use aya::{
    TestRun, TestRunOptions,
    programs::{ProgramError, ProgramInfo},
};
use clap::Parser;
use neighsteer_common::{NodeAddresses, Policy, abi};
use neighsteer_tests::{
    frames::{self, BRIDGE_MAC},
    kernel::{self, BENCH, Programs, SHIPPED},
    report::Output,
};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Runs of a program in one round.
const ROUND: u32 = 100_000;
/// How often a missed target is measured again, for the case that the machine was busy all along.
const ATTEMPTS: u32 = 5;

/// What the programs cost a frame
#[derive(Parser)]
struct Args {
    /// Runs of each program on each frame
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 2_000_000,
        value_parser = clap::value_parser!(u32).range(i64::from(ROUND)..)
    )]
    repeats: u32,
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// One program on one kind of frame.
#[derive(Serialize)]
struct Row {
    hook: &'static str,
    frame: &'static str,
    /// ns per frame.
    empty_ns: f64,
    /// ns per frame.
    program_ns: f64,
    ratio: f64,
    /// The highest ratio that is wanted; XDP has none.
    target: Option<f64>,
}

impl Row {
    fn is_met(&self) -> bool {
        self.target.is_none_or(|target| self.ratio <= target)
    }
}

/// What a loaded program takes up.
#[derive(Serialize)]
struct Size {
    program: &'static str,
    instructions: u32,
    /// Of the instructions as the verifier left them.
    bytes: u32,
    /// How many instructions the verifier looked at.
    verified_instructions: Option<u32>,
}

#[derive(Serialize)]
struct Report {
    repeats: u32,
    rows: Vec<Row>,
    sizes: Vec<Size>,
    targets_met: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(reason) = kernel::missing() {
        anyhow::bail!("{reason}");
    }
    let report = measure(args.repeats)?;
    let mut output = io::stdout().lock();
    match args.output {
        Output::Json => {
            serde_json::to_writer_pretty(&mut output, &report)?;
            writeln!(output)?;
        }
        Output::Text => print(&report, &mut output)?,
    }
    Ok(if report.targets_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Names, bytes, and the targets on tc.
fn frames() -> [(&'static str, Vec<u8>, f64); 4] {
    use frames::{HOST_IP, HOST_IP6, HOST_MAC, NODE_IP, NODE_IP6, tcp};
    [
        (
            "TCP/IPv4",
            tcp::tcp_ipv4((HOST_MAC, HOST_IP), (BRIDGE_MAC, NODE_IP), 100),
            1.25,
        ),
        (
            "TCP/IPv6",
            tcp::tcp_ipv6((HOST_MAC, HOST_IP6), (BRIDGE_MAC, NODE_IP6), 100),
            1.6,
        ),
        (
            "ARP reply",
            frames::arp_reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP),
            6.0,
        ),
        (
            "NA",
            frames::neighbor_advertisement(HOST_MAC, HOST_IP6, BRIDGE_MAC, NODE_IP6),
            6.0,
        ),
    ]
}

fn measure(repeats: u32) -> anyhow::Result<Report> {
    let policy = Policy {
        bridge_mac: BRIDGE_MAC.0,
        gateway_vlan: None,
        node_addresses: NodeAddresses::NONE,
    };
    let mut shipped = Programs::open(SHIPPED, Some(&policy), None)?;
    let mut empty = Programs::open(BENCH, Some(&policy), None)?;
    let mut rows = Vec::new();
    let mut sizes = Vec::new();

    let tc_empty = &*empty.load_tc("tc_empty")?;
    let tc = &*shipped.load_tc(abi::TC_INGRESS)?;
    sizes.push(size(abi::TC_INGRESS, tc.info()?)?);
    for (name, frame, target) in frames() {
        rows.push(row(
            "tc",
            name,
            &frame,
            (tc_empty, tc),
            Some(target),
            repeats,
        )?);
    }
    let xdp_empty = &*empty.load_xdp("xdp_empty")?;
    let xdp = &*shipped.load_xdp(abi::XDP_INGRESS)?;
    sizes.push(size(abi::XDP_INGRESS, xdp.info()?)?);
    for (name, frame, _) in frames() {
        rows.push(row("XDP", name, &frame, (xdp_empty, xdp), None, repeats)?);
    }
    Ok(Report {
        repeats,
        targets_met: rows.iter().all(Row::is_met),
        rows,
        sizes,
    })
}

fn row<P>(
    hook: &'static str,
    name: &'static str,
    frame: &[u8],
    (empty, program): (&P, &P),
    target: Option<f64>,
    repeats: u32,
) -> anyhow::Result<Row>
where
    P: for<'a> TestRun<Opts<'a> = TestRunOptions<'a>>,
{
    let mut best = [Duration::MAX; 2];
    let mut attempts = 0;
    loop {
        for _ in 0..repeats.div_ceil(ROUND) {
            for (best, program) in best.iter_mut().zip([empty, program]) {
                *best = (*best).min(round(program, frame)?);
            }
        }
        attempts += 1;
        let [empty_ns, program_ns] = best.map(|time| time.as_secs_f64() * 1e9 / f64::from(ROUND));
        let row = Row {
            hook,
            frame: name,
            empty_ns,
            program_ns,
            ratio: program_ns / empty_ns,
            target,
        };
        if row.is_met() || attempts == ATTEMPTS {
            return Ok(row);
        }
    }
}

/// The processor time that one round takes: what others do meanwhile is not in it, nor is a wait.
/// What the kernel reports is a whole number of ns per run, too coarse beside an empty program's ten.
fn round<P>(program: &P, frame: &[u8]) -> anyhow::Result<Duration>
where
    P: for<'a> TestRun<Opts<'a> = TestRunOptions<'a>>,
{
    let start = processor_time()?;
    program
        .test_run(TestRunOptions {
            data_in: Some(frame),
            repeat: ROUND,
            ..TestRunOptions::default()
        })
        .context("the kernel does not run the program")?;
    Ok(processor_time()?.saturating_sub(start))
}

fn processor_time() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from)
}

fn size(program: &'static str, info: ProgramInfo) -> Result<Size, ProgramError> {
    let bytes = info.size_translated().unwrap_or(0);
    Ok(Size {
        program,
        instructions: bytes / 8,
        bytes,
        verified_instructions: info.verified_instruction_count(),
    })
}

fn print(report: &Report, output: &mut impl Write) -> io::Result<()> {
    writeln!(
        output,
        "{:<5}{:<11}{:>10}{:>12}{:>8}{:>9}",
        "HOOK", "FRAME", "EMPTY ns", "PROGRAM ns", "RATIO", "TARGET"
    )?;
    for row in &report.rows {
        let target = row.target.map_or_else(
            || "-".to_owned(),
            |target| format!("{} {target}", if row.is_met() { "≤" } else { "!" }),
        );
        writeln!(
            output,
            "{:<5}{:<11}{:>10.1}{:>12.1}{:>8.2}{:>9}",
            row.hook, row.frame, row.empty_ns, row.program_ns, row.ratio, target
        )?;
    }
    for size in &report.sizes {
        writeln!(
            output,
            "{}: {} instructions, {} bytes; the verifier looked at {}",
            size.program,
            size.instructions,
            size.bytes,
            size.verified_instructions
                .map_or_else(|| "an unknown number".to_owned(), |count| count.to_string())
        )?;
    }
    Ok(())
}
