//! `build-ebpf`: the eBPF crate's binaries as object files in `target/bpf`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, ensure};

use crate::{
    exec,
    progress::Progress,
    setup::{self, Scope, Toolchain},
    workspace::{self, Target, Workspace},
};

/// Little-endian eBPF: every machine that the agent is built for.
const TARGET: &str = "bpfel-unknown-none";

/// The binary that the agent embeds; the others serve tests and benches.
const SHIPPED: &str = "neighsteer";

/// Arguments of `build-ebpf`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build the shipped object with these features too, as neighsteer-FEATURES.bpf.o
    #[arg(long, value_delimiter = ',', value_parser = ["log"])]
    features: Vec<String>,
}

/// Runs the verb.
///
/// # Errors
/// When the tools are missing or the build fails.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let toolchain = setup::ensure(workspace, progress, Scope::Build)?;
    for object in build(workspace, progress, &toolchain, &args.features)? {
        let size = fs::metadata(&object)
            .with_context(|| format!("cannot read {}", object.display()))?
            .len();
        let shown = object.strip_prefix(workspace.root()).unwrap_or(&object);
        println!("{} ({size} bytes)", shown.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the objects without features and, where any are named, the shipped one with them.
/// Returns their paths.
///
/// # Errors
/// When the build fails.
pub(crate) fn build(
    workspace: &Workspace,
    progress: &Progress,
    toolchain: &Toolchain,
    features: &[String],
) -> anyhow::Result<Vec<PathBuf>> {
    let metadata = workspace::metadata(&workspace.ebpf_manifest(), &["--no-deps"])?;
    let mut binaries: Vec<_> = workspace::targets(&metadata)
        .into_iter()
        .filter(|target| target.kind == "bin" && target.required_features.is_empty())
        .map(|target: Target| target.name)
        .collect();
    binaries.sort();
    ensure!(
        binaries.iter().any(|name| name == SHIPPED),
        "the eBPF crate has no binary named {SHIPPED}"
    );

    let step = progress.step(format!(
        "building the eBPF objects with {}",
        toolchain.compiler.origin
    ));
    exec::watched(cargo_build(workspace, toolchain).arg("--bins"), &step)?;
    let mut objects = Vec::new();
    for name in &binaries {
        objects.push(publish(workspace, name, name)?);
    }
    if !features.is_empty() {
        let joined = features.join(",");
        let mut cargo = cargo_build(workspace, toolchain);
        exec::watched(cargo.args(["--bin", SHIPPED, "--features", &joined]), &step)?;
        let name = format!("{SHIPPED}-{}", features.join("-"));
        objects.push(publish(workspace, SHIPPED, &name)?);
    }
    step.done();
    Ok(objects)
}

/// A release build of the eBPF crate.
fn cargo_build(workspace: &Workspace, toolchain: &Toolchain) -> Command {
    let mut program = toolchain.compiler.cargo();
    program.arg("build");
    cargo(workspace, toolchain, program)
}

/// Completes a cargo command (`build`, `clippy`) for the eBPF crate, `core` included.
pub(crate) fn cargo(workspace: &Workspace, toolchain: &Toolchain, mut cargo: Command) -> Command {
    let linker = toolchain.linker.display();
    // Debug information goes into the flags and not into a profile, so that `core` has it too:
    // BTF of functions whose types are missing is refused by the kernel.
    let flags = [
        "-Cdebuginfo=2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
        format!("-Clinker={linker}"),
    ];
    cargo
        .args([
            "--release",
            "--locked",
            "-Zbuild-std=core",
            "--target",
            TARGET,
            "--manifest-path",
        ])
        .arg(workspace.ebpf_manifest())
        .env("CARGO_TARGET_DIR", folder(workspace))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    cargo
}

/// Copies a built binary to `target/bpf`; a copy that is the same already keeps its time, so that
/// the agent that embeds it is not built again.
fn publish(workspace: &Workspace, binary: &str, name: &str) -> anyhow::Result<PathBuf> {
    let built = folder(workspace).join(TARGET).join("release").join(binary);
    // Not below CARGO_TARGET_DIR: here is where the agent's build script and the tests look.
    let object = workspace
        .root()
        .join("target/bpf")
        .join(format!("{name}.bpf.o"));
    copy_if_different(&built, &object)
        .with_context(|| format!("cannot copy {} to {}", built.display(), object.display()))?;
    Ok(object)
}

fn copy_if_different(from: &Path, to: &Path) -> std::io::Result<()> {
    let new = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // A build or a loader that runs at this moment sees the old object or the new one.
    let half = to.with_extension("part");
    fs::write(&half, new)?;
    fs::rename(half, to)
}

/// The eBPF crate's own target folder: its compiler is another one.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("ebpf")
}
