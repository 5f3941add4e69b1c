//! `neighsteer cleanup`: takes everything of ours off the node.

mod static_rows;

use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;

use super::{
    connection::{BpffsArgs, ConnectionArgs, StateArgs},
    live,
    output::{Finding, Format, Output},
};
use crate::{
    agent::{
        NodeMode,
        converge::{Bridge, Changes},
        lock::NodeLock,
        state::{BridgeState, StateFile},
        steering::DesiredBridge,
    },
    datapath,
    openflow::{Flow, NativeSwitch, Switch as _, SwitchError, unixctl::UnixCtl},
    plan::COOKIE,
    topology::Prefix,
};

/// The flags of `neighsteer cleanup`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What goes: flows with our cookie, pins and attached programs; no-flood flags and static FDB entries
only where the state file says that we set them; northbound Static_MAC_Binding rows of this node's
gateway routers, but for the gateway's own masquerade addresses. Southbound rows are left to age.

Stop the agent first: it would put everything back.

Examples:
  neighsteer cleanup
  neighsteer cleanup --keep-rows
  neighsteer cleanup --output json")]
pub struct CleanupArgs {
    /// Leave the static bindings of node IPs: they never age. Before OVN 25.03 one that is left for a
    /// deleted router port stops northd
    #[arg(long)]
    pub keep_rows: bool,
    /// A masquerade subnet of the gateway, of now or of former times, whose static rows are not ours;
    /// any number of times, besides the defaults of OVN-Kubernetes
    #[arg(long, value_name = "CIDR")]
    pub masquerade_subnet: Vec<Prefix>,
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where the state is
    #[command(flatten)]
    pub state: StateArgs,
    /// Where the pins are
    #[command(flatten)]
    pub bpffs: BpffsArgs,
}

/// What was taken off, and what was not.
#[derive(Debug, Default, Serialize)]
struct Report {
    bridges: Vec<BridgeReport>,
    detached: Vec<String>,
    static_bindings_deleted: usize,
    /// Left by `--keep-rows`.
    static_bindings_kept: usize,
    /// Why static bindings were not looked for.
    static_bindings_unknown: Option<String>,
    errors: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BridgeReport {
    bridge: Arc<str>,
    flows_deleted: usize,
    no_flood_flags_restored: usize,
    static_fdb_entries_deleted: usize,
}

/// Cleans up: each part whatever becomes of the others.
///
/// # Errors
/// Where an agent runs, or something could not be taken off; what could be is off by then.
pub async fn run(args: &CleanupArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    // The host of a DPU has nothing but what is attached.
    let has_switch = args.connection.host.mode != NodeMode::DpuHost;
    let _lock = match has_switch {
        true => NodeLock::acquire(&args.state.state_dir, &args.connection.ovs_rundir)?,
        false => NodeLock::without_switch(&args.state.state_dir)?,
    };
    let mut report = Report::default();
    if has_switch && let Err(error) = clean_bridges(args, &mut report).await {
        report.errors.push(crate::agent::chain(error.as_ref()));
    }
    detach_all(args, &mut report);
    if has_switch {
        static_rows::clean(args, &mut report).await;
    }
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    let hint = match has_switch && !args.connection.ovs_rundir.exists() {
        true => "; on the host of a DPU, which has no Open vSwitch, run it with --mode dpu-host",
        false => "",
    };
    match report.errors.len() {
        0 => Ok(Finding::Clean),
        failed => Err(anyhow::anyhow!(
            "{failed} of the parts could not be cleaned: {}{hint}",
            report.errors.join("; ")
        )),
    }
}

async fn clean_bridges(args: &CleanupArgs, report: &mut Report) -> anyhow::Result<()> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    let state = StateFile::open(&args.state.state_dir)
        .context("no-flood flags and static FDB entries were left as they are");
    let model = live::switch_model(&connection)
        .await
        .context("no-flood flags and static FDB entries were left as they are");
    let (state, model) = match (state, model) {
        (Ok(state), Ok(model)) => (state, model),
        (state, model) => {
            let errors = state.err().into_iter().chain(model.err());
            report
                .errors
                .extend(errors.map(|error| crate::agent::chain(error.as_ref())));
            return clean_flows(&switch, report).await;
        }
    };
    let bridges = model.unsteered().bridges;
    for gone in state.state().bridges.keys() {
        // With the bridge all that was on it has gone: a later one of its name has nothing of ours.
        if !bridges.contains_key(gone.as_str()) {
            state.record(gone, BridgeState::default())?;
        }
    }
    for (bridge, DesiredBridge { plan, ports, .. }) in &bridges {
        // Without a daemon there is neither a flow nor a flag left.
        let unixctl = UnixCtl::of_vswitchd(&connection.ovs_run_directory)
            .context("flows, flags and static FDB entries were not looked at")?;
        let cleaned = Bridge {
            name: bridge,
            switch: &switch,
            ports,
            unixctl: &unixctl,
            state: &state,
            alone: false,
        }
        .converge(plan)
        .await;
        match cleaned {
            Ok(changes) => note(bridge, &changes, report),
            Err(error) => report.errors.push(crate::agent::chain(&error)),
        }
    }
    Ok(())
}

/// Deletes our flows on every bridge that has a management socket: steering without a mirror is the
/// one thing that must not stay, and the cookie alone says whose a flow is.
async fn clean_flows(switch: &NativeSwitch, report: &mut Report) -> anyhow::Result<()> {
    let directory = switch.rundir();
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(bridge) = name.to_str().and_then(|name| name.strip_suffix(".mgmt")) else {
            continue;
        };
        match delete_our_flows(switch, bridge).await {
            Ok(0) => {}
            Ok(flows_deleted) => note(
                &bridge.into(),
                &Changes {
                    flows_deleted,
                    ..Changes::default()
                },
                report,
            ),
            Err(error) => report.errors.push(crate::agent::chain(&error)),
        }
    }
    Ok(())
}

async fn delete_our_flows(switch: &NativeSwitch, bridge: &str) -> Result<usize, SwitchError> {
    let ours = switch.dump_flows(bridge, Some(COOKIE)).await?;
    let ours: Vec<Flow> = ours.into_iter().map(|installed| installed.flow).collect();
    switch.delete_flows(bridge, &ours).await?;
    Ok(ours.len())
}

fn note(bridge: &Arc<str>, changes: &Changes, report: &mut Report) {
    if !changes.is_empty() {
        report.bridges.push(BridgeReport {
            bridge: Arc::clone(bridge),
            flows_deleted: changes.flows_deleted,
            no_flood_flags_restored: changes.flags_changed,
            static_fdb_entries_deleted: changes.fdb_changed,
        });
    }
}

fn detach_all(args: &CleanupArgs, report: &mut Report) {
    let bpffs = &args.bpffs.bpffs;
    let interfaces = match datapath::pins::interfaces_of_every_version(bpffs) {
        Ok(interfaces) => interfaces,
        Err(error) => {
            let at = bpffs.display();
            report
                .errors
                .push(format!("cannot list the pins below {at}: {error}"));
            return;
        }
    };
    for interface in interfaces {
        match datapath::detach(&interface, bpffs) {
            Ok(_) => report.detached.push(interface),
            Err(error) => report.errors.push(crate::agent::chain(&error)),
        }
    }
}

fn print(report: &Report, output: &mut Output<'_>) -> anyhow::Result<()> {
    for bridge in &report.bridges {
        output.line(format_args!(
            "bridge {}: {} flows deleted, {} no-flood flags restored, {} static FDB entries deleted",
            bridge.bridge, bridge.flows_deleted, bridge.no_flood_flags_restored, bridge.static_fdb_entries_deleted
        ))?;
    }
    for interface in &report.detached {
        output.line(format_args!(
            "interface {interface}: detached, pins removed"
        ))?;
    }
    if report.static_bindings_deleted > 0 {
        output.line(format_args!(
            "{} static bindings deleted",
            report.static_bindings_deleted
        ))?;
    }
    if report.static_bindings_kept > 0 {
        output.line(format_args!(
            "{} static bindings kept, which nobody looks after from now on: where a router port goes that \
             has some, northd before OVN 25.03 stops until `neighsteer cleanup` has deleted them",
            report.static_bindings_kept
        ))?;
    }
    if let Some(reason) = &report.static_bindings_unknown {
        output.line(format_args!(
            "static bindings were not looked for: {reason}"
        ))?;
    }
    let nothing =
        report.bridges.is_empty() && report.detached.is_empty() && report.static_bindings_kept == 0;
    if nothing && report.static_bindings_deleted == 0 && report.errors.is_empty() {
        output.line(match report.static_bindings_unknown {
            Some(_) => "nothing else of ours was on this node",
            None => "nothing of ours was on this node",
        })?;
    }
    Ok(())
}
