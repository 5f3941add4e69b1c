//! Every developer command of neighsteer: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod arm64;
mod bench;
mod build_ebpf;
mod compiler;
mod exec;
mod fuzz;
mod json;
mod lab;
mod lint;
mod progress;
mod setup;
mod test;
mod vm;
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
    /// Build the agent for nodes and DPUs of arm64
    Arm64(arm64::Args),
    /// Bring up, look into and take down a lab: up, down, status, shell
    Lab(lab::LabArgs),
    /// Show what steering and mirroring change, on real OVN
    Demo(lab::DemoArgs),
    /// Run every test, tier by tier, and sum up
    Test(test::Args),
    /// Run the tests of the kernel in virtual machines with other kernels
    Vm(vm::Args),
    /// Check formatting, lints, docs, module rules, licences and forbidden phrases
    Lint(lint::Args),
    /// Measure, and print one report
    Bench(bench::Args),
    /// Look for inputs at which a parser panics, with cargo-fuzz and a nightly compiler
    Fuzz(fuzz::Args),
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
        Verb::Arm64(args) => arm64::run(&workspace, &progress, &args),
        Verb::Lab(args) => lab::lab(&workspace, &progress, &args),
        Verb::Demo(args) => lab::demo(&workspace, &progress, &args),
        Verb::Test(args) => test::run(&workspace, &progress, &args),
        Verb::Vm(args) => vm::run(&workspace, &progress, &args),
        Verb::Lint(args) => lint::run(&workspace, &progress, &args),
        Verb::Bench(args) => bench::run(&workspace, &progress, &args),
        Verb::Fuzz(args) => fuzz::run(&workspace, &progress, &args),
    }
}
