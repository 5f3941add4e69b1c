//! `fuzz`: the fuzz targets, by cargo-fuzz and a nightly compiler. What comes of it is kept below the
//! target directory; the corpus in the repository is only read.

use std::{
    fs,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, bail, ensure};

use crate::{
    build_ebpf, exec,
    progress::Progress,
    setup::{self, Scope},
    workspace::Workspace,
};

/// What is asked for with `rustup toolchain install`.
const TOOLCHAIN: &str = "nightly";

/// Arguments of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this target (a file of fuzz/fuzz_targets) [default: each in turn]
    target: Option<String>,
    /// For how long, each
    #[arg(long, default_value_t = 10, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
}

/// Runs the verb: every target, even after one has failed.
///
/// # Errors
/// When something is missing, a build fails or there is no such target; inputs at which a target
/// panicked are in the exit code.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let targets = targets(workspace)?;
    let wanted: Vec<&String> = targets
        .iter()
        .filter(|name| args.target.as_ref().is_none_or(|it| it == *name))
        .collect();
    ensure!(
        !wanted.is_empty(),
        "no such fuzz target; there are: {}",
        targets.join(", ")
    );
    let missing = missing();
    ensure!(missing.is_empty(), "missing: {}", missing.join("; "));
    // The agent does not compile without the object that it embeds.
    let toolchain = setup::ensure(workspace, progress, Scope::Build)?;
    build_ebpf::build(workspace, progress, &toolchain, &[])?;

    let mut failed = Vec::new();
    for name in wanted {
        println!("\n== {name}, {} min ==", args.minutes);
        if let Err(error) = run_target(workspace, name, args.minutes) {
            eprintln!("error: {error:#}");
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "✗ failed: {}; inputs that were found are in {}, and belong into fuzz/corpus once mended",
        failed.join(", "),
        workspace.target().join("fuzz/artifacts").display()
    );
    Ok(ExitCode::FAILURE)
}

/// The names of all targets, sorted.
fn targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let folder = workspace.root().join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".rs"));
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    if names.is_empty() {
        bail!("{} has no target", folder.display());
    }
    Ok(names)
}

/// What fuzzing needs and this machine lacks, with what installs it.
fn missing() -> Vec<String> {
    let toolchains = exec::stdout(Command::new("rustup").args(["toolchain", "list"]));
    let is_nightly = |line: &str| line.starts_with(TOOLCHAIN);
    let mut missing = Vec::new();
    if !toolchains.is_ok_and(|list| list.lines().any(is_nightly)) {
        missing.push(format!(
            "a nightly compiler (rustup toolchain install {TOOLCHAIN})"
        ));
    }
    if exec::find_program("cargo-fuzz").is_none() {
        missing.push("cargo-fuzz (cargo install cargo-fuzz --locked)".to_owned());
    }
    if exec::find_program("c++").is_none() {
        missing.push("a C++ compiler, which builds libFuzzer (apt-get install g++)".to_owned());
    }
    missing
}

fn run_target(workspace: &Workspace, name: &str, minutes: u32) -> anyhow::Result<()> {
    let fuzz = workspace.target().join("fuzz");
    let found = fuzz.join("corpus").join(name);
    let artifacts = fuzz.join("artifacts").join(name);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut command = Command::new("rustup");
    command
        .current_dir(workspace.root())
        .args(["run", TOOLCHAIN, "cargo", "fuzz", "run", "--target-dir"])
        .arg(&fuzz)
        .arg(name)
        // New inputs go to the first folder.
        .arg(&found)
        .arg(workspace.root().join("fuzz/corpus").join(name))
        .arg("--")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={}", u64::from(minutes) * 60))
        .args(["-max_len=65536", "-timeout=10"])
        .env(
            "NEIGHSTEER_BPF_OBJECT",
            workspace.target().join("bpf/neighsteer.bpf.o"),
        );
    // What the toolchain that runs this xtask has set for its own.
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    exec::inherit(&mut command)
}
