//! What the agent knows: rows of three databases, the groups that follow from them, and what is to
//! be done about them. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    AgentError,
    steering::{Desired, DesiredBridge},
};
use crate::{
    ids::OfPort,
    ovsdb::Change,
    plan::{BridgePlan, Gates, Install, plan},
    rows::{Applied, Rows, Table},
    topology::{self, Incumbents, SkipReason, Topology},
};

/// The rows, and what follows from them.
#[derive(Debug, Default)]
pub struct Model {
    rows: Rows,
    topology: Topology,
    /// The source that each bridge's group had last. A group that is gone for a while, as while
    /// the switch restarts, comes back with the same one.
    incumbents: Incumbents,
}

impl Model {
    /// The rows.
    #[must_use]
    pub const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The groups as of the last [`Model::rebuild`].
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The source that each bridge's group had last.
    #[must_use]
    pub const fn incumbents(&self) -> &Incumbents {
        &self.incumbents
    }

    /// Takes sources of an earlier run for those that each bridge's group had last.
    pub fn remember(&mut self, incumbents: Incumbents) {
        self.incumbents = incumbents;
    }

    /// Takes changed rows in; whether the groups may be other ones now.
    pub fn apply(&mut self, changes: &[Change]) -> bool {
        let mut changed = false;
        for change in changes {
            let Some(table) = Table::ALL
                .into_iter()
                .find(|table| table.name() == &*change.table)
            else {
                continue;
            };
            match self.rows.apply(table, change.uuid, change.new.as_ref()) {
                Applied::Changed => changed = true,
                Applied::Unchanged => {}
                Applied::Skipped(error) => {
                    changed = true;
                    tracing::warn!(table = table.name(), uuid = %change.uuid, %error, "row skipped");
                }
            }
        }
        changed
    }

    /// Computes the groups anew; whether they are other ones than before.
    pub fn rebuild(&mut self) -> bool {
        let topology = topology::build(&self.rows, &self.incumbents);
        let changed = topology != self.topology;
        let bridges = self.rows.bridges.values();
        let bridges: BTreeSet<_> = bridges.map(|bridge| &bridge.name).collect();
        self.incumbents.retain(|bridge, _| bridges.contains(bridge));
        self.incumbents.extend(topology.incumbents());
        self.topology = topology;
        changed
    }

    /// What is wanted of every bridge: the groups' plans, and nothing of ours on the others.
    #[must_use]
    pub fn desired(&self, gates: Gates, install: Install) -> Desired {
        let alone = install == Install::Complete;
        self.plans(alone, |bridge| {
            let group = self.topology.group(bridge);
            group.map_or_else(
                || BridgePlan::empty(bridge),
                |group| plan(group, gates, install),
            )
        })
    }

    /// Nothing of ours on any bridge.
    #[must_use]
    pub fn unsteered(&self) -> Desired {
        self.plans(false, BridgePlan::empty)
    }

    fn plans(&self, alone: bool, plan: impl Fn(&Arc<str>) -> BridgePlan) -> Desired {
        let mut bridges: BTreeMap<Arc<str>, DesiredBridge> = BTreeMap::new();
        for bridge in self.rows.bridges.values() {
            let desired = DesiredBridge {
                plan: plan(&bridge.name),
                ports: self.ports(&bridge.ports),
                alone,
            };
            bridges.insert(Arc::clone(&bridge.name), desired);
        }
        Desired { bridges }
    }

    /// The ports of these rows with a number, by name.
    fn ports(&self, ports: &[crate::ovsdb::Uuid]) -> BTreeMap<Arc<str>, OfPort> {
        let interfaces = ports
            .iter()
            .filter_map(|port| self.rows.ports.get(port))
            .flat_map(|port| &port.interfaces)
            .filter_map(|interface| self.rows.interfaces.get(interface));
        interfaces
            .filter_map(|interface| Some((Arc::clone(&interface.name), interface.ofport?)))
            .collect()
    }

    /// A bridge that has gateway routers and no uplink can be neither observed nor steered.
    ///
    /// # Errors
    /// Names the first such bridge.
    pub fn check_uplinks(&self) -> Result<(), AgentError> {
        let without = self.topology.skipped.iter().find(|skipped| {
            matches!(
                skipped.reason,
                SkipReason::NoUplink
                    | SkipReason::UplinkMissing(_)
                    | SkipReason::SeveralUplinks(_)
                    | SkipReason::BondedUplink(_)
            )
        });
        match without {
            Some(skipped) => Err(AgentError::NoUplink {
                bridge: skipped.object.to_string(),
                reason: skipped.reason.clone(),
            }),
            None => Ok(()),
        }
    }
}
