//! Brings bridges to what the plan wants: flows, no-flood flags, static FDB entries; and keeps them
//! there.
//!
//! One task a bridge, so that a switch that hangs on one holds up no other. Each gets the newest
//! desired state through a watch channel, compares it with what the switch really has, and writes
//! only differences; it watches flows and ports, and puts back at once what others take away.
//! Order: docs/architecture.md.

mod contention;
mod news;
mod record;
mod task;
mod watches;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

pub use record::BridgeSteering;

use self::task::BridgeTask;
use super::state::{BridgeState, StateFile};
use crate::{ids::OfPort, openflow::NativeSwitch, plan::BridgePlan};

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
    /// Whether the plan is only for a bridge that OVN-Kubernetes does not manage.
    pub alone: bool,
}

/// How every bridge stands, by name.
pub type Statuses = BTreeMap<Arc<str>, BridgeSteering>;

/// The tasks' handles on the outside.
#[derive(Debug)]
pub struct Steering {
    /// Flows and ports.
    pub switch: NativeSwitch,
    /// vswitchd's run directory, where its control socket is looked up anew for each pass (its
    /// name holds the daemon's pid).
    pub ovs_run_directory: PathBuf,
    /// What we changed outside our flows.
    pub state: StateFile,
    /// How often to compare without an event.
    pub check_interval: Duration,
}

/// A bridge's task, from outside.
struct Handle {
    desired: watch::Sender<DesiredBridge>,
    task: AbortHandle,
}

impl Steering {
    /// Keeps a task for each bridge. Ends when the sender of `desired` is gone, or a task has ended
    /// that should not have.
    pub async fn run(
        self,
        mut desired: watch::Receiver<Arc<Desired>>,
        statuses: watch::Sender<Statuses>,
    ) {
        let statuses = Arc::new(statuses);
        let mut tasks = JoinSet::new();
        let mut handles: BTreeMap<Arc<str>, Handle> = BTreeMap::new();
        loop {
            let wanted = Arc::clone(&desired.borrow_and_update());
            handles.retain(|bridge, handle| {
                let stays = wanted.bridges.contains_key(bridge);
                if !stays {
                    handle.task.abort();
                    self.forget(bridge, &statuses);
                }
                stays
            });
            for (bridge, desired) in &wanted.bridges {
                match handles.entry(Arc::clone(bridge)) {
                    Entry::Occupied(there) => {
                        there.get().desired.send_if_modified(|current| {
                            let changed = current != desired;
                            if changed {
                                current.clone_from(desired);
                            }
                            changed
                        });
                    }
                    Entry::Vacant(place) => {
                        let (sender, receiver) = watch::channel(desired.clone());
                        let task = tasks.spawn(self.task(bridge, receiver, &statuses).run());
                        place.insert(Handle {
                            desired: sender,
                            task,
                        });
                    }
                }
            }
            loop {
                tokio::select! {
                    changed = desired.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                    Some(ended) = tasks.join_next() => match ended {
                        // The bridge is gone.
                        Err(error) if error.is_cancelled() => {}
                        ended => {
                            tracing::error!(?ended, "a bridge's task has ended");
                            return;
                        }
                    },
                }
            }
        }
    }

    fn task(
        &self,
        bridge: &Arc<str>,
        desired: watch::Receiver<DesiredBridge>,
        statuses: &Arc<watch::Sender<Statuses>>,
    ) -> BridgeTask {
        BridgeTask {
            bridge: Arc::clone(bridge),
            switch: self.switch.clone(),
            ovs_run_directory: self.ovs_run_directory.clone(),
            state: self.state.clone(),
            check_interval: self.check_interval,
            desired,
            statuses: Arc::clone(statuses),
        }
    }

    /// With the bridge, everything that was on it is gone.
    fn forget(&self, bridge: &str, statuses: &watch::Sender<Statuses>) {
        statuses.send_modify(|statuses| {
            statuses.remove(bridge);
        });
        if let Err(error) = self.state.record(bridge, BridgeState::default()) {
            tracing::warn!(bridge, error = %super::chain(&error), "the record of a bridge that is gone stays");
        }
    }
}
