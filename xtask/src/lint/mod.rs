//! `lint`: everything that can be said about the code without running it.

mod layers;
mod licences;
mod phrases;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::{
    build_ebpf, exec,
    progress::Progress,
    setup::{self, Scope, Toolchain},
    workspace::Workspace,
};

/// Arguments of `lint`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only these checks
    #[arg(value_enum)]
    check: Vec<Check>,
}

/// One check, in the order in which they run: the quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// rustfmt, the eBPF crate and the fuzz targets included
    Fmt,
    /// The module rules of docs/architecture.md
    Layers,
    /// Paths and hosts that a user of the project does not have
    Phrases,
    /// The licence of every dependency, against deny.toml
    Licences,
    /// clippy, warnings denied, the eBPF crate included
    Clippy,
    /// rustdoc, warnings denied
    Docs,
}

const ALL: [Check; 6] = [
    Check::Fmt,
    Check::Layers,
    Check::Phrases,
    Check::Licences,
    Check::Clippy,
    Check::Docs,
];

/// Runs the verb: every check, even after one has failed.
///
/// # Errors
/// When a check cannot be made; faults found are in the exit code.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let asked: &[Check] = if args.check.is_empty() {
        &ALL
    } else {
        &args.check
    };
    let mut failed = Vec::new();
    for &check in asked {
        let name = format!("{check:?}").to_lowercase();
        eprintln!("… {name}");
        if let Err(error) = run_check(workspace, progress, check) {
            eprintln!("{error:#}");
            failed.push(name);
        }
    }
    if failed.is_empty() {
        eprintln!("✓ {} checks passed", asked.len());
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("✗ failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn run_check(workspace: &Workspace, progress: &Progress, check: Check) -> anyhow::Result<()> {
    match check {
        Check::Fmt => fmt(workspace),
        Check::Layers => report(layers::check(workspace.root())?),
        Check::Phrases => report(phrases::check(workspace.root())?),
        Check::Licences => licences(workspace),
        Check::Clippy => clippy(workspace, progress),
        Check::Docs => docs(workspace, progress),
    }
}

fn fmt(workspace: &Workspace) -> anyhow::Result<()> {
    component("cargo-fmt", "rustfmt")?;
    exec::inherit(workspace.cargo().args(["fmt", "--all", "--check"]))?;
    for manifest in [workspace.ebpf_manifest(), workspace.fuzz_manifest()] {
        let mut apart = workspace.cargo();
        apart
            .args(["fmt", "--check", "--manifest-path"])
            .arg(manifest);
        exec::inherit(&mut apart)?;
    }
    Ok(())
}

fn clippy(workspace: &Workspace, progress: &Progress) -> anyhow::Result<()> {
    component("cargo-clippy", "clippy")?;
    let toolchain = embed_objects(workspace, progress, &["log".to_owned()])?;
    for features in [&[] as &[_], &["--features", "neighsteer/log"]] {
        let mut userspace = workspace.cargo();
        userspace
            .args(["clippy", "--workspace", "--all-targets", "--locked"])
            .args(features)
            .args(["--", "--deny=warnings"]);
        exec::inherit(&mut userspace)?;
    }
    let clippy = setup::clippy(progress, &toolchain.compiler)?;
    let mut ebpf = build_ebpf::cargo(workspace, &toolchain, clippy);
    ebpf.args(["--bins", "--", "--deny=warnings"]);
    exec::inherit(&mut ebpf)
}

fn docs(workspace: &Workspace, progress: &Progress) -> anyhow::Result<()> {
    embed_objects(workspace, progress, &[])?;
    let mut cargo = workspace.cargo();
    cargo
        .args([
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
        ])
        .env("RUSTDOCFLAGS", "--deny=warnings");
    exec::inherit(&mut cargo)
}

/// The agent does not compile without the object that it embeds.
fn embed_objects(
    workspace: &Workspace,
    progress: &Progress,
    features: &[String],
) -> anyhow::Result<Toolchain> {
    let toolchain = setup::ensure(workspace, progress, Scope::Build)?;
    build_ebpf::build(workspace, progress, &toolchain, features)?;
    Ok(toolchain)
}

fn licences(workspace: &Workspace) -> anyhow::Result<()> {
    report(licences::check(workspace)?)?;
    if exec::find_program("cargo-deny").is_none() {
        return Ok(());
    }
    // Advisories need the network and change without the project changing.
    exec::inherit(
        workspace
            .cargo()
            .args(["deny", "check", "bans", "licenses", "sources"]),
    )
}

fn component(program: &str, component: &str) -> anyhow::Result<()> {
    let found = exec::stdout(Command::new(program).arg("--version"));
    found
        .map(drop)
        .with_context(|| format!("missing: {component}; rustup component add {component}"))
}

/// Turns a list of faults into one error.
fn report(faults: Vec<String>) -> anyhow::Result<()> {
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
