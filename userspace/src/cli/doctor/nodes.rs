//! Whether the other nodes can be known, and what keeps some of them from it.

use super::report::Report;
use crate::{
    agent::{NodeConfig, model::Model},
    cli::nodes::inventory,
    statics::{OwnNode, wanted},
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
                format!("{error:#}"),
                "look at --nodes, --kubeconfig and at what the account may read (nodes, uplinkstates)",
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
        report.warn("nodes", warning, "mend the object that it names");
    }
}
