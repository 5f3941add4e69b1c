//! How a bridge stands, and saying once what changed.

use serde::Serialize;

use super::DesiredBridge;
use crate::{
    agent::converge::{Changes, SteeringError},
    plan::BridgePlan,
};

/// How one bridge stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BridgeSteering {
    /// The bridge.
    pub bridge: String,
    /// Whether the last pass found or made everything as wanted.
    pub converged: bool,
    /// Whether others' flows with the identity of ours are there, so that nothing of ours is.
    pub standing_down: bool,
    /// Whether somebody undoes our work so often that it is put right more slowly.
    pub contended: bool,
    /// Whether changes to the bridge are told to us as they happen.
    pub watched: bool,
    /// Flows of ours that are wanted.
    pub flows: usize,
    /// Ports whose no-flood flag is wanted.
    pub no_flood_ports: usize,
    /// Passes since the start.
    pub checks: u64,
    /// Flows added since the start.
    pub flows_added: u64,
    /// Flows deleted by us since the start.
    pub flows_deleted: u64,
    /// Flows of ours that others deleted or changed since the start.
    pub flows_lost: u64,
    /// No-flood flags changed since the start.
    pub flags_changed: u64,
    /// Static FDB entries added or removed since the start.
    pub fdb_changed: u64,
    /// Flows of others that stand where ours should: we leave them alone.
    pub foreign_flows: Vec<String>,
    /// Passes that failed since the start.
    pub failures: u64,
    /// Why the last pass failed.
    pub last_error: Option<String>,
    /// What the last pass that succeeded was to bring about.
    #[serde(skip)]
    pub done: Option<DesiredBridge>,
}

impl BridgeSteering {
    /// Nothing done yet.
    #[must_use]
    pub fn new(bridge: &str) -> Self {
        Self {
            bridge: bridge.to_owned(),
            ..Self::default()
        }
    }

    /// Counts what a pass came to.
    pub fn note(&mut self, desired: &DesiredBridge, result: Result<Changes, SteeringError>) {
        self.checks += 1;
        match result {
            Ok(changes) => {
                self.succeeded(&desired.plan, changes);
                if self.done.as_ref() != Some(desired) {
                    self.done = Some(desired.clone());
                }
            }
            Err(error) => {
                let text = crate::agent::chain(&error);
                if self.last_error.as_ref() != Some(&text) {
                    tracing::warn!(bridge = self.bridge, error = %text, "bridge not converged");
                }
                if matches!(error, SteeringError::Managed { .. }) {
                    // Ours was taken off.
                    (self.flows, self.no_flood_ports) = (0, 0);
                }
                self.converged = false;
                self.failures += 1;
                self.last_error = Some(text);
            }
        }
    }

    fn succeeded(&mut self, plan: &BridgePlan, changes: Changes) {
        let bridge = &self.bridge;
        if !changes.is_empty() {
            tracing::info!(
                bridge,
                flows_added = changes.flows_added,
                flows_deleted = changes.flows_deleted,
                flags_changed = changes.flags_changed,
                fdb_changed = changes.fdb_changed,
                "bridge changed"
            );
        }
        if changes.stands_down && !self.standing_down {
            let theirs = changes.foreign_flows.first().map_or("", String::as_str);
            tracing::warn!(
                bridge,
                flows = changes.foreign_flows.len(),
                theirs,
                "standing down: others have flows where ours would be; nothing of ours is on the bridge"
            );
        } else if !changes.stands_down && self.standing_down {
            tracing::info!(bridge, "the others' flows are gone: steering again");
        }
        if self.last_error.take().is_some() {
            tracing::info!(bridge, "bridge converged again");
        }
        self.flows_added += changes.flows_added as u64;
        self.flows_deleted += changes.flows_deleted as u64;
        self.flags_changed += changes.flags_changed as u64;
        self.fdb_changed += changes.fdb_changed as u64;
        self.standing_down = changes.stands_down;
        self.foreign_flows = changes.foreign_flows;
        let carried_out = if self.standing_down { None } else { Some(plan) };
        self.flows = carried_out.map_or(0, |plan| plan.flows.len());
        self.no_flood_ports = carried_out.map_or(0, |plan| plan.no_flood.len());
        self.converged = true;
    }

    /// Says once that a fight has begun, and that it is over.
    pub fn set_contended(&mut self, contended: bool) {
        let bridge = &self.bridge;
        if contended && !self.contended {
            tracing::warn!(
                bridge,
                flows_lost = self.flows_lost,
                "somebody undoes our work more than five times a second: putting it right more slowly; is another manager on this bridge?"
            );
        } else if !contended && self.contended {
            tracing::info!(bridge, "nobody undoes our work any more");
        }
        self.contended = contended;
    }
}
