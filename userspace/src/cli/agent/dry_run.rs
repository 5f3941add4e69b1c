//! `neighsteer agent --dry-run`: what the agent would write.

mod nodes;

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use serde::Serialize;

use self::nodes::PlannedNodes;
use crate::{
    agent::{self, AgentConfig, NodeMode, state::StateFile},
    cli::{
        live,
        output::{Finding, Format, Output},
    },
    mirror::{GroupMembers, RowWrite, recompute},
    openflow::{NativeSwitch, Switch as _},
    plan::{self, BridgePlan},
    topology::{SkipReason, Skipped},
};

/// What the agent would write.
#[derive(Debug, Serialize)]
struct DryRun {
    paused: bool,
    attach: Vec<String>,
    bridges: Vec<DryRunBridge>,
    bindings: Vec<DryRunBinding>,
    /// What is done about node IPs; `None` = nothing is known of nodes.
    nodes: Option<PlannedNodes>,
    /// Bridges, routers and ports that take no part.
    left_out: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
struct DryRunBridge {
    bridge: Arc<str>,
    standing_down: bool,
    add_flows: Vec<String>,
    delete_flows: Vec<String>,
    foreign_flows: Vec<String>,
    no_flood: Vec<NoFlood>,
    static_fdb: Option<String>,
}

#[derive(Debug, Serialize)]
struct NoFlood {
    ofport: u16,
    no_flood: bool,
}

#[derive(Debug, Serialize)]
struct DryRunBinding {
    bridge: Arc<str>,
    logical_port: Arc<str>,
    ip: IpAddr,
    change: &'static str,
}

/// Prints what the agent would write, and writes nothing.
///
/// # Errors
/// Where a database or the switch does not answer.
pub(super) async fn dry_run(
    config: &AgentConfig,
    output: &mut Output<'_>,
) -> anyhow::Result<Finding> {
    if config.connection.host.mode == NodeMode::DpuHost {
        return on_host(config, output);
    }
    let state = StateFile::open(&config.state_directory)?;
    let mut model = live::model(&config.connection).await?;
    model.remember(state.sources());
    model.rebuild();
    model.check_bridges()?;
    let paused = state.paused();
    let switch = NativeSwitch::new(&config.connection.ovs_run_directory);
    agent::managed::refuse_managed(&model, config, &switch).await?;
    agent::marking::refuse_unmarkable(&model, config)?;
    let desired = match paused {
        true => model.unsteered(),
        false => model.desired(config.gates, config.install, config.steering_mark),
    };
    let mut report = DryRun {
        left_out: model.topology().skipped.clone(),
        paused,
        attach: Vec::new(),
        bridges: Vec::new(),
        bindings: Vec::new(),
        nodes: None,
    };
    let mut left_to_others = BTreeSet::new();
    for (bridge, desired) in &desired.bridges {
        let mut wanted = desired.plan.clone();
        let cookie = wanted.flows.is_empty().then_some(plan::COOKIE);
        let installed = switch.dump_flows(bridge, cookie).await?;
        let mut flows = plan::diff(&wanted.flows, &installed);
        let standing_down = !flows.foreign.is_empty();
        if standing_down {
            left_to_others.insert(Arc::clone(bridge));
            wanted = BridgePlan::empty(bridge);
            flows.add.clear();
            flows.delete = plan::diff(&[], &installed).delete;
        }
        let ports = plan::port_changes(&wanted, &switch.ports(bridge).await?);
        let fdb = &wanted.static_fdb;
        report.bridges.push(DryRunBridge {
            bridge: Arc::clone(bridge),
            standing_down,
            add_flows: flows.add.iter().map(ToString::to_string).collect(),
            delete_flows: flows.delete.iter().map(ToString::to_string).collect(),
            foreign_flows: flows.foreign.iter().map(ToString::to_string).collect(),
            no_flood: ports
                .no_flood
                .iter()
                .map(|(ofport, no_flood)| NoFlood {
                    ofport: ofport.get(),
                    no_flood: *no_flood,
                })
                .collect(),
            static_fdb: fdb
                .as_ref()
                .map(|fdb| format!("fdb/add {bridge} {} {} {}", fdb.port, fdb.vlan, fdb.mac)),
        });
    }
    let steering = config.gates.steering() && !paused;
    report.nodes = nodes::plan(config, &model, &state, steering, &left_to_others).await?;
    for group in &model.topology().groups {
        if config.hook.is_some() {
            let interfaces = std::iter::once(&group.uplink.name).chain(group.host.representor());
            report.attach.extend(interfaces.map(ToString::to_string));
        }
        if steering && !left_to_others.contains(&group.bridge) {
            report
                .bindings
                .extend(planned_bindings(config, &model, group, report.nodes.as_ref()).await?);
        }
    }
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    Ok(Finding::Clean)
}

/// Nothing but attachments, and no database to look at.
fn on_host(config: &AgentConfig, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let interfaces = match config.hook {
        Some(_) => agent::observed_interfaces(&config.connection.host)?,
        None => Vec::new(),
    };
    let report = DryRun {
        left_out: Vec::new(),
        paused: false,
        attach: interfaces.iter().map(ToString::to_string).collect(),
        bridges: Vec::new(),
        bindings: Vec::new(),
        nodes: None,
    };
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => print(&report, output)?,
    }
    Ok(Finding::Clean)
}

async fn planned_bindings(
    config: &AgentConfig,
    model: &agent::model::Model,
    group: &crate::topology::BridgeGroup,
    nodes: Option<&PlannedNodes>,
) -> anyhow::Result<Vec<DryRunBinding>> {
    let mut addresses = config.node_addresses.clone();
    addresses.extend(
        nodes
            .into_iter()
            .flat_map(|nodes| nodes.node_ips(&group.bridge)),
    );
    let pins = nodes
        .map(|nodes| nodes.pins(&group.bridge))
        .unwrap_or_default();
    let members = GroupMembers::of(group, Arc::new(addresses)).with_pinned(pins);
    let rows = live::binding_rows(&config.connection, model, &members).await?;
    let now = agent::clock::Clock::start().now();
    let operations = recompute(&rows, &members, &config.mirror, now);
    let bindings = operations.into_iter().map(|operation| DryRunBinding {
        bridge: Arc::clone(&group.bridge),
        logical_port: operation.port,
        ip: operation.ip,
        change: match operation.write {
            RowWrite::Insert { .. } => "insert",
            RowWrite::Update { mac: Some(_), .. } => "correct",
            RowWrite::Update { mac: None, .. } => "refresh",
        },
    });
    Ok(bindings.collect())
}

fn print(report: &DryRun, output: &mut Output<'_>) -> anyhow::Result<()> {
    if report.paused {
        output.line("paused by hand: `neighsteer resume` ends that")?;
    }
    for interface in &report.attach {
        output.line(format_args!("attach the datapath to {interface}"))?;
    }
    for bridge in &report.bridges {
        let name = &bridge.bridge;
        if bridge.standing_down {
            output.line(format_args!("{name}: stand down, others steer here"))?;
        }
        let flows = [
            ("delete", &bridge.delete_flows),
            ("add", &bridge.add_flows),
            ("leave to its owner", &bridge.foreign_flows),
        ];
        for (verb, flows) in flows {
            for flow in flows {
                output.line(format_args!("{name}: {verb} flow {flow}"))?;
            }
        }
        for port in &bridge.no_flood {
            let verb = if port.no_flood { "set" } else { "clear" };
            output.line(format_args!(
                "{name}: {verb} no-flood on port {}",
                port.ofport
            ))?;
        }
        if let Some(fdb) = &bridge.static_fdb {
            output.line(format_args!("{name}: {fdb}, unless it is there"))?;
        }
    }
    for binding in &report.bindings {
        output.line(format_args!(
            "{}: {} {} of {}",
            binding.bridge, binding.change, binding.ip, binding.logical_port
        ))?;
    }
    for Skipped { object, reason } in &report.left_out {
        if !matches!(reason, SkipReason::OtherChassis(_)) {
            output.line(format_args!("{object} takes no part: {reason}"))?;
        }
    }
    for line in report.nodes.iter().flat_map(PlannedNodes::lines) {
        output.line(line)?;
    }
    Ok(())
}
