//! `arm64`: the agent for nodes and DPUs of that architecture.

use std::{path::PathBuf, process::ExitCode};

use crate::{
    build_ebpf, exec,
    progress::Progress,
    setup::{
        self, Scope,
        cross::{self, LINKER, TARGET},
    },
    workspace::Workspace,
};

/// Arguments of `arm64`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build for use, and not for tests
    #[arg(long)]
    release: bool,
}

/// Runs the verb.
///
/// # Errors
/// When something is missing or the build fails.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let toolchain = setup::ensure(workspace, progress, Scope::Build)?;
    build_ebpf::build(workspace, progress, &toolchain, &[])?;
    let binary = build(workspace, progress, args.release)?;
    let shown = binary.strip_prefix(workspace.root()).unwrap_or(&binary);
    println!("{}", shown.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the agent, with the eBPF object that is there: it is of both architectures. Returns the
/// binary's path.
///
/// # Errors
/// When something is missing or the build fails.
pub(crate) fn build(
    workspace: &Workspace,
    progress: &Progress,
    release: bool,
) -> anyhow::Result<PathBuf> {
    let compiler = cross::ensure(progress)?;
    let step = progress.step(format!(
        "building the agent for arm64 with {}",
        compiler.origin
    ));
    // Apart from what another compiler builds for this machine: each would undo the other's work.
    let folder = workspace.target().join("arm64");
    let mut cargo = compiler.cargo();
    cargo
        .current_dir(workspace.root())
        // Nothing of a nightly compiler is needed, and dependencies would try to use it.
        .env_remove("RUSTC_BOOTSTRAP")
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CC_aarch64_unknown_linux_gnu", LINKER)
        // Nobody looks into it with a debugger, and it is a third of the time.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .args(["build", "--locked", "--target", TARGET])
        .args(["--package", "neighsteer", "--bin", "neighsteer"])
        .args(release.then_some("--release"));
    exec::watched(&mut cargo, &step)?;
    step.done();
    let profile = if release { "release" } else { "debug" };
    Ok(folder.join(TARGET).join(profile).join("neighsteer"))
}

/// Builds it for the tests that run it. Where it cannot be built for want of something, that is told,
/// and they skip themselves.
///
/// # Errors
/// When the build fails.
pub(crate) fn build_for_tests(workspace: &Workspace, progress: &Progress) -> anyhow::Result<()> {
    if let Err(missing) = cross::ensure(progress) {
        eprintln!("warning: no tests of arm64: {missing:#}");
        return Ok(());
    }
    build(workspace, progress, false).map(drop)
}
