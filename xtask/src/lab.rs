//! `lab` and `demo`: make the machine ready, build, and hand over to the lab's own binary.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::anyhow;

use crate::{
    build_ebpf, exec,
    progress::Progress,
    setup::{self, Scope, tree},
    workspace::Workspace,
};

/// The agent's binary.
const AGENT: &str = "neighsteer";
/// The lab's binary, of the tests crate.
const LAB: &str = "neighsteer-lab";
/// What it takes for `--ovn` where that is not given.
const VERSION_VARIABLE: &str = "NEIGHSTEER_LAB_OVN";

/// Arguments of `lab`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LabArgs {
    /// up, down, status or shell, and their options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

/// Arguments of `demo`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct DemoArgs {
    /// For example --udns 500 or --output json; --help lists them all
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs `lab`.
///
/// # Errors
/// When the set-up or a build fails, or the binary cannot be started.
pub(crate) fn lab(
    workspace: &Workspace,
    progress: &Progress,
    args: &LabArgs,
) -> anyhow::Result<ExitCode> {
    hand_over(workspace, progress, &args.arguments)
}

/// Runs `demo`.
///
/// # Errors
/// When the set-up or a build fails, or the binary cannot be started.
pub(crate) fn demo(
    workspace: &Workspace,
    progress: &Progress,
    args: &DemoArgs,
) -> anyhow::Result<ExitCode> {
    let mut arguments = vec![OsString::from("demo")];
    arguments.extend_from_slice(&args.arguments);
    hand_over(workspace, progress, &arguments)
}

fn hand_over(
    workspace: &Workspace,
    progress: &Progress,
    arguments: &[OsString],
) -> anyhow::Result<ExitCode> {
    let binary = workspace.target().join("release").join(LAB);
    // Help needs no set-up; without the binary there is nobody who could give it yet.
    let asks_for_help = arguments.iter().any(|it| it == "--help" || it == "-h");
    if !(asks_for_help && binary.exists()) {
        build(workspace, progress, &[LAB])?;
    }
    // Nobody else waits for the tree.
    let by_environment = env::var_os(VERSION_VARIABLE);
    if arguments
        .iter()
        .chain(&by_environment)
        .any(|it| names_the_tree(it))
    {
        tree::ensure(workspace, progress)?;
    }
    let mut lab = Command::new(&binary);
    lab.args(arguments);
    // In this process's place: the terminal's signals are for the lab, which cleans up after itself.
    Err(anyhow!(lab.exec()).context(format!("cannot run {}", exec::shown(&lab))))
}

/// Whether an argument asks for the versions of the tree: `25.03` after `--ovn`, or `--ovn=25.03`.
fn names_the_tree(argument: &OsStr) -> bool {
    argument
        .to_str()
        .is_some_and(|text| text.strip_prefix("--ovn=").unwrap_or(text) == tree::OVN)
}

/// Builds the agent and these binaries, optimised: figures of unoptimised code say nothing.
///
/// # Errors
/// When the set-up or a build fails.
pub(crate) fn build(
    workspace: &Workspace,
    progress: &Progress,
    binaries: &[impl AsRef<OsStr>],
) -> anyhow::Result<()> {
    let toolchain = setup::ensure(workspace, progress, Scope::Everything)?;
    build_ebpf::build(workspace, progress, &toolchain, &[])?;
    let step = progress.step("building neighsteer and its lab");
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--locked"]);
    cargo.args(["--package", "neighsteer", "--package", "neighsteer-tests"]);
    cargo.args(["--bin", AGENT]);
    for binary in binaries {
        cargo.arg("--bin").arg(binary);
    }
    exec::watched(&mut cargo, &step)?;
    step.done();
    Ok(())
}
