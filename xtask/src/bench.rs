//! `bench`: every `bench_*` binary of the tests crate, one report.

use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value};

use crate::{exec, lab, progress::Progress, setup, workspace::Workspace};

/// What the names of bench binaries begin with.
const PREFIX: &str = "bench_";

/// The benches that run the versions of the tree too.
const WITH_TREE: [&str; 2] = ["nodes", "versions"];

/// Arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only benches whose name contains this text
    #[arg(value_name = "TEXT")]
    filter: Option<String>,
    /// The form of the report
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Options of the bench, where it is one: `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Tables
    Text,
    /// One object with a member for each bench
    Json,
}

/// Runs the verb: every bench, even after one has failed.
///
/// # Errors
/// When the set-up or a build fails, or no bench matches; a bench that fails or misses its target
/// is in the exit code.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let wanted = args.filter.as_deref().unwrap_or_default();
    let mut names: Vec<&str> = workspace
        .targets()
        .iter()
        .filter(|target| target.kind == "bin")
        .filter_map(|target| target.name.strip_prefix(PREFIX))
        .filter(|name| name.contains(wanted))
        .collect();
    names.sort_unstable();
    ensure!(
        !names.is_empty(),
        "no bench has a name that contains {wanted:?}"
    );
    ensure!(
        args.arguments.is_empty() || names.len() == 1,
        "options are one bench's: {} have a name that contains {wanted:?}",
        names.join(", ")
    );
    let binaries: Vec<String> = names.iter().map(|name| format!("{PREFIX}{name}")).collect();
    lab::build(workspace, progress, &binaries)?;
    if names.iter().any(|name| WITH_TREE.contains(name)) {
        setup::tree::ensure(workspace, progress)?;
    }

    let mut report = Map::new();
    let mut failed = Vec::new();
    for name in names {
        let program = workspace
            .target()
            .join("release")
            .join(format!("{PREFIX}{name}"));
        let mut bench = Command::new(program);
        bench.args(&args.arguments);
        let result = match args.output {
            Output::Text => {
                println!("\n== {name} ==");
                exec::inherit(&mut bench)
            }
            Output::Json => measured(&mut bench).map(|value| {
                report.insert(name.to_owned(), value);
            }),
        };
        if let Err(error) = result {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    if args.output == Output::Json {
        println!("{}", Value::Object(report));
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a bench prints as JSON.
fn measured(bench: &mut Command) -> anyhow::Result<Value> {
    let text = exec::stdout(bench.args(["--output", "json"]))?;
    serde_json::from_str(&text).with_context(|| format!("{} printed no JSON", exec::shown(bench)))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn options_that_are_not_ours_go_to_the_bench_in_their_order() {
        let line = "xtask nodes --output json --only plan,static --followers 20 --full";
        let args = Cli::parse_from(line.split(' ')).args;
        assert_eq!(args.filter.as_deref(), Some("nodes"));
        assert_eq!(args.output, Output::Json);
        let wanted = ["--only", "plan,static", "--followers", "20", "--full"];
        assert_eq!(args.arguments, wanted);
    }
}
