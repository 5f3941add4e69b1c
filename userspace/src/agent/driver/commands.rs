//! What clients ask of the agent.

use std::{collections::BTreeMap, sync::Arc};

use super::Driver;
use crate::agent::{
    chain,
    control::Command,
    marking::drops_in_vain,
    mirroring::Mirrors,
    node_bindings::{BridgeNodes, NodeBindings},
    status::{AgentStatus, GroupStatus},
};

impl Driver {
    pub(super) fn call(&mut self, command: Command) -> serde_json::Value {
        let result = match command {
            Command::Status => serde_json::to_value(self.status()).map_err(|e| e.to_string()),
            Command::Pause => self.pause(true),
            Command::Resume => self.pause(false),
            Command::Nodes => serde_json::to_value(self.known_nodes()).map_err(|e| e.to_string()),
        };
        result.unwrap_or_else(|error| serde_json::json!({ "error": error }))
    }

    fn known_nodes(&self) -> BTreeMap<Arc<str>, BridgeNodes> {
        let groups = self.model.topology().groups.iter();
        let known = groups.filter_map(|group| {
            let nodes = self.nodes.as_ref()?.of_bridge(&group.bridge);
            Some((Arc::clone(&group.bridge), nodes))
        });
        known.collect()
    }

    fn pause(&mut self, paused: bool) -> Result<serde_json::Value, String> {
        let changed = self.state.set_paused(paused);
        let changed = changed.map_err(|error| chain(&error))?;
        if changed {
            note_pause(paused);
            self.carry_out();
        }
        Ok(serde_json::json!({ "paused": paused, "changed": changed }))
    }

    fn status(&self) -> AgentStatus {
        let topology = self.model.topology();
        let statuses = self.steering.borrow();
        let desired = self.desired.borrow();
        let settled = desired.bridges.iter().all(|(bridge, desired)| {
            let status = statuses.get(bridge);
            status.is_some_and(|it| it.converged && it.done.as_ref() == Some(desired))
        });
        AgentStatus {
            paused: self.state.paused(),
            settled,
            mode: self.config.connection.host.mode,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            steering_gate: self.config.gates.steering(),
            databases: self.statuses.clone(),
            groups: topology
                .groups
                .iter()
                .map(|group| {
                    let no_drop = drops_in_vain(group, &self.config);
                    GroupStatus::new(group, self.mark_for(group), no_drop)
                })
                .collect(),
            skipped: topology.skipped.clone(),
            datapath: self.attachments.status(),
            steering: statuses.values().cloned().collect(),
            bad_bindings: self.mirrors.as_ref().map_or(0, Mirrors::bad_rows),
            mirror_lock: self.mirrors.as_ref().and_then(Mirrors::lock_state),
            mirror: self
                .mirrors
                .as_ref()
                .map(Mirrors::status)
                .unwrap_or_default(),
            nodes: self.nodes.as_ref().map(NodeBindings::status),
        }
    }
}

/// Says that the agent was paused or resumed, or starts paused.
pub(super) fn note_pause(paused: bool) {
    if paused {
        tracing::warn!(
            "paused: our flows, flags and entries go and nothing is mirrored, until `neighsteer resume`"
        );
    } else {
        tracing::info!("resumed: steering and mirroring again");
    }
}
