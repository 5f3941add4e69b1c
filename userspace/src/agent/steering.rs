//! Brings bridges to what the plan wants: flows, no-flood flags, static FDB entries.
//!
//! One task. It gets the newest desired state through a watch channel, compares it with what the
//! switch really has, and writes only differences. Order: docs/architecture.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    converge::{Bridge, Changes, SteeringError},
    state::StateFile,
};
use crate::{
    ids::OfPort,
    openflow::{Switch, unixctl::UnixCtl},
    ovsdb::Backoff,
    plan::BridgePlan,
};

/// What is wanted of every bridge of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// By bridge name. A bridge with an empty plan gets everything of ours taken off.
    pub bridges: BTreeMap<Arc<str>, DesiredBridge>,
}

/// What is wanted of one bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredBridge {
    /// Flows, flags, static FDB.
    pub plan: BridgePlan,
    /// Every port of the bridge by its full name, the bridge's own aside.
    pub ports: BTreeMap<Arc<str>, OfPort>,
}

/// How one bridge stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BridgeSteering {
    /// The bridge.
    pub bridge: String,
    /// Whether the last pass found or made everything as wanted.
    pub converged: bool,
    /// Flows of ours that are wanted.
    pub flows: usize,
    /// Ports whose no-flood flag is wanted.
    pub no_flood_ports: usize,
    /// Passes since the start.
    pub checks: u64,
    /// Flows added since the start.
    pub flows_added: u64,
    /// Flows deleted since the start.
    pub flows_deleted: u64,
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
}

/// The task's handles on the outside.
#[derive(Debug)]
pub struct Steering<S> {
    /// Flows and ports.
    pub switch: S,
    /// vswitchd's run directory, where its control socket is looked up anew for each pass (its
    /// name holds the daemon's pid).
    pub ovs_run_directory: std::path::PathBuf,
    /// What we changed outside our flows.
    pub state: StateFile,
    /// How often to compare without an event.
    pub check_interval: Duration,
}

impl<S: Switch> Steering<S> {
    /// Converges whenever the desired state changes, a pass has failed, or the check interval is
    /// over. Ends when the sender of `desired` is gone.
    pub async fn run(
        mut self,
        mut desired: watch::Receiver<Arc<Desired>>,
        status: watch::Sender<Vec<BridgeSteering>>,
    ) {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            longest: self.check_interval,
        };
        let mut records: BTreeMap<Arc<str>, BridgeSteering> = BTreeMap::new();
        // Bridges that want nothing and have nothing of ours: nobody puts anything there, and to list
        // the flows of br-int costs the switch more than all the rest.
        let mut bare: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut failures = 0;
        loop {
            let wanted = Arc::clone(&desired.borrow_and_update());
            records.retain(|bridge, _| wanted.bridges.contains_key(bridge));
            bare.retain(|bridge| {
                wanted
                    .bridges
                    .get(bridge)
                    .is_some_and(|desired| desired.plan.is_empty())
            });
            let mut failed = false;
            for (bridge, desired) in &wanted.bridges {
                if bare.contains(bridge) {
                    continue;
                }
                let record = records.entry(Arc::clone(bridge)).or_default();
                let result = self.pass(bridge, desired).await;
                failed |= result.is_err();
                if desired.plan.is_empty() && result.is_ok() {
                    bare.insert(Arc::clone(bridge));
                }
                note(record, bridge, &desired.plan, result);
            }
            status.send_replace(records.values().cloned().collect());
            failures = if failed { failures + 1 } else { 0 };
            let wait = match failures {
                0 => self.check_interval,
                _ => backoff.wait(failures, fastrand::f64()),
            };
            tokio::select! {
                changed = desired.changed() => if changed.is_err() { return },
                () = sleep_until(Instant::now() + wait) => {}
            }
        }
    }

    async fn pass(
        &mut self,
        name: &str,
        desired: &DesiredBridge,
    ) -> Result<Changes, SteeringError> {
        let unixctl = UnixCtl::of_vswitchd(&self.ovs_run_directory).map_err(|source| {
            SteeringError::Control {
                bridge: name.to_owned(),
                source,
            }
        })?;
        Bridge {
            name,
            ports: &desired.ports,
            switch: &self.switch,
            unixctl: &unixctl,
            state: &mut self.state,
        }
        .converge(&desired.plan)
        .await
    }
}

/// Says once what changed, and once what broke.
fn note(
    record: &mut BridgeSteering,
    bridge: &str,
    plan: &BridgePlan,
    result: Result<Changes, SteeringError>,
) {
    bridge.clone_into(&mut record.bridge);
    record.checks += 1;
    record.flows = plan.flows.len();
    record.no_flood_ports = plan.no_flood.len();
    match result {
        Ok(changes) => {
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
            record.flows_added += changes.flows_added as u64;
            record.flows_deleted += changes.flows_deleted as u64;
            record.flags_changed += changes.flags_changed as u64;
            record.fdb_changed += changes.fdb_changed as u64;
            record.foreign_flows = changes.foreign_flows;
            if record.last_error.take().is_some() {
                tracing::info!(bridge, "bridge converged again");
            }
            record.converged = true;
        }
        Err(error) => {
            let text = crate::agent::chain(&error);
            if record.last_error.as_ref() != Some(&text) {
                tracing::warn!(bridge, error = %text, "bridge not converged");
            }
            record.converged = false;
            record.failures += 1;
            record.last_error = Some(text);
        }
    }
}
