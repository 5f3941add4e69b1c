//! `test`: every tier, one summary.

mod outcome;
mod tiers;

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;

pub(crate) use self::outcome::{Counts, Reader};
use self::tiers::{Run, Tier};
use crate::{
    arm64, build_ebpf, exec, progress::Progress, setup, setup::kernels::Kernel, vm,
    workspace::Workspace,
};

/// What the test that runs the agent of arm64 is called: what it needs is built where it is asked for.
const ARM64: &str = "classify_on_arm64_says_of_the_corpus_what_it_says_here";

/// Arguments of `test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these tiers
    #[arg(long, value_enum, value_delimiter = ',')]
    tier: Vec<Tier>,
    /// Run only tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// What one tier came to.
struct Row {
    tier: Tier,
    counts: Counts,
    took: Duration,
}

/// Runs the verb.
///
/// # Errors
/// When the set-up or a build fails; failed tests are in the exit code.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let toolchain = setup::ensure(workspace, progress, setup::Scope::Everything)?;
    setup::tree::ensure(workspace, progress)?;
    build_ebpf::build(workspace, progress, &toolchain, &[])?;
    // Every target in one build: binaries built apart would get other features of the dependencies,
    // and so most of these twice.
    let step = progress.step("building every binary and test");
    exec::watched(
        workspace
            .cargo()
            .args(["build", "--workspace", "--all-targets", "--locked"]),
        &step,
    )?;
    step.done();
    let filter = args.filter.as_deref();
    let is_asked = args.tier.is_empty() || args.tier.contains(&Tier::Pure);
    if is_asked && filter.is_none_or(|filter| ARM64.contains(filter)) {
        arm64::build_for_tests(workspace, progress)?;
    }

    let mut rows = Vec::new();
    for run in tiers::plan(workspace.targets(), &args.tier) {
        let started = Instant::now();
        let counts = run_tier(workspace, progress, &run, filter)?;
        rows.push(Row {
            tier: run.tier,
            counts,
            took: started.elapsed(),
        });
    }
    if rows.is_empty() {
        bail!("no test of the tiers asked for exists");
    }
    Ok(sum_up(&rows))
}

/// Runs one tier's tests and shows what they say.
fn run_tier(
    workspace: &Workspace,
    progress: &Progress,
    run: &Run,
    filter: Option<&str>,
) -> anyhow::Result<Counts> {
    println!("\n== {} ==", run.tier);
    if run.tier == Tier::Vm {
        return vm::tests(workspace, progress, &Kernel::ALL, &[], filter);
    }
    let mut cargo = workspace.cargo();
    cargo
        .args([
            "test",
            "--workspace",
            "--locked",
            "--no-fail-fast",
            "--quiet",
        ])
        .args(["--color", "never"])
        .args(&run.selection)
        .arg("--")
        .args(["--show-output", "--format", "pretty"])
        .arg(format!("--test-threads={}", run.tier.threads()))
        .args(filter);
    let mut reader = Reader::default();
    let status = exec::each_line(&mut cargo, |line| {
        if let Some(shown) = reader.read(line) {
            println!("{shown}");
        }
    })?;
    let mut counts = reader.counts();
    if !status.success() && counts.failed == 0 {
        // A test program that died took its own summary with it.
        println!(
            "{} ended with {status} and no test failure of its own",
            exec::shown(&cargo)
        );
        counts.failed = 1;
    }
    Ok(counts)
}

/// Prints the table and the sum.
fn sum_up(rows: &[Row]) -> ExitCode {
    let mut sum = Counts::default();
    println!(
        "\n{:<8} {:>7} {:>7} {:>8} {:>9}",
        "tier", "passed", "failed", "skipped", "seconds"
    );
    for Row { tier, counts, took } in rows {
        println!(
            "{:<8} {:>7} {:>7} {:>8} {:>9.1}",
            tier.to_string(),
            counts.passed,
            counts.failed,
            counts.skipped,
            took.as_secs_f64(),
        );
        sum += *counts;
    }
    verdict(sum)
}

/// Prints the sum, as the last line, and says whether all is well.
pub(crate) fn verdict(sum: Counts) -> ExitCode {
    let skipped_in_ci = sum.skipped > 0 && env::var_os("CI").is_some_and(|value| value == "true");
    if skipped_in_ci {
        println!("\nunder CI=true a skipped test is a failure");
    }
    println!(
        "\n{} passed, {} failed, {} skipped",
        sum.passed, sum.failed, sum.skipped
    );
    if sum.failed > 0 || skipped_in_ci {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
