//! Whether the other nodes can be known, and what keeps some of them from it.

use super::report::Report;
use crate::{
    agent::{NodeConfig, chain, model::Model},
    cli::nodes::inventory,
    sources::SourceConfig,
    statics::{OwnNode, Warning, wanted},
};

/// Says nothing where no source is named.
pub(super) async fn check(report: &mut Report, config: &NodeConfig, model: Option<&Model>) {
    let Some(source) = config.source.clone() else {
        return;
    };
    let inventory = match inventory(source).await {
        Ok(inventory) => inventory,
        Err(error) => {
            report.error(
                "nodes",
                chain(error.as_ref()),
                match config.source {
                    Some(SourceConfig::Files(_)) => "look at --nodes: each manifest there has to be readable at the agent's start",
                    _ => "look at --kubeconfig, and at what the account may read (nodes, uplinkstates)",
                },
            );
            return;
        }
    };
    let nodes = inventory.nodes.len();
    let uplinks = inventory.uplinks.len();
    report.ok("nodes", format!("{nodes} nodes, {uplinks} UplinkStates"));
    let Some(model) = model else { return };
    let own = OwnNode {
        name: config.name.as_deref(),
        masquerade: &config.settings.masquerade,
    };
    let bindings = wanted(Some(&inventory), model.rows(), model.topology(), own);
    for warning in bindings.into_iter().flat_map(|it| it.warnings) {
        let advice = match &warning {
            Warning::OwnNodeUnknown => {
                let chassis = model.topology().chassis.as_deref().unwrap_or_default();
                format!(
                    "add this node's own Node, with {chassis} in k8s.ovn.org/node-chassis-id, or name it \
                     by --node-name"
                )
            }
            _ => "mend the object that it names".to_owned(),
        };
        report.warn("nodes", warning, advice);
    }
}
