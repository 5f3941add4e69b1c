//! `neighsteer flows`: which flows a bridge should have, and whether it has them.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use super::matching::MatchArgs;
use crate::{
    openflow::{Flow, FlowChanges, InstalledFlow, Switch, SwitchError},
    plan::{BridgePlan, COOKIE, Gates, Install, NoMark, diff, mark_for, plan},
    topology::{BridgeGroup, Topology},
};

/// The flags of `neighsteer flows`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer flows --bridge br-ex
      in the syntax of ovs-ofctl(8)
  neighsteer flows --diff
      exit code 1 where a bridge has other ones")]
pub struct FlowsArgs {
    /// Only this bridge [default: every bridge that gateway routers share]
    #[arg(long, value_name = "NAME")]
    pub bridge: Option<String>,
    /// Which flows: overlay, over those of ovnkube-node; or complete, where nobody else manages the
    /// bridge
    #[arg(long, value_name = "SET", default_value_t)]
    pub flows: Install,
    /// By what frames are steered
    #[command(flatten)]
    pub matching: MatchArgs,
    /// Compare with what is installed: + is missing, - is to go, ! is another owner's in its place
    /// (exit code 1 where they differ)
    #[arg(long)]
    pub diff: bool,
}

/// Why the flows cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum FlowsError {
    /// No gateway routers share the bridge that was named.
    #[error("no gateway routers of this node share bridge {bridge}{}", reasons(.skipped))]
    NoGroup {
        /// The bridge.
        bridge: String,
        /// What was left out of the topology, and why.
        skipped: Vec<String>,
    },
    /// The bridge is not for steering by mark.
    #[error("bridge {bridge} cannot be steered by mark: {reason}")]
    NoMark {
        /// The bridge.
        bridge: String,
        /// Why not.
        reason: NoMark,
    },
    /// The bridge could not be asked.
    #[error("cannot compare with what is installed")]
    Switch(#[from] SwitchError),
    /// The output could not be written.
    #[error("cannot write the flows")]
    Output(#[from] io::Error),
}

fn reasons(skipped: &[String]) -> String {
    skipped
        .iter()
        .map(|reason| format!("; left out: {reason}"))
        .collect()
}

/// One bridge, as `--output json` prints it.
#[derive(serde::Serialize)]
struct BridgeFlows<'a> {
    bridge: &'a str,
    flows: &'a [Flow],
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes<'a>>,
}

/// What a bridge has, and how that differs from what it should have.
struct Compared {
    installed: Vec<InstalledFlow>,
    changes: FlowChanges,
}

/// What `--diff` found.
#[derive(serde::Serialize)]
struct Changes<'a> {
    add: &'a [Flow],
    delete: &'a [Flow],
    foreign: &'a [Flow],
}

/// Prints the flows in the syntax of ovs-ofctl(8), or as one JSON document. Returns whether the
/// installed flows are other ones; without `--diff` that is not looked at.
///
/// # Errors
/// Where the named bridge has no group, or the bridge does not answer.
pub async fn run(
    args: &FlowsArgs,
    topology: &Topology,
    gates: Gates,
    switch: &impl Switch,
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<bool, FlowsError> {
    let plans = plans(args, topology, gates)?;
    let mut compared = Vec::with_capacity(plans.len());
    for plan in &plans {
        compared.push(if args.diff {
            let installed = switch.dump_flows(&plan.bridge, None).await?;
            let changes = diff(&plan.flows, &installed);
            Some(Compared { installed, changes })
        } else {
            None
        });
    }
    let bridges = || plans.iter().zip(&compared);
    if json {
        let document: Vec<BridgeFlows<'_>> = bridges().map(bridge_flows).collect();
        serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        for (plan, compared) in bridges() {
            print(plan, compared.as_ref(), out)?;
        }
    }
    let differs = |it: &Compared| !it.changes.is_empty() || !it.changes.foreign.is_empty();
    Ok(compared.iter().flatten().any(differs))
}

fn plans(
    args: &FlowsArgs,
    topology: &Topology,
    gates: Gates,
) -> Result<Vec<BridgePlan>, FlowsError> {
    let plan = |group: &BridgeGroup| {
        let plan = plan(group, gates, args.flows);
        match mark_for(group, topology.hardware_offload, args.matching.mark()) {
            Ok(None) => Ok(plan),
            Ok(Some(mark)) => Ok(plan.by_mark(group, mark)),
            Err(reason) => Err(FlowsError::NoMark {
                bridge: group.bridge.to_string(),
                reason,
            }),
        }
    };
    let Some(bridge) = &args.bridge else {
        return topology.groups.iter().map(plan).collect();
    };
    match topology.group(bridge) {
        Some(group) => Ok(vec![plan(group)?]),
        None => Err(FlowsError::NoGroup {
            bridge: bridge.clone(),
            skipped: topology.skipped.iter().map(ToString::to_string).collect(),
        }),
    }
}

fn bridge_flows<'a>((plan, compared): (&'a BridgePlan, &'a Option<Compared>)) -> BridgeFlows<'a> {
    BridgeFlows {
        bridge: &plan.bridge,
        flows: &plan.flows,
        changes: compared.as_ref().map(|compared| Changes {
            add: &compared.changes.add,
            delete: &compared.changes.delete,
            foreign: &compared.changes.foreign,
        }),
    }
}

/// The flows of one bridge, or how they differ. Comments begin with `#`, so that the output without
/// `--diff` is a file for `ovs-ofctl add-flows`.
fn print(
    plan: &BridgePlan,
    compared: Option<&Compared>,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let bridge = &plan.bridge;
    let Some(Compared { installed, changes }) = compared else {
        writeln!(out, "# bridge {bridge}, {} flows", plan.flows.len())?;
        return plan
            .flows
            .iter()
            .try_for_each(|flow| writeln!(out, "{flow}"));
    };
    writeln!(out, "--- {bridge}, installed")?;
    writeln!(out, "+++ {bridge}, desired")?;
    for flow in &changes.delete {
        writeln!(out, "-{flow}")?;
    }
    for flow in &plan.flows {
        let key = flow.key();
        let there = installed.iter().find(|it| it.flow.key() == key);
        match there.map(|it| &it.flow) {
            None => writeln!(out, "+{flow}")?,
            Some(there) if changes.foreign.contains(there) => writeln!(out, "!{there}")?,
            // Somebody else's, where it does not matter whose it is.
            Some(there) if there.cookie != COOKIE => writeln!(out, " {there}")?,
            Some(there) if there == flow => writeln!(out, " {flow}")?,
            Some(there) => writeln!(out, "-{there}\n+{flow}")?,
        }
    }
    Ok(())
}
