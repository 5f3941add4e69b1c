//! What a dry run says of node IPs.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    agent::{AgentConfig, NodeMode, model::Model, state::StateFile},
    cli::{live, nodes::inventory},
    ids::Mac,
    statics::{
        Mode, OwnNode, RowOperation, Strategy, Target, Wanted, WantedBindings, northd_version,
        recompute, rows_wanted, strategy, targets, wanted,
    },
};

/// What is wanted of bindings of node IPs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// Followers have them.
    Wanted,
    /// They go.
    Withdrawn,
    /// Those that are there stay.
    Kept,
}

/// What would be done about node IPs.
#[derive(Debug, Serialize)]
pub(super) struct PlannedNodes {
    nodes: usize,
    /// `None` without a source of nodes: what an earlier run wrote goes.
    strategy: Option<Strategy>,
    why: String,
    /// What is wanted of bindings now.
    standing: Standing,
    warnings: Vec<String>,
    static_rows: Vec<RowOperation>,
    #[serde(skip)]
    wanted: WantedBindings,
}

/// Reads the nodes and the static rows once; `None` without a source.
///
/// # Errors
/// Where one of them cannot be read.
pub(super) async fn plan(
    config: &AgentConfig,
    model: &Model,
    state: &StateFile,
    steering: bool,
    left_to_others: &BTreeSet<Arc<str>>,
) -> anyhow::Result<Option<PlannedNodes>> {
    let Some(source) = config.nodes.source.clone() else {
        return withdrawn(config, model, state).await;
    };
    let inventory = inventory(source).await?;
    let (rows, topology) = (model.rows(), model.topology());
    let mut targets = targets(rows, topology, &state.static_ports());
    targets.retain(|target| {
        let bridge = target.bridge.as_ref();
        bridge.is_none_or(|bridge| !left_to_others.contains(bridge))
    });
    leave_alone(config, &mut targets);
    let own = OwnNode {
        name: config.nodes.name.as_deref(),
        masquerade: &config.nodes.settings.masquerade,
    };
    let wanted = wanted(Some(&inventory), rows, topology, own);
    let mut wanted = wanted.context("there is no node")?;
    if config.connection.host.mode == NodeMode::Dpu {
        wanted = wanted.without_ipv6();
    }
    let (strategy, why) = strategy(
        config.nodes.strategy,
        northd_version(rows).map(|version| &**version),
        rows_wanted(&targets, &wanted),
        config.nodes.static_rows,
        None,
    );
    let mode = match strategy {
        Strategy::Static if steering => Mode::Write,
        _ => Mode::Withdraw,
    };
    let there = live::static_rows(&config.connection, &targets).await?;
    let masquerade = &config.nodes.settings.masquerade;
    let static_rows = recompute(&there, &targets, Some(&wanted), mode, masquerade);
    Ok(Some(PlannedNodes {
        nodes: inventory.nodes.len(),
        strategy: Some(strategy),
        standing: match (config.nodes.keep_rows, steering) {
            (true, _) => Standing::Kept,
            (false, true) => Standing::Wanted,
            (false, false) => Standing::Withdrawn,
        },
        why: why.to_string(),
        warnings: wanted.warnings.iter().map(ToString::to_string).collect(),
        static_rows,
        wanted,
    }))
}

/// With `--keep-rows` nothing but rows of ports that are gone goes.
fn leave_alone(config: &AgentConfig, targets: &mut [Target]) {
    if config.nodes.keep_rows {
        targets.iter_mut().for_each(Target::leave_alone);
    }
}

/// Without a source what an earlier run wrote goes; `None` where it wrote nothing.
async fn withdrawn(
    config: &AgentConfig,
    model: &Model,
    state: &StateFile,
) -> anyhow::Result<Option<PlannedNodes>> {
    let recorded = state.static_ports();
    if recorded.is_empty() {
        return Ok(None);
    }
    let mut targets = targets(model.rows(), model.topology(), &recorded);
    targets.retain(|target| recorded.contains(&target.port));
    leave_alone(config, &mut targets);
    let there = live::static_rows(&config.connection, &targets).await?;
    let masquerade = &config.nodes.settings.masquerade;
    Ok(Some(PlannedNodes {
        nodes: 0,
        strategy: None,
        standing: match config.nodes.keep_rows {
            true => Standing::Kept,
            false => Standing::Withdrawn,
        },
        why: "no source of nodes is given".to_owned(),
        warnings: Vec::new(),
        static_rows: recompute(&there, &targets, None, Mode::Withdraw, masquerade),
        wanted: WantedBindings::default(),
    }))
}

impl PlannedNodes {
    /// The addresses that a bridge's mirror leaves alone.
    pub(super) fn node_ips(&self, bridge: &str) -> impl Iterator<Item = IpAddr> {
        let bindings = self.wanted.bridges.get(bridge);
        bindings
            .into_iter()
            .flat_map(|it| it.node_ips.iter().copied())
    }

    /// The bindings that a bridge's mirror keeps.
    pub(super) fn pins(&self, bridge: &str) -> Arc<BTreeMap<IpAddr, Mac>> {
        if self.strategy != Some(Strategy::Dynamic) {
            return Arc::default();
        }
        let bindings = self.wanted.bridges.get(bridge);
        let bindings = bindings.into_iter().flat_map(|it| &it.bindings);
        let told = bindings.filter_map(|(ip, wanted)| match wanted {
            Wanted::Binding(mac) => Some((*ip, *mac)),
            Wanted::Keep => None,
        });
        Arc::new(told.collect())
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let nodes = self.nodes;
        let mut lines = vec![match (self.standing, self.strategy) {
            (Standing::Kept, _) => format!(
                "{nodes} nodes; static bindings that are there stay as they are, since steering is off (--keep-rows)"
            ),
            (Standing::Withdrawn, Some(_)) => {
                format!("{nodes} nodes; no binding is kept, since steering is off or paused")
            }
            (Standing::Wanted, Some(strategy)) => {
                format!(
                    "{nodes} nodes are known by {strategy} bindings, since {}",
                    self.why
                )
            }
            (_, None) => format!("no static binding is kept, since {}", self.why),
        }];
        lines.extend(
            self.warnings
                .iter()
                .map(|warning| format!("nodes: {warning}")),
        );
        lines.extend(self.static_rows.iter().map(|row| {
            let (verb, mac) = match row.write {
                crate::statics::RowWrite::Insert { mac } => ("insert", format!(" at {mac}")),
                crate::statics::RowWrite::Update { mac, .. } => ("correct", format!(" to {mac}")),
                crate::statics::RowWrite::Delete { .. } => ("delete", String::new()),
            };
            format!("{verb} static binding {} of {}{mac}", row.ip, row.port)
        }));
        lines
    }
}
