//! The flags that say what is known of the cluster's nodes, and what is done about their addresses.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
};

use tokio::time::timeout;

use super::{connection::StateArgs, live};
use crate::{
    agent::{
        NodeConfig,
        control::{Command, request},
        node_bindings::BridgeNodes,
    },
    mirror::GroupMembers,
    nodes::Inventory,
    sources::{self, SourceConfig},
    statics::{Masquerade, Settings, StrategySetting},
    topology::{BridgeGroup, Prefix},
};

/// What is known of nodes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Node IPs")]
pub struct NodeArgs {
    /// Where nodes are known from: `kubernetes`, or a file or directory of Node and UplinkState
    /// manifests; every follower then knows their addresses. [default: nowhere]
    #[arg(
        long,
        value_name = "kubernetes|PATH",
        env = "NEIGHSTEER_NODES",
        value_parser = parse_source
    )]
    pub nodes: Option<NodeSourceArg>,
    /// How to reach the API server [default: what a pod is given]
    #[arg(long, value_name = "FILE", env = "NEIGHSTEER_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of it [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub kube_context: Option<String>,
    /// This node's name, where no node has this chassis' name in k8s.ovn.org/node-chassis-id
    #[arg(long, value_name = "NAME", env = "NEIGHSTEER_NODE_NAME")]
    pub node_name: Option<String>,
    /// How followers know node IPs: static, northbound rows that never age; dynamic, southbound rows
    /// that are refreshed; auto, static unless that would slow down an OVN before 25.03
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t = NodeBindingsArg::Auto,
        env = "NEIGHSTEER_NODE_BINDINGS"
    )]
    pub node_bindings: NodeBindingsArg,
    /// With auto: how many static rows an OVN before 25.03 gets at most
    #[arg(long, value_name = "ROWS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub node_static_rows: u32,
    /// A masquerade subnet of the gateway, of now or of former times, whose static rows are not ours;
    /// any number of times, besides the defaults of OVN-Kubernetes
    #[arg(long, value_name = "CIDR")]
    pub masquerade_subnet: Vec<Prefix>,
    /// For how many ms changes of nodes are gathered after the last one; five times as long at most
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub node_gather: u64,
}

/// What `--nodes` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSourceArg {
    /// The API server.
    Kubernetes,
    /// Manifests.
    Files(PathBuf),
}

/// What `--node-bindings` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NodeBindingsArg {
    /// Static unless that would slow down an OVN before 25.03
    Auto,
    /// Northbound rows that never age
    Static,
    /// Southbound rows that are refreshed
    Dynamic,
}

fn parse_source(text: &str) -> Result<NodeSourceArg, String> {
    match text {
        "" => Err("`kubernetes` or a path is wanted".to_owned()),
        "kubernetes" => Ok(NodeSourceArg::Kubernetes),
        path => Ok(NodeSourceArg::Files(path.into())),
    }
}

impl NodeArgs {
    /// What the agent is told.
    #[must_use]
    pub fn config(&self) -> NodeConfig {
        let source = self.nodes.clone().map(|source| match source {
            NodeSourceArg::Kubernetes => SourceConfig::Kubernetes {
                kubeconfig: self.kubeconfig.clone(),
                context: self.kube_context.clone(),
            },
            NodeSourceArg::Files(path) => SourceConfig::Files(path),
        });
        NodeConfig {
            source,
            name: self.node_name.clone(),
            strategy: match self.node_bindings {
                NodeBindingsArg::Auto => StrategySetting::Auto,
                NodeBindingsArg::Static => StrategySetting::Static,
                NodeBindingsArg::Dynamic => StrategySetting::Dynamic,
            },
            static_rows: usize::try_from(self.node_static_rows).unwrap_or(usize::MAX),
            settings: Settings {
                gather_ms: self.node_gather,
                most_gather_ms: self.node_gather.saturating_mul(5),
                masquerade: Masquerade::new(self.masquerade_subnet.iter().copied()),
                ..Settings::default()
            },
            keep_rows: false,
        }
    }
}

/// The nodes that a source knows, looked at once.
///
/// # Errors
/// Where it cannot be, or none is known after [`live::PATIENCE`].
pub(super) async fn inventory(source: SourceConfig) -> anyhow::Result<Arc<Inventory>> {
    let mut feed = sources::start(source)?;
    match timeout(live::PATIENCE, feed.changed()).await {
        Ok(inventory) => Ok(inventory?),
        Err(_) => {
            let status = feed.status();
            let error = status
                .last_error
                .unwrap_or_else(|| "it does not answer".to_owned());
            anyhow::bail!("no node is known from {}: {error}", status.source)
        }
    }
}

/// What the running agent knows of nodes, by bridge; without one, nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentsNodes(BTreeMap<Arc<str>, BridgeNodes>);

impl AgentsNodes {
    /// Asks the agent.
    pub(super) async fn ask(state: &StateArgs) -> Self {
        match request(&state.state_dir, Command::Nodes).await {
            Ok(answer) => Self(serde_json::from_value(answer).unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "no agent says what it knows of nodes");
                Self::default()
            }
        }
    }

    /// A group as the agent mirrors it; `others` are further addresses that it leaves alone.
    pub(super) fn members(&self, group: &BridgeGroup, others: &BTreeSet<IpAddr>) -> GroupMembers {
        let known = self.0.get(&group.bridge).cloned().unwrap_or_default();
        let node_ips = &known.node_ips | others;
        GroupMembers::of(group, Arc::new(node_ips)).with_pinned(Arc::new(known.pinned))
    }
}
