//! `neighsteer cleanup`: takes everything of ours off the node.

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
        converge::{Bridge, Changes},
        lock::NodeLock,
        state::StateFile,
        steering::DesiredBridge,
    },
    datapath,
    openflow::{NativeSwitch, unixctl::UnixCtl},
};

/// The flags of `neighsteer cleanup`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What goes: flows with our cookie, pins and attached programs; no-flood flags and static FDB entries
only where the state file says that we set them. Southbound rows are left to age.

Stop the agent first: it would put everything back.

Examples:
  neighsteer cleanup
  neighsteer cleanup --output json")]
pub struct CleanupArgs {
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
    let _lock = NodeLock::acquire(&args.state.state_dir)?;
    let mut report = Report::default();
    if let Err(error) = clean_bridges(args, &mut report).await {
        report.errors.push(crate::agent::chain(error.as_ref()));
    }
    detach_all(args, &mut report);
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    match report.errors.len() {
        0 => Ok(Finding::Clean),
        failed => Err(anyhow::anyhow!(
            "{failed} of the parts could not be cleaned: {}",
            report.errors.join("; ")
        )),
    }
}

async fn clean_bridges(args: &CleanupArgs, report: &mut Report) -> anyhow::Result<()> {
    let mut state = StateFile::open(&args.state.state_dir)?;
    let connection = args.connection.parse(live::PATIENCE)?;
    let model = live::switch_model(&connection).await?;
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    for (bridge, DesiredBridge { plan, ports }) in &model.unsteered().bridges {
        // Without a daemon there is neither a flow nor a flag left.
        let unixctl = UnixCtl::of_vswitchd(&connection.ovs_run_directory)
            .context("flows, flags and static FDB entries were not looked at")?;
        let cleaned = Bridge {
            name: bridge,
            switch: &switch,
            ports,
            unixctl: &unixctl,
            state: &mut state,
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
    let attachments = match datapath::attachments(&args.bpffs.bpffs) {
        Ok(attachments) => attachments,
        Err(error) => {
            report.errors.push(crate::agent::chain(&error));
            return;
        }
    };
    for attachment in attachments {
        match datapath::detach(&attachment.interface, &args.bpffs.bpffs) {
            Ok(_) => report.detached.push(attachment.interface),
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
    if report.bridges.is_empty() && report.detached.is_empty() && report.errors.is_empty() {
        output.line("nothing of ours was on this node")?;
    }
    Ok(())
}
