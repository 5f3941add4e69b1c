//! One pass over one bridge: compare, then write only what differs.

mod fdb;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::state::{BridgeState, StateError, StateFile};
use crate::{
    ids::OfPort,
    openflow::{
        Cookie, FlowChanges, InstalledFlow, Switch, SwitchError,
        unixctl::{UnixCtl, UnixCtlError},
    },
    plan::{self, BridgePlan, COOKIE, ManagerFlows},
};

/// Why a bridge could not be brought to its plan.
#[derive(Debug, thiserror::Error)]
pub enum SteeringError {
    /// The switch refused or was not there.
    #[error("cannot steer on bridge {bridge}")]
    Switch {
        /// The bridge.
        bridge: String,
        /// What the switch said.
        source: Box<SwitchError>,
    },
    /// vswitchd's control socket refused or was not there.
    #[error("cannot see to the static FDB of bridge {bridge}")]
    Control {
        /// The bridge.
        bridge: String,
        /// What the daemon said.
        source: UnixCtlError,
    },
    /// The complete set of flows is for bridges that nobody else manages.
    #[error(
        "bridge {bridge} is managed by OVN-Kubernetes ({flows}): `--flows complete` is not for it, use `--flows overlay`"
    )]
    Managed {
        /// The bridge.
        bridge: String,
        /// Its flows.
        flows: ManagerFlows,
    },
    /// What we are about to change could not be written down, so it was not changed.
    #[error("bridge {bridge} was left as it is")]
    State {
        /// The bridge.
        bridge: String,
        /// Why not.
        source: StateError,
    },
}

/// What one pass over a bridge changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Flows added.
    pub flows_added: usize,
    /// Flows deleted.
    pub flows_deleted: usize,
    /// No-flood flags set or cleared.
    pub flags_changed: usize,
    /// Static FDB entries added or removed.
    pub fdb_changed: usize,
    /// Flows of others with the identity of ours.
    pub foreign_flows: Vec<String>,
    /// Whether nothing of ours is on the bridge because of them.
    pub stands_down: bool,
}

impl Changes {
    /// Whether the pass found everything as wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            flows_added,
            flows_deleted,
            flags_changed,
            fdb_changed,
            foreign_flows: _,
            stands_down: _,
        } = self;
        flows_added + flows_deleted + flags_changed + fdb_changed == 0
    }
}

/// A bridge and what it takes to change it.
pub struct Bridge<'a, S> {
    /// Its name.
    pub name: &'a str,
    /// Flows and ports.
    pub switch: &'a S,
    /// Every port of the bridge by its full name, the bridge's own aside.
    pub ports: &'a BTreeMap<Arc<str>, OfPort>,
    /// vswitchd's control socket.
    pub unixctl: &'a UnixCtl,
    /// What we changed outside our flows.
    pub state: &'a StateFile,
    /// Whether the plan is only for a bridge that OVN-Kubernetes does not manage.
    pub alone: bool,
}

impl<S: Switch> Bridge<'_, S> {
    /// Brings the bridge to the plan; an empty plan takes everything of ours off. So does a flow of
    /// somebody else with the identity of one of ours: whoever installed it steers already.
    ///
    /// # Errors
    /// Where the switch or the state file refuses; what was done until then stays, and the next
    /// pass goes on from there.
    pub async fn converge(&self, plan: &BridgePlan) -> Result<Changes, SteeringError> {
        let mut changes = Changes::default();
        if plan.flows.is_empty() {
            self.take_off(&mut changes).await?;
            return Ok(changes);
        }
        if self.alone
            && let Err(error) = check_unmanaged(self.switch, self.name).await
        {
            if matches!(error, SteeringError::Managed { .. }) {
                self.take_off(&mut changes).await?;
            }
            return Err(error);
        }
        let flows = self.compare_flows(plan).await?;
        if !flows.foreign.is_empty() {
            self.take_off(&mut changes).await?;
            changes.foreign_flows = flows.foreign.iter().map(ToString::to_string).collect();
            changes.stands_down = true;
            return Ok(changes);
        }
        self.converge_fdb(plan, &mut changes).await?;
        self.converge_flags(plan, true, &mut changes).await?;
        self.write_flows(&flows, &mut changes).await?;
        self.converge_flags(plan, false, &mut changes).await?;
        Ok(changes)
    }

    async fn take_off(&self, changes: &mut Changes) -> Result<(), SteeringError> {
        let nothing = &BridgePlan::empty(&self.name.into());
        self.converge_flags(nothing, false, changes).await?;
        let ours = self.dump_flows(Some(COOKIE)).await?;
        self.write_flows(&plan::diff(&[], &ours), changes).await?;
        self.converge_fdb(nothing, changes).await
    }

    /// How the flows differ. Others' flows matter only where ours are missing, since they could
    /// stand in their place: to list all of them costs more than all the rest.
    async fn compare_flows(&self, plan: &BridgePlan) -> Result<FlowChanges, SteeringError> {
        let ours = self.dump_flows(Some(COOKIE)).await?;
        let difference = plan::diff(&plan.flows, &ours);
        // By mark another's steering flows would stand beside ours, not in their place.
        let may_stand_beside = plan.flows.iter().any(|it| plan::usual_place(it).is_some());
        if difference.add.is_empty() && !may_stand_beside {
            return Ok(difference);
        }
        let all = self.dump_flows(None).await?;
        Ok(plan::diff(&plan.flows, &all))
    }

    async fn dump_flows(
        &self,
        cookie: Option<Cookie>,
    ) -> Result<Vec<InstalledFlow>, SteeringError> {
        let flows = self.switch.dump_flows(self.name, cookie).await;
        flows.map_err(|e| self.switch_error(e))
    }

    async fn write_flows(
        &self,
        difference: &FlowChanges,
        changes: &mut Changes,
    ) -> Result<(), SteeringError> {
        if !difference.is_empty() {
            self.switch
                .change_flows(self.name, difference)
                .await
                .map_err(|e| self.switch_error(e))?;
            changes.flows_added += difference.add.len();
            changes.flows_deleted += difference.delete.len();
        }
        Ok(())
    }
}

/// Looks whether OVN-Kubernetes manages the flows of a bridge: then the complete set is not for it.
///
/// # Errors
/// [`SteeringError::Managed`] where it does; where the switch does not say.
pub async fn check_unmanaged(switch: &impl Switch, bridge: &str) -> Result<(), SteeringError> {
    let dumped = switch.dump_flows(bridge, None).await;
    let flows = dumped.map_err(|source| SteeringError::Switch {
        bridge: bridge.to_owned(),
        source: Box::new(source),
    })?;
    match plan::manager_flows(&flows) {
        None => Ok(()),
        Some(flows) => Err(SteeringError::Managed {
            bridge: bridge.to_owned(),
            flows,
        }),
    }
}

/// No-flood flags to write, and what the record will be then.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    write: BTreeMap<OfPort, bool>,
    record: BridgeState,
}

/// Compares flags. `installed` = ports of the bridge and whether each has no-flood; `ports` = names.
///
/// A flag that somebody else set on a follower stays out of the record: `cleanup` must leave it.
fn compare_flags(
    plan: &BridgePlan,
    installed: &BTreeMap<OfPort, bool>,
    ports: &BTreeMap<Arc<str>, OfPort>,
    old: &BridgeState,
) -> Flags {
    let mut flags = Flags {
        record: BridgeState {
            no_flood_set: BTreeSet::new(),
            no_flood_cleared: BTreeSet::new(),
            ..old.clone()
        },
        ..Flags::default()
    };
    for (name, ofport) in ports {
        let Some(&no_flood) = installed.get(ofport) else {
            continue;
        };
        let (ours, theirs) = (
            old.no_flood_set.contains(&**name),
            old.no_flood_cleared.contains(&**name),
        );
        let name = || name.to_string();
        if plan.no_flood.contains(ofport) {
            if !no_flood {
                flags.write.insert(*ofport, true);
            }
            // A flag that is there and was theirs before we cleared it is theirs again.
            if (ours || !no_flood) && !theirs {
                flags.record.no_flood_set.insert(name());
            }
        } else if plan.flood.contains(ofport) {
            if no_flood {
                flags.write.insert(*ofport, false);
            }
            if theirs || (no_flood && !ours) {
                flags.record.no_flood_cleared.insert(name());
            }
        } else if ours && no_flood {
            flags.write.insert(*ofport, false);
        } else if theirs && !no_flood {
            flags.write.insert(*ofport, true);
        }
    }
    flags
}

impl<S: Switch> Bridge<'_, S> {
    /// Flags of all ports; with `only_clear`, those that let the flood through.
    async fn converge_flags(
        &self,
        plan: &BridgePlan,
        only_clear: bool,
        changes: &mut Changes,
    ) -> Result<(), SteeringError> {
        let old = self.state.bridge(self.name);
        if plan.no_flood.is_empty()
            && plan.flood.is_empty()
            && old.no_flood_set.is_empty()
            && old.no_flood_cleared.is_empty()
        {
            return Ok(());
        }
        let installed = self
            .switch
            .ports(self.name)
            .await
            .map_err(|e| self.switch_error(e))?;
        let installed = installed
            .into_iter()
            .map(|port| (port.ofport, port.no_flood))
            .collect();
        let Flags { mut write, record } = compare_flags(plan, &installed, self.ports, &old);
        if only_clear {
            write.retain(|_, no_flood| !*no_flood);
        }
        let union = BridgeState {
            no_flood_set: &old.no_flood_set | &record.no_flood_set,
            no_flood_cleared: &old.no_flood_cleared | &record.no_flood_cleared,
            ..old
        };
        self.record(union)?;
        if !write.is_empty() {
            self.switch
                .set_no_flood(self.name, &write)
                .await
                .map_err(|e| self.switch_error(e))?;
            changes.flags_changed += write.len();
        }
        if only_clear {
            Ok(())
        } else {
            self.record(record)
        }
    }

    fn record(&self, state: BridgeState) -> Result<(), SteeringError> {
        self.state
            .record(self.name, state)
            .map_err(|source| SteeringError::State {
                bridge: self.name.to_owned(),
                source,
            })
    }

    fn switch_error(&self, source: SwitchError) -> SteeringError {
        SteeringError::Switch {
            bridge: self.name.to_owned(),
            source: Box::new(source),
        }
    }

    fn control_error(&self, source: UnixCtlError) -> SteeringError {
        SteeringError::Control {
            bridge: self.name.to_owned(),
            source,
        }
    }
}
