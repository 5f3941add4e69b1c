//! `neighsteer doctor`: whether the agent would find what it needs here.

mod bridges;
mod nodes;
mod report;
mod running;
mod system;
#[cfg(test)]
mod tests;

use self::{bridges::Asked, report::Report};
use super::{
    agent::AgentSettings,
    live,
    output::{Finding, Output},
};
use crate::{
    agent::{
        AgentConfig, Connection, HostConfig, NodeMode, chain, model::Model, observed_interfaces,
        static_rows::orphans::orphaned_ports,
    },
    openflow::unixctl::UnixCtl,
    plan::{GateError, Gates},
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
    pub settings: AgentSettings,
}

/// Checks everything, whatever the one before came to; [`Finding::Found`] where there is an error.
///
/// # Errors
/// Where the arguments cannot be read, or the output cannot be written.
pub async fn run(args: &DoctorArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let settings = &args.settings;
    let connection = settings.connection.parse(live::PATIENCE)?;
    let mut report = Report::default();
    let gates = settings.gates.read();
    mode(&mut report, &connection.host, gates);
    let config = config(&mut report, settings, &connection.host, gates);
    system::check(&mut report, &settings.bpffs.bpffs, settings.datapath);
    let directory = &settings.state.state_dir;
    let agent = running::ask(directory).await;
    if connection.host.mode == NodeMode::DpuHost {
        interfaces(&mut report, &connection.host);
    } else {
        let asked = Asked {
            steering: running::steers(&agent, directory, gates.is_ok_and(Gates::steering)),
            is_running: agent.is_ok(),
            install: settings.flows,
        };
        let model = node(&mut report, config.as_ref(), &connection, asked).await;
        nodes::check(&mut report, &settings.nodes.config(), model.as_ref()).await;
    }
    running::check(&mut report, &agent, settings, gates);
    let found = report.has_errors();
    report.print(output)?;
    Ok(if found {
        Finding::Found
    } else {
        Finding::Clean
    })
}

/// What the flags say together, once the gates are not what is wrong.
fn config(
    report: &mut Report,
    settings: &AgentSettings,
    host: &HostConfig,
    gates: Result<Gates, GateError>,
) -> Option<AgentConfig> {
    host.mode.check(gates.ok()?).ok()?;
    match settings.config() {
        Ok(config) => Some(config),
        Err(error) => {
            let advice = "the agent refuses to start with these flags: change them";
            report.error("flags", format!("{error:#}"), advice);
            None
        }
    }
}

/// What the mode does not do, and gates that do not go with it.
fn mode(report: &mut Report, host: &HostConfig, gates: Result<Gates, GateError>) {
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
    config: Option<&AgentConfig>,
    connection: &Connection,
    asked: Asked,
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
        Err(error) => report.unreached(
            "ovs-vswitchd",
            chain(&error),
            "start Open vSwitch, or name its run directory by --ovs-rundir",
        ),
    }
    let model = databases(report, connection).await?;
    orphans(report, connection).await;
    bridges::check(report, &model, connection, asked).await;
    if let Some(config) = config {
        bridges::tc(report, &model, config);
    }
    Some(model)
}

/// Each database by itself, so that the one at fault is named.
async fn databases(report: &mut Report, connection: &Connection) -> Option<Model> {
    let said = |error: anyhow::Error| chain(error.as_ref());
    let unseen = |report: &mut Report, database, other| {
        let found = format!("not looked at, since {other} does not answer");
        report.warn(database, found, format!("mend {other} first"));
    };
    match live::switch_model(connection).await {
        Ok(_) => report.ok("Open_vSwitch", "answers"),
        Err(error) => {
            let advice = "start ovsdb-server, or name it by --ovs-db";
            report.unreached("Open_vSwitch", said(error), advice);
            unseen(report, "OVN_Northbound", "Open_vSwitch");
            unseen(report, "OVN_Southbound", "Open_vSwitch");
            return None;
        }
    }
    match live::northbound_model(connection).await {
        Ok(_) => report.ok("OVN_Northbound", "answers"),
        Err(error) => {
            let advice = "name this zone's northbound database by --ovn-nb";
            report.unreached("OVN_Northbound", said(error), advice);
            unseen(report, "OVN_Southbound", "OVN_Northbound");
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
            report.unreached("OVN_Southbound", said(error), advice);
            None
        }
    }
}

/// Static rows that stop an older northd.
async fn orphans(report: &mut Report, connection: &Connection) {
    match orphaned_ports(connection).await {
        Ok(ports) => {
            if let Some(first) = ports.first() {
                let found = format!(
                    "{} router ports that are gone still have some, such as {first}: northd before OVN \
                     25.03 does nothing more until they are deleted",
                    ports.len()
                );
                let advice = "start the agent with --nodes, or run `neighsteer cleanup`";
                report.error("static bindings", found, advice);
            }
        }
        Err(error) => report.warn(
            "static bindings",
            chain(&error),
            "look at the northbound database",
        ),
    }
}
