//! What the driver makes of configuration and nodes.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    agent::{
        AgentError, Connection, chain,
        clock::Clock,
        config::AgentConfig,
        database_locks::lock_name,
        databases::Databases,
        mode::NodeMode,
        node_bindings::{NodeBindings, Strangers},
        state::StateFile,
        static_rows::{StaticRows, orphans::orphaned_ports},
    },
    mirror::GroupMembers,
    sources,
    topology::BridgeGroup,
};

/// Whether rows of ports that go are deleted whosesoever they are: they would stop northd before
/// OVN 25.03, and the state file, which says which are ours, does not outlive a reboot.
const fn is_on_guard(config: &AgentConfig) -> bool {
    config.gates.steering() || config.nodes.keep_rows
}

/// Whether static rows are looked at at all; `recorded` are the ports to which an earlier run wrote.
pub(super) fn minds_static_rows(config: &AgentConfig, recorded: &BTreeSet<Arc<str>>) -> bool {
    config.nodes.source.is_some() || !recorded.is_empty() || is_on_guard(config)
}

/// What a source of nodes and the state file ask for.
pub(super) fn node_bindings(
    config: &AgentConfig,
    databases: &Databases,
    state: &StateFile,
    clock: Clock,
    recorded: BTreeSet<Arc<str>>,
) -> Result<Option<NodeBindings>, AgentError> {
    if !minds_static_rows(config, &recorded) {
        return Ok(None);
    }
    let source = config.nodes.source.clone();
    let feed = source.map(sources::start).transpose()?;
    let client = databases.northbound.client.clone();
    let lock = client.lock(lock_name("static", &databases.chassis))?;
    let settings = config.nodes.settings.clone();
    let rows = StaticRows::new(client, clock, settings, lock, state.clone());
    let strangers = match is_on_guard(config) {
        true => Strangers::Guarded,
        false => Strangers::Ignored,
    };
    let mut bindings = NodeBindings::new(config.nodes.clone(), feed, rows);
    bindings.without_source(recorded, strangers);
    let is_dpu = config.connection.host.mode == NodeMode::Dpu;
    Ok(Some(bindings.ipv4_only(is_dpu)))
}

/// The routers of a group, and what is known of nodes on its bridge.
pub(super) fn members(
    group: &BridgeGroup,
    config: &AgentConfig,
    nodes: Option<&NodeBindings>,
) -> GroupMembers {
    let mut node_ips = config.node_addresses.clone();
    node_ips.extend(
        nodes
            .into_iter()
            .flat_map(|nodes| nodes.node_ips(&group.bridge)),
    );
    let pins = nodes.map(|nodes| nodes.pins(&group.bridge));
    GroupMembers::of(group, Arc::new(node_ips)).with_pinned(pins.unwrap_or_default())
}

/// A first start, or one after the state file was lost: rows of ours may be left for ports that have
/// gone since.
pub(super) async fn remember_orphans(connection: &Connection, state: &StateFile) {
    match orphaned_ports(connection).await {
        Ok(ports) if ports.is_empty() => {}
        Ok(ports) => {
            let count = ports.len();
            tracing::warn!(
                ports = count,
                "static bindings are left for router ports that nobody has; they go"
            );
            if let Err(error) = state.set_static_ports(ports) {
                tracing::warn!(error = %chain(&error), "ports not kept");
            }
        }
        Err(error) => {
            tracing::warn!(error = %chain(&error), "static bindings of ports that are gone were not looked for");
        }
    }
}
