//! `neighsteer doctor`: whether the agent would find what it needs here.

mod bridges;
mod nodes;
mod report;
mod system;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::report::Report;
use super::{
    agent::HookArg,
    connection::{BpffsArgs, ConnectionArgs, StateArgs},
    gates::GateArgs,
    live,
    matching::MatchArgs,
    nodes::NodeArgs,
    output::{Finding, Output},
};
use crate::{
    agent::{
        Connection, HostConfig, NodeMode, chain,
        control::{Command, ControlError, request},
        model::Model,
        observed_interfaces,
    },
    openflow::unixctl::UnixCtl,
    plan::Gates,
};

/// Check that the agent would find what it needs: kernel, databases, bridges, and what its mode asks
/// for
///
/// Reads and changes nothing. Each line says ok, warning or error, and what to do.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Takes the flags that the agent is told. Exit code 1 where there is an error.

Examples:
  neighsteer doctor
  neighsteer doctor --mode dpu
  neighsteer doctor --nodes kubernetes --kubeconfig /etc/neighsteer/kubeconfig
  neighsteer doctor --output json | jq '.[] | select(.verdict != \"ok\")'")]
pub struct DoctorArgs {
    /// As the agent is told
    #[command(flatten)]
    pub gates: GateArgs,
    /// By what frames are steered
    #[command(flatten)]
    pub matching: MatchArgs,
    /// Where the datapath attaches to the uplink
    #[arg(long, value_enum, value_name = "HOOK", default_value_t = HookArg::Tc, help_heading = "Datapath")]
    pub datapath: HookArg,
    /// What is known of nodes
    #[command(flatten)]
    pub nodes: NodeArgs,
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where the running agent is asked
    #[command(flatten)]
    pub state: StateArgs,
    /// Where the pins are
    #[command(flatten)]
    pub bpffs: BpffsArgs,
}

/// Checks everything, whatever the one before came to; [`Finding::Found`] where there is an error.
///
/// # Errors
/// Where the arguments cannot be read, or the output cannot be written.
pub async fn run(args: &DoctorArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let mut report = Report::default();
    let gates = args.gates.read();
    mode(&mut report, &connection.host, gates);
    system::check(&mut report, &args.bpffs.bpffs, args.datapath);
    if connection.host.mode == NodeMode::DpuHost {
        interfaces(&mut report, &connection.host);
    } else {
        let steering = gates.is_ok_and(Gates::steering);
        let model = node(&mut report, args, &connection, steering).await;
        nodes::check(&mut report, &args.nodes.config(), model.as_ref()).await;
    }
    agent(&mut report, args, connection.host.mode).await;
    let found = report.has_errors();
    report.print(output)?;
    Ok(if found {
        Finding::Found
    } else {
        Finding::Clean
    })
}

/// What the mode does not do, and gates that do not go with it.
fn mode(report: &mut Report, host: &HostConfig, gates: Result<Gates, crate::plan::GateError>) {
    let mode = host.mode;
    match gates {
        Err(error) => report.error("gates", error, "turn on both or neither"),
        Ok(gates) => match mode.check(gates) {
            Err(error) => report.error("gates", error, "turn it off here"),
            Ok(()) if gates.steering() => report.ok("gates", "on: the agent steers and mirrors"),
            Ok(()) => report.ok("gates", "off: the agent observes"),
        },
    }
    match mode {
        NodeMode::Full => report.ok("mode", "full: the host is behind the bridge's own port"),
        NodeMode::Dpu => report.warn(
            "mode",
            "dpu: IPv4 and ARP only. OVN-Kubernetes' gateway on a DPU has no IPv6 address, so that \
             neither flows for NDP nor bindings of IPv6 addresses are rendered",
            "nothing, unless followers are to reach IPv6 neighbours",
        ),
        NodeMode::DpuHost => report.ok(
            "mode",
            "dpu-host: attaches and counts; opens no database and installs no flow",
        ),
    }
}

fn interfaces(report: &mut Report, host: &HostConfig) {
    let names = match observed_interfaces(host) {
        Ok(names) => names,
        Err(error) => {
            report.error("interface", chain(&error), "name it by --host-interface");
            return;
        }
    };
    for name in names {
        match nix::net::if_::if_nametoindex(&*name) {
            Ok(index) => report.ok("interface", format!("{name}, index {index}")),
            Err(_) => report.warn(
                "interface",
                format!("{name} is not there (yet)"),
                "the agent attaches when it comes; else name another one by --host-interface",
            ),
        }
    }
}

/// Databases, the switch, and what they say.
async fn node(
    report: &mut Report,
    args: &DoctorArgs,
    connection: &Connection,
    steering: bool,
) -> Option<Model> {
    let run_directory = &connection.ovs_run_directory;
    let control = match UnixCtl::of_vswitchd(run_directory) {
        // To take a connection is not to answer.
        Ok(control) => {
            control
                .with_timeout(live::PATIENCE)
                .call("version", &[])
                .await
        }
        Err(error) => Err(error),
    };
    match control {
        Ok(version) => report.ok("ovs-vswitchd", format!("answers: {}", version.trim())),
        Err(error) => report.error(
            "ovs-vswitchd",
            chain(&error),
            "start Open vSwitch, or name its run directory by --ovs-rundir",
        ),
    }
    let model = databases(report, connection).await?;
    bridges::check(report, &model, connection, steering).await;
    bridges::marks(report, &model, args.matching.mark(), args.datapath);
    Some(model)
}

/// Each database by itself, so that the one at fault is named.
async fn databases(report: &mut Report, connection: &Connection) -> Option<Model> {
    let said = |error: anyhow::Error| chain(error.as_ref());
    match live::switch_model(connection).await {
        Ok(_) => report.ok("Open_vSwitch", "answers"),
        Err(error) => {
            let advice = "start ovsdb-server, or name it by --ovs-db";
            report.error("Open_vSwitch", said(error), advice);
            return None;
        }
    }
    match live::northbound_model(connection).await {
        Ok(_) => report.ok("OVN_Northbound", "answers"),
        Err(error) => {
            let advice = "name this zone's northbound database by --ovn-nb";
            report.error("OVN_Northbound", said(error), advice);
            return None;
        }
    }
    match live::model(connection).await {
        Ok(model) => {
            report.ok("OVN_Southbound", "answers");
            Some(model)
        }
        Err(error) => {
            let advice = "name this zone's southbound database by --ovn-sb";
            report.error("OVN_Southbound", said(error), advice);
            None
        }
    }
}

/// Whether an agent runs, and in the mode that was asked about.
async fn agent(report: &mut Report, args: &DoctorArgs, mode: NodeMode) {
    let directory: &Path = &args.state.state_dir;
    match request(directory, Command::Status).await {
        Ok(status) => {
            let said = status.get("mode").and_then(serde_json::Value::as_str);
            match said {
                Some(said) if said != mode.word() => report.warn(
                    "agent",
                    format!("it runs in mode {said}"),
                    format!("ask with --mode {said}"),
                ),
                _ => report.ok("agent", "it runs; `neighsteer status` says how it stands"),
            }
        }
        Err(error @ ControlError::Connect { .. }) => {
            report.warn("agent", chain(&error), "start `neighsteer agent`");
        }
        Err(error @ ControlError::Denied { .. }) => {
            report.warn("agent", chain(&error), "ask as another user");
        }
        Err(error) => report.error(
            "agent",
            chain(&error),
            "something listens there and does not answer as an agent does: look at its log, and start it \
             again",
        ),
    }
}
