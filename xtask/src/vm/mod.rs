//! `vm`: the tests that say something about a kernel, on kernels other than this machine's.
//!
//! QEMU emulates the machine. It boots one of [`kernels`], sees this machine's files read-only below
//! a layer in its memory, runs the tests that this machine has built, and writes what they say to a
//! serial port.

mod initramfs;
mod machine;
mod programs;
mod results;

use std::{
    fs::{self, File},
    num::NonZero,
    panic,
    process::ExitCode,
    thread::{self, ScopedJoinHandle},
    time::Instant,
};

use anyhow::Context as _;

use self::{
    machine::{End, MEMORY, Machine},
    results::Results,
};
use crate::{
    build_ebpf,
    progress::Progress,
    setup::{self, Scope, kernels, kernels::Kernel},
    test::{self, Counts},
    workspace::Workspace,
};

/// Arguments of `vm`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Run the tests of the kernel on other kernels, side by side where there is room
    Run {
        /// Run only these kernels
        #[arg(long, value_enum, value_delimiter = ',')]
        kernel: Vec<Kernel>,
        /// Run only these test files
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        test: Vec<String>,
        /// Run only tests whose name contains this text
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
    },
}

/// Runs the verb.
///
/// # Errors
/// When the set-up or a build fails, or QEMU cannot be run; failed tests are in the exit code.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let Verb::Run {
        kernel,
        test,
        filter,
    } = &args.verb;
    let toolchain = setup::ensure(workspace, progress, Scope::Everything)?;
    build_ebpf::build(workspace, progress, &toolchain, &[])?;
    let kernels = match kernel.is_empty() {
        true => &Kernel::ALL,
        false => kernel.as_slice(),
    };
    let counts = tests(workspace, progress, kernels, test, filter.as_deref())?;
    Ok(test::verdict(counts))
}

/// Builds the tests of the tier and runs them, or those in the files that are named, on each of the
/// kernels.
///
/// # Errors
/// When a build fails, a kernel cannot be had, or QEMU cannot be run.
pub(crate) fn tests(
    workspace: &Workspace,
    progress: &Progress,
    kernels: &[Kernel],
    files: &[String],
    filter: Option<&str>,
) -> anyhow::Result<Counts> {
    let folder = workspace.target().join("vm");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Another xtask's machines read what this one would write: it goes first.
    let lock = folder.join("lock");
    let _lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("cannot lock {}", lock.display()))?;
    let share = programs::lay_out(workspace, progress, files)?;
    let mut machines = Vec::new();
    for kernel in kernels {
        let unpacked = kernels::ensure(workspace, progress, *kernel)?;
        let folder = folder.join(kernel.to_string());
        let machine = Machine::prepare(&folder, &unpacked, &share, workspace, filter)?;
        println!("\n-- kernel {kernel} ({}) --", unpacked.release);
        machines.push((*kernel, machine));
    }
    let counts: anyhow::Result<Vec<Counts>> = if room_for(machines.len()) {
        thread::scope(|scope| {
            let runs: Vec<_> = machines
                .into_iter()
                .map(|(kernel, machine)| scope.spawn(move || run_one(kernel, machine)))
                .collect();
            let ended = |run: ScopedJoinHandle<'_, _>| match run.join() {
                Ok(counts) => counts,
                Err(panic) => panic::resume_unwind(panic),
            };
            runs.into_iter().map(ended).collect()
        })
    } else {
        let one = |(kernel, machine)| run_one(kernel, machine);
        machines.into_iter().map(one).collect()
    };
    let mut sum = Counts::default();
    for counts in counts? {
        sum += counts;
    }
    Ok(sum)
}

/// Whether as many machines may run side by side. Each keeps one processor of this one busy, and
/// QEMU takes some memory beside the machine's.
fn room_for(machines: usize) -> bool {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let memory = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| available(&text))
        .unwrap_or(0);
    machines <= processors && machines * (MEMORY + 512) <= memory
}

/// MiB that can be had without swapping, of what `/proc/meminfo` says.
fn available(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024)
}

/// Runs one machine to its end, and says so; each line says which machine's it is.
fn run_one(kernel: Kernel, machine: Machine) -> anyhow::Result<Counts> {
    let log = machine.log().to_owned();
    let started = Instant::now();
    let mut results = Results::default();
    let end = machine.run(|line| {
        if let Some(shown) = results.take(line) {
            println!("{kernel:>4} │ {shown}");
        }
    })?;
    let mut counts = results.counts();
    if let Some(reason) = failure(&end, &results) {
        // What the machine took with it has no line of its own.
        counts.failed += 1;
        println!(
            "kernel {kernel}: {reason}; the end of {}:\n{}",
            log.display(),
            machine::tail(&log).trim_end()
        );
    }
    println!(
        "kernel {kernel}: {} passed, {} failed, {} skipped in {:.0} s",
        counts.passed,
        counts.failed,
        counts.skipped,
        started.elapsed().as_secs_f64()
    );
    Ok(counts)
}

/// What is wrong with a machine's end, if anything.
fn failure(end: &End, results: &Results) -> Option<String> {
    let during = match results.running() {
        Some(program) => format!("while {program} ran"),
        None => "before its first test".to_owned(),
    };
    match end {
        End::Off if results.are_complete() => None,
        End::Off => Some(format!("the machine went off {during}")),
        End::Died(status) => Some(format!("QEMU ended with {status} {during}")),
        End::Silent(time) => Some(format!(
            "the machine said nothing for {} s {during}",
            time.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_that_is_left_is_read_in_mebibytes() {
        let meminfo = "MemTotal:       24576000 kB\nMemAvailable:    5242880 kB\n";
        assert_eq!(available(meminfo), Some(5120));
        assert_eq!(available("MemTotal: 1 kB"), None);
    }
}
