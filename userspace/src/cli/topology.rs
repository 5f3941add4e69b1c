//! `neighsteer topology`: which gateway routers share which bridge, and what was left out.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::Arc,
};

use serde::Serialize;

use super::{
    columns::columns,
    connection::{ConnectionArgs, StateArgs},
    live,
    output::{Finding, Output},
};
use crate::{
    agent::control::{Command, request},
    topology::{
        BridgeGroup, GatewayRouter, HostEndpoint, IngressPort, SkipReason, Skipped, Topology,
    },
};

/// Show which gateway routers share which bridge, and what was left out
///
/// Read from the databases, once; nothing is written. How node IPs are known is what a running agent
/// says.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  neighsteer topology
  neighsteer topology --output json | jq '.skipped[]'")]
pub struct TopologyArgs {
    /// Where things are
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where the running agent is asked how node IPs are known
    #[command(flatten)]
    pub state: StateArgs,
}

/// The groups, and what the running agent says.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    topology: &'a Topology,
    /// How followers know node IPs; `None` = no agent answers, or it knows nothing of nodes.
    node_ips: Option<NodeIps>,
}

/// How followers know node IPs.
#[derive(Serialize)]
struct NodeIps {
    strategy: String,
    why: String,
}

impl NodeIps {
    /// What the agent says, where there is one.
    async fn of_agent(state: &StateArgs) -> Option<Self> {
        let status = request(&state.state_dir, Command::Status).await.ok()?;
        let text = |key: &str| Some(status.get("nodes")?.get(key)?.as_str()?.to_owned());
        Some(Self {
            strategy: text("strategy")?,
            why: text("why")?,
        })
    }
}

/// Prints the groups of this node.
///
/// # Errors
/// Where a database does not answer.
pub async fn run(args: &TopologyArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let connection = args.connection.parse(live::PATIENCE)?;
    let model = live::model_of_every_chassis(&connection).await?;
    let topology = model.topology();
    let node_ips = NodeIps::of_agent(&args.state).await;
    if output.is_json() {
        output.json(&Report { topology, node_ips })?;
        return Ok(Finding::Clean);
    }
    print(topology, output.writer)?;
    if let Some(NodeIps { strategy, why }) = node_ips {
        output.line("")?;
        output.line(format_args!("node IPs: {strategy} bindings, since {why}"))?;
    }
    Ok(Finding::Clean)
}

fn print(topology: &Topology, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let chassis = topology.chassis.as_deref().unwrap_or("unknown");
    let offload = match topology.hardware_offload {
        true => ", hardware offload",
        false => "",
    };
    writeln!(
        out,
        "chassis {chassis}, bridges: {}{offload}",
        topology.groups.len()
    )?;
    for group in &topology.groups {
        writeln!(out, "\n{}", heading(group))?;
        writeln!(out, "{}", members(group))?;
    }
    if !topology.skipped.is_empty() {
        let rows = left_out(&topology.skipped);
        writeln!(out, "\n{}", columns(["left out", "why"], rows, &[]))?;
    }
    Ok(())
}

/// One line for each object, but one for all routers of another chassis: in a zone of many nodes
/// they are many.
fn left_out(skipped: &[Skipped]) -> Vec<[String; 2]> {
    let mut lines = Vec::new();
    let mut elsewhere: BTreeMap<&str, usize> = BTreeMap::new();
    for it in skipped {
        match &it.reason {
            SkipReason::OtherChassis(chassis) => *elsewhere.entry(chassis).or_default() += 1,
            reason => lines.push([it.object.to_string(), reason.to_string()]),
        }
    }
    lines.extend(elsewhere.into_iter().map(|(chassis, routers)| {
        let plural = if routers == 1 { "" } else { "s" };
        [
            format!("{routers} router{plural}"),
            format!("pinned to chassis {chassis}"),
        ]
    }));
    lines
}

fn heading(group: &BridgeGroup) -> String {
    let datapath = match &*group.datapath_type {
        "" => "system",
        other => other,
    };
    let vlan = match group.gateway_vlan {
        Some(vlan) => format!("gateway VLAN {vlan}"),
        None => "no gateway VLAN".to_owned(),
    };
    let families = match (group.ipv4, group.ipv6) {
        (true, true) => "IPv4 and IPv6",
        (true, false) => "IPv4",
        (false, true) => "IPv6",
        (false, false) => "no address",
    };
    let addresses: Vec<String> = group
        .node_addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    format!(
        "bridge {} ({datapath}): address {}, {vlan}, {families}, node {}",
        group.bridge,
        group.bridge_mac,
        addresses.join(" ")
    )
}

fn members(group: &BridgeGroup) -> String {
    let ingress = |role: &str, port: &IngressPort| {
        [
            role.to_owned(),
            port.name.to_string(),
            port.ofport.to_string(),
            "-".to_owned(),
            "-".to_owned(),
        ]
    };
    let router = |role: &str, router: &GatewayRouter| {
        [
            role.to_owned(),
            router.patch_port.to_string(),
            router.ofport.to_string(),
            router.network.as_deref().unwrap_or("default").to_owned(),
            router.name.to_string(),
        ]
    };
    let mut rows = vec![ingress("uplink", &group.uplink)];
    rows.extend(
        group
            .secondary
            .iter()
            .map(|port| ingress("secondary", port)),
    );
    if let HostEndpoint::Representor { name, ofport } = &group.host {
        let port = IngressPort {
            name: Arc::clone(name),
            ofport: *ofport,
        };
        rows.push(ingress("host", &port));
    }
    rows.push(router("source", &group.source));
    rows.extend(group.followers.iter().map(|it| router("follower", it)));
    columns(["role", "port", "ofport", "network", "router"], rows, &[2])
}
