//! The command line: arguments in, text or JSON out.

pub mod agent;
pub mod audit;
pub mod bindings;
pub mod capture;
pub mod classify;
pub mod cleanup;
mod columns;
pub mod connection;
pub mod datapath;
pub mod doctor;
pub mod flows;
pub mod gates;
pub mod host;
mod live;
pub mod matching;
pub mod nodes;
pub mod output;
pub mod pause;
pub mod policy;
pub mod status;
mod terminal;
pub mod topology;
pub mod trace;
pub mod validate;
mod watch;

use std::{io::Write as _, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use self::{
    output::{Finding, Format, Output},
    terminal::Terminal,
};
use crate::{
    mirror::{BindingRow, GroupMembers, Settings},
    plan::Gates,
};

/// How long threads that read files may go on after the agent has ended.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// Done, and something was found.
const FOUND: u8 = 1;
/// Not done.
const FAILED: u8 = 2;

/// Steers ARP and NDP to one OVN gateway router and mirrors its bindings to the others
#[derive(Debug, Parser)]
#[command(
    name = "neighsteer",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  neighsteer agent                                      observe: attach to the uplink and count
  neighsteer agent --enable-network-segmentation \\
                   --disable-udn-arp-ndp-flood          steer and mirror
  neighsteer agent --enable-network-segmentation \\
                   --disable-udn-arp-ndp-flood --dry-run  print what that would write
  neighsteer stats                                      what the datapath has counted
  neighsteer bindings                                   which followers lack which binding
  neighsteer audit                                      what is not as the design wants it
  neighsteer doctor                                     what the agent would lack here
  neighsteer cleanup                                    take everything of ours off the node

Exit codes: 0 done, 1 done and something was found, 2 not done (one line says why)."
)]
pub struct Cli {
    /// How to print
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        global = true
    )]
    pub output: Format,
    /// What to log on standard error: error, warn, info, debug, trace, or a filter such as
    /// neighsteer::mirror=trace [default: warn; the agent: info]
    #[arg(long, value_name = "FILTER", global = true, env = "NEIGHSTEER_LOG")]
    pub log: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon: observe, and with both gates on steer and mirror
    Agent(Box<agent::AgentArgs>),
    /// Show how the running agent stands
    Status(status::StatusArgs),
    /// Take our flows, flags and entries off and mirror nothing, until `resume`; counting goes on
    Pause(pause::PauseArgs),
    /// Steer and mirror again after `pause`
    Resume(pause::PauseArgs),
    /// Attach the datapath to an interface: count ARP and NDP; change nothing but what --tag and --validate drop ask for
    Attach(datapath::AttachArgs),
    /// Detach the datapath from an interface and remove its pins
    Detach(datapath::DetachArgs),
    /// Show what the datapath has counted
    Stats(datapath::StatsArgs),
    /// Classify the frames of a pcap, a pcapng or lines of hex
    Classify(classify::ClassifyArgs),
    /// Show the desired flows of a bridge, or how they differ from what is installed
    Flows(LiveFlowsArgs),
    /// Show the source's bindings and which followers lack them
    Bindings(LiveBindingsArgs),
    /// Show which gateway routers share which bridge, and what was left out
    Topology(topology::TopologyArgs),
    /// Check what is installed against the design, with the gate on
    Audit(audit::AuditArgs),
    /// Show what becomes of a frame: the classifier's decision beside the flows that it takes
    Trace(Box<trace::TraceArgs>),
    /// Check that the agent would find what it needs here
    Doctor(Box<doctor::DoctorArgs>),
    /// Take our flows, flags, entries, programs and pins off the node
    Cleanup(cleanup::CleanupArgs),
    /// Print the version
    Version,
}

/// `neighsteer flows` and where to look.
#[derive(Debug, clap::Args)]
pub struct LiveFlowsArgs {
    /// What to show
    #[command(flatten)]
    pub flows: flows::FlowsArgs,
    /// Where things are
    #[command(flatten)]
    pub connection: connection::ConnectionArgs,
}

/// `neighsteer bindings` and where to look.
#[derive(Debug, clap::Args)]
pub struct LiveBindingsArgs {
    /// What to show
    #[command(flatten)]
    pub bindings: bindings::BindingsArgs,
    /// Where things are
    #[command(flatten)]
    pub connection: connection::ConnectionArgs,
    /// Where the running agent is asked what it knows of nodes
    #[command(flatten)]
    pub state: connection::StateArgs,
}

/// Runs the command line and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let default = if matches!(cli.command, Command::Agent(_)) {
        "info"
    } else {
        "warn"
    };
    if let Err(error) = start_log(cli.log.as_deref().unwrap_or(default), cli.output) {
        return fail(&error);
    }
    let mut stdout = Terminal::new(std::io::stdout());
    let result = run(cli, &mut stdout).and_then(|finding| {
        stdout.flush()?;
        Ok(finding)
    });
    match result {
        Ok(Finding::Clean) => ExitCode::SUCCESS,
        Ok(Finding::Found) => ExitCode::from(FOUND),
        // Whoever read our output has seen enough.
        Err(_) if stdout.reader_left() => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    say(error.as_ref());
    ExitCode::from(FAILED)
}

/// One line on standard error.
fn say(error: &(dyn std::error::Error + 'static)) {
    let text = crate::agent::chain(error);
    // There is nowhere left to say that standard error is closed.
    let text = terminal::on_one_line(&text);
    let _ = writeln!(std::io::stderr(), "error: {text}");
}

fn start_log(filter: &str, format: Format) -> anyhow::Result<()> {
    use tracing_subscriber::{EnvFilter, fmt, prelude::*};
    let filter = EnvFilter::try_new(filter).with_context(|| format!("--log {filter}"))?;
    let ansi = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        Format::Json => registry
            .with(fmt::layer().json().with_writer(std::io::stderr))
            .init(),
        Format::Text => registry
            .with(fmt::layer().with_ansi(ansi).with_writer(std::io::stderr))
            .init(),
    }
    Ok(())
}

fn run(cli: Cli, stdout: &mut (dyn std::io::Write + Send)) -> anyhow::Result<Finding> {
    let format = cli.output;
    let mut output = Output {
        format,
        writer: stdout,
    };
    match cli.command {
        Command::Version => version(&mut output),
        Command::Attach(args) => {
            datapath::attach(&args, output.is_json(), output.writer).map(|()| Finding::Clean)
        }
        Command::Detach(args) => {
            datapath::detach(&args, output.is_json(), output.writer).map(|()| Finding::Clean)
        }
        Command::Stats(args) => {
            datapath::stats(&args, output.is_json(), output.writer).map(|()| Finding::Clean)
        }
        Command::Classify(args) => {
            match classify::run(&args, output.is_json(), args.open()?, output.writer) {
                Ok(_) => Ok(Finding::Clean),
                Err(error @ classify::ClassifyError::Unread { .. }) => {
                    say(&error);
                    Ok(Finding::Found)
                }
                Err(error) => Err(error.into()),
            }
        }
        Command::Agent(args) => {
            let runtime = runtime()?;
            let result = runtime.block_on(agent::run(&args, &mut output));
            // A file that blocks whoever reads it must not keep the agent from its end.
            runtime.shutdown_timeout(SHUTDOWN);
            result
        }
        Command::Status(args) => runtime()?.block_on(status::run(&args, &mut output)),
        Command::Pause(args) => runtime()?.block_on(pause::run(&args, true, &mut output)),
        Command::Resume(args) => runtime()?.block_on(pause::run(&args, false, &mut output)),
        Command::Topology(args) => runtime()?.block_on(topology::run(&args, &mut output)),
        Command::Audit(args) => runtime()?.block_on(audit::run(&args, &mut output)),
        Command::Trace(args) => runtime()?.block_on(trace::run(&args, &mut output)),
        Command::Bindings(args) if args.bindings.watch => {
            runtime()?.block_on(watch::run(&args, &mut output))
        }
        Command::Bindings(args) => runtime()?.block_on(show_bindings(&args, &mut output)),
        Command::Doctor(args) => {
            let runtime = runtime()?;
            let result = runtime.block_on(doctor::run(&args, &mut output));
            // Nor a credential plugin that hangs.
            runtime.shutdown_timeout(SHUTDOWN);
            result
        }
        Command::Cleanup(args) => runtime()?.block_on(cleanup::run(&args, &mut output)),
        Command::Flows(args) => runtime()?.block_on(async {
            let connection = args.connection.parse(live::PATIENCE)?;
            let model = live::model(&connection).await?;
            if args.flows.bridge.is_none() {
                audit::chosen(model.topology(), None)?;
            }
            let gates = Gates::new(true, true)?;
            let switch = crate::openflow::NativeSwitch::new(&connection.ovs_run_directory);
            let json = output.is_json();
            let differs = flows::run(
                &args.flows,
                model.topology(),
                gates,
                &switch,
                json,
                output.writer,
            )
            .await?;
            Ok(if differs {
                Finding::Found
            } else {
                Finding::Clean
            })
        }),
    }
}

async fn show_bindings(
    args: &LiveBindingsArgs,
    output: &mut Output<'_>,
) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let model = live::model(&connection).await?;
    audit::chosen(model.topology(), args.bindings.bridge.as_deref())?;
    let nodes = nodes::AgentsNodes::ask(&args.state).await;
    let addresses = args.bindings.node_address.iter().copied().collect();
    let all: Vec<(&str, GroupMembers)> = model
        .topology()
        .groups
        .iter()
        .map(|group| (&*group.bridge, nodes.members(group, &addresses)))
        .collect();
    let is_asked = |bridge: &str| args.bindings.bridge.as_ref().is_none_or(|it| it == bridge);
    // Sources of other bridges, too: what they know tells which rows were brought along from there.
    let sources = all.iter().flat_map(|(_, members)| &members.source);
    let followers = all
        .iter()
        .filter(|(bridge, _)| is_asked(bridge))
        .flat_map(|(_, members)| &members.followers);
    let rows = live::rows_of(&connection, &model, sources.chain(followers)).await?;
    let rows: Vec<&BindingRow> = rows.iter().collect();
    let now = crate::agent::clock::Clock::start().now();
    let reports: Vec<_> = all
        .iter()
        .filter(|(bridge, _)| is_asked(bridge))
        .map(|(bridge, members)| {
            let others: Vec<_> = all
                .iter()
                .filter(|(other, _)| other != bridge)
                .filter_map(|(other, members)| Some((*other, members.source.as_ref()?)))
                .collect();
            let is_default = model
                .topology()
                .group(bridge)
                .is_some_and(|group| group.source.network.is_none());
            let others =
                bindings::OtherSources::of(&others, &rows).for_the_default_router(is_default);
            bindings::report(bridge, members, &rows, &others, &Settings::default(), now)
        })
        .collect();
    let settled = bindings::print(&reports, &args.bindings, output.is_json(), output.writer)?;
    Ok(if settled {
        Finding::Clean
    } else {
        Finding::Found
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")
}

fn version(output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let version = env!("CARGO_PKG_VERSION");
    let abi = neighsteer_common::abi::VERSION;
    match output.format {
        Format::Text => output.line(format_args!("neighsteer {version} (map ABI {abi})"))?,
        Format::Json => output.json(&serde_json::json!({ "version": version, "map_abi": abi }))?,
    }
    Ok(Finding::Clean)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
