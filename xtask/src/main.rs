//! Every developer command of neighsteer: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod build_ebpf;
mod compiler;
mod exec;
mod json;
mod lint;
mod progress;
mod setup;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{progress::Progress, workspace::Workspace};

/// Sets up, builds, runs, tests and measures neighsteer.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what is missing, or name it where nothing may be installed
    Setup(setup::Args),
    /// Build the eBPF objects into target/bpf
    BuildEbpf(build_ebpf::Args),
    /// Run every test, tier by tier, and sum up
    Test(test::Args),
    /// Check formatting, lints, docs, module rules, licences and forbidden phrases
    Lint(lint::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::discover()?;
    let progress = Progress::new();
    match verb {
        Verb::Setup(args) => setup::run(&workspace, &progress, &args),
        Verb::BuildEbpf(args) => build_ebpf::run(&workspace, &progress, &args),
        Verb::Test(args) => test::run(&workspace, &progress, &args),
        Verb::Lint(args) => lint::run(&workspace, &progress, &args),
    }
}
