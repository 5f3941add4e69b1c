//! What the agent knows: rows of three databases, the groups that follow from them, and what is to
//! be done about them. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{
    AgentError,
    steering::{Desired, DesiredBridge},
};
use crate::{
    ids::OfPort,
    ovsdb::Change,
    plan::{self, BridgePlan, Gates, Install, NoMark, SteeringMark, plan},
    rows::{Applied, Rows, Table},
    topology::{self, BridgeGroup, Dpu, Incumbents, Place, SkipReason, Topology},
};

/// The rows, and what follows from them.
#[derive(Debug, Default)]
pub struct Model {
    rows: Rows,
    topology: Topology,
    /// Found when they are asked for.
    places: OnceLock<Vec<Place>>,
    /// What is known of the host, where this is its DPU.
    dpu: Option<Dpu>,
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

    /// This chassis' gateway routers as of the last [`Model::rebuild`].
    #[must_use]
    pub fn places(&self) -> &[Place] {
        self.places.get_or_init(|| topology::places(&self.rows))
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

    /// Takes what is known of the host: this is its DPU. The next [`Model::rebuild`] goes by it.
    pub fn set_dpu(&mut self, dpu: &Dpu) {
        if self.dpu.as_ref() != Some(dpu) {
            self.dpu = Some(dpu.clone());
        }
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
        let topology = match &self.dpu {
            Some(dpu) => topology::build_on_dpu(&self.rows, &self.incumbents, dpu),
            None => topology::build(&self.rows, &self.incumbents),
        };
        self.places = OnceLock::new();
        let changed = topology != self.topology;
        let bridges = self.rows.bridges.values();
        let bridges: BTreeSet<_> = bridges.map(|bridge| &bridge.name).collect();
        self.incumbents.retain(|bridge, _| bridges.contains(bridge));
        self.incumbents.extend(topology.incumbents());
        self.topology = topology;
        changed
    }

    /// What is wanted of every bridge: the groups' plans, and nothing of ours on the others.
    ///
    /// With a mark, uplinks are steered by it, where their bridges allow that.
    #[must_use]
    pub fn desired(&self, gates: Gates, install: Install, mark: Option<SteeringMark>) -> Desired {
        let alone = install == Install::Complete;
        self.plans(alone, |bridge| {
            let group = self.topology.group(bridge);
            group.map_or_else(
                || BridgePlan::empty(bridge),
                |group| {
                    let plan = plan(group, gates, install);
                    match self.mark_for(group, mark) {
                        Ok(Some(mark)) => plan.by_mark(group, mark),
                        Ok(None) | Err(_) => plan,
                    }
                },
            )
        })
    }

    /// The mark by which a group's uplink is steered; `None` = by headers, as is wanted.
    ///
    /// # Errors
    /// Says why it is steered by headers although a mark is wanted.
    pub fn mark_for(
        &self,
        group: &BridgeGroup,
        wanted: Option<SteeringMark>,
    ) -> Result<Option<SteeringMark>, NoMark> {
        plan::mark_for(group, self.topology.hardware_offload, wanted)
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

    /// A bridge that has gateway routers and no uplink can be neither observed nor steered, nor can one
    /// of a DPU that does not lead to its host. It must not keep the node's other bridges from it.
    ///
    /// # Errors
    /// Names the first bridge without uplink, where there is no other one; a representor may come.
    pub fn check_bridges(&self) -> Result<(), AgentError> {
        let lacks_uplink = |reason: &SkipReason| {
            matches!(
                reason,
                SkipReason::NoUplink
                    | SkipReason::OnlyRepresentors(_)
                    | SkipReason::UplinkIsRepresentor(_)
                    | SkipReason::UplinkMissing(_)
                    | SkipReason::UplinkInside(_)
                    | SkipReason::SeveralUplinks(_)
                    | SkipReason::BondedUplink(_)
            )
        };
        let is_fatal = self.topology.groups.is_empty();
        for skipped in &self.topology.skipped {
            if lacks_uplink(&skipped.reason) && is_fatal {
                return Err(AgentError::NoUplink {
                    bridge: skipped.object.to_string(),
                    reason: skipped.reason.clone(),
                });
            }
            let is_bridges = matches!(skipped.reason, SkipReason::NoRepresentor(_));
            if is_bridges || lacks_uplink(&skipped.reason) {
                tracing::warn!(bridge = %skipped.object, reason = %skipped.reason, "bridge is left out");
            }
        }
        for bridge in self.unknown_bridges() {
            tracing::warn!(%bridge, "a representor is named for a bridge that is not there (--host-representor)");
        }
        Ok(())
    }

    /// Bridges for which a representor of the host was named, and that are not there.
    pub fn unknown_bridges(&self) -> impl Iterator<Item = &Arc<str>> {
        let configured = self.dpu.iter();
        let named = configured.flat_map(|dpu| dpu.representors.configured().bridges());
        named.filter(|bridge| !self.rows.bridges.values().any(|it| it.name == **bridge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{Network, Node};

    fn model(networks: &[Network]) -> Model {
        let mut node = Node::default();
        node.map("physnet", "breth0");
        node.bridge("breth0", "eth0", &[]);
        node.map("net-br-up", "br-up");
        node.bridge("br-up", "eth1", &[("bridge-uplink", "gone")]);
        for network in networks {
            node.network(network);
        }
        let mut model = Model {
            rows: node.rows(),
            ..Model::default()
        };
        model.rebuild();
        model
    }

    #[test]
    fn with_hardware_offload_uplinks_are_steered_by_headers_and_without_by_mark_again() {
        let mut model = model(&[Network::default_network()]);
        let gates = Gates::new(true, true).unwrap();
        let flows = |model: &Model, mark| {
            let desired = model.desired(gates, Install::Overlay, mark);
            desired.bridges["breth0"].plan.flows.clone()
        };
        let mark = Some(SteeringMark::DEFAULT);
        let (by_header, by_mark) = (flows(&model, None), flows(&model, mark));
        assert_eq!(by_mark.len(), by_header.len() + 1);
        for (offload, expected) in [("true", &by_header), ("false", &by_mark)] {
            for root in model.rows.open_vswitch.values_mut() {
                root.other_config
                    .insert("hw-offload".into(), offload.into());
            }
            assert!(model.rebuild(), "it is another topology");
            assert_eq!(&flows(&model, mark), expected, "hw-offload={offload}");
        }
    }

    #[test]
    fn a_bridge_without_an_uplink_stops_the_agent_only_where_there_is_no_other_one() {
        let coral = Network::user_defined("coral", 6).on_uplink("br-up");
        let alone = model(std::slice::from_ref(&coral)).check_bridges();
        let message = alone.unwrap_err().to_string();
        assert!(message.starts_with("bridge br-up: "), "{message}");
        model(&[Network::default_network(), coral])
            .check_bridges()
            .unwrap();
    }
}
