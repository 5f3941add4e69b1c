//! A lab by hand: `neighsteer-lab up|down|status|shell|demo`.

use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};
use neighsteer_tests::demo::{self, Progress};
use neighsteer_tests::lab::{
    self, FlowSet, Lab, LabError, OvnVersion, VERSION_VARIABLE, end_labs_on_signals, labs,
    remove_labs,
};
use neighsteer_tests::report::Output;

/// A node with real OVN and N UDNs in network namespaces of this machine.
#[derive(Debug, Parser)]
#[command(name = "neighsteer-lab", bin_name = "cargo xtask lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Bring a lab up that stays until `down`
    Up(Up),
    /// End a lab and remove what labs left whose owner was killed
    Down(Which),
    /// List the labs on this machine
    Status,
    /// Show what steering changes, in a lab that comes and goes with it
    #[command(override_usage = "cargo xtask demo [OPTIONS]")]
    Demo(Demo),
    /// Open a shell in a lab's node, with OVS's and OVN's tools directed to it
    Shell(Shell),
}

#[derive(Debug, Args)]
struct Up {
    /// Primary UDNs besides the default network
    #[arg(long, default_value_t = 5)]
    udns: u16,
    /// Networks that get a pod; 0 is the default network
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    pods: Vec<u16>,
    /// mac_binding_age_threshold in seconds
    #[arg(long, default_value_t = 300)]
    age_threshold: u32,
    /// Leave the fan-out flows out
    #[arg(long)]
    base_flows: bool,
    #[command(flatten)]
    versions: Versions,
}

#[derive(Debug, Args)]
struct Demo {
    /// Primary UDNs besides the default network
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    udns: u16,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    versions: Versions,
}

#[derive(Debug, Args)]
struct Versions {
    /// OVN 23.03 with Open vSwitch 3.1 (the machine's packages), or 25.03 with 3.5 (a Debian 13 tree
    /// that `cargo xtask setup` makes)
    #[arg(long, value_name = "RELEASE", env = VERSION_VARIABLE, default_value_t)]
    ovn: OvnVersion,
}

#[derive(Debug, Args)]
struct Which {
    /// The lab's ID; may be left out when there is one
    id: Option<String>,
    /// All labs that no process owns
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

#[derive(Debug, Args)]
struct Shell {
    /// The lab's ID; may be left out when there is one
    #[arg(long)]
    id: Option<String>,
    /// A command to run instead of a shell
    #[arg(last = true)]
    command: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = end_labs_on_signals() {
        eprintln!("neighsteer-lab: cannot handle signals: {error}");
        return ExitCode::FAILURE;
    }
    let result = match arguments.command {
        Verb::Up(up) => bring_up(&up),
        Verb::Down(which) => take_down(&which),
        Verb::Status => {
            status();
            Ok(ExitCode::SUCCESS)
        }
        Verb::Shell(shell) => open_shell(&shell),
        Verb::Demo(demo) => show(&demo),
    };
    result.unwrap_or_else(|error| {
        eprintln!("neighsteer-lab: {error}");
        ExitCode::FAILURE
    })
}

fn bring_up(up: &Up) -> Result<ExitCode, LabError> {
    let lab = Lab::builder()
        .udns(up.udns)
        .pods(up.pods.iter().copied())
        .age_threshold(up.age_threshold)
        .version(up.versions.ovn)
        .flows(if up.base_flows {
            FlowSet::Base
        } else {
            FlowSet::Legacy
        })
        .start()?;
    println!("{}", lab.directory().display());
    let state = lab.detach()?;
    eprintln!(
        "lab {} is up with OVN {} and {} UDNs; `cargo xtask lab shell --id {}` opens a shell in its node",
        state.id, state.ovn, state.udns, state.id
    );
    Ok(ExitCode::SUCCESS)
}

fn show(demo: &Demo) -> Result<ExitCode, LabError> {
    let report = demo::run(demo.udns, demo.versions.ovn, &mut Progress::new())?;
    match demo.output {
        Output::Text => print!("{report}"),
        Output::Json => {
            let text = serde_json::to_string_pretty(&report);
            println!("{}", text.unwrap_or_else(|error| error.to_string()));
        }
    }
    let broken = report.broken_promises();
    for promise in &broken {
        eprintln!("neighsteer-lab: not as promised: {promise}");
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn take_down(which: &Which) -> Result<ExitCode, LabError> {
    let mut removed = lab::sweep()?;
    if which.all {
        removed.extend(remove_labs(|state| state.owner.is_none())?);
    } else {
        // What was swept may be all that was meant.
        let done = match &which.id {
            Some(id) => removed.contains(id),
            None => !removed.is_empty(),
        };
        if !done {
            let id = choose(which.id.as_deref())?;
            removed.extend(remove_labs(|state| state.id == id)?);
        }
    }
    for id in removed {
        eprintln!("lab {id} is gone");
    }
    Ok(ExitCode::SUCCESS)
}

/// The lab with this ID, or the only one that no process owns.
fn choose(id: Option<&str>) -> Result<String, LabError> {
    let candidates: Vec<String> = labs()
        .into_iter()
        .filter(|(_, _, owned)| !owned)
        .map(|(state, ..)| state.id)
        .collect();
    match (id, candidates.as_slice()) {
        (Some(id), _) if candidates.iter().any(|candidate| candidate == id) => Ok(id.to_owned()),
        (Some(id), _) => Err(LabError::Choice(format!(
            "no lab {id} that could be taken; `cargo xtask lab status` lists them"
        ))),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(LabError::Choice("no lab is up".to_owned())),
        (None, several) => Err(LabError::Choice(format!(
            "which lab? {} are up",
            several.join(", ")
        ))),
    }
}

fn status() {
    let labs = labs();
    if labs.is_empty() {
        eprintln!("no lab is on this machine; `cargo xtask lab up` brings one up");
    }
    for (state, directory, owned) in labs {
        let owner = match (state.owner, owned) {
            (None, _) => "up".to_owned(),
            (Some((pid, _)), true) => format!("owned by process {pid}"),
            (Some(_), false) => "left behind".to_owned(),
        };
        println!(
            "{}  {}  OVN {}, {} UDNs, pods in {:?}, {owner}",
            state.id,
            directory.display(),
            state.ovn,
            state.udns,
            state.pods,
        );
    }
}

fn open_shell(shell: &Shell) -> Result<ExitCode, LabError> {
    let id = choose(shell.id.as_deref())?;
    let lab = Lab::attach(&id)?;
    let default = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (program, arguments) = match shell.command.split_first() {
        Some((program, arguments)) => (program.clone(), arguments),
        None => (default, &[][..]),
    };
    let environment = lab.shell_environment();
    lab.link_control_sockets()?;
    let node = lab.node_netns().clone();
    // The lab stays when the shell ends, however it ends.
    lab.detach()?;
    let mut command: Command = node.command(&program);
    let status = command
        .args(arguments)
        .envs(environment)
        // Of the build that brought us here.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("NEIGHSTEER_SETUP")
        .status()
        .map_err(|source| LabError::Spawn { program, source })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
