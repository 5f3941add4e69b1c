//! What tc can do for an uplink, and where it cannot: steering by mark, and dropping.

use neighsteer_common::Validate;

use super::{AgentConfig, AgentError, model::Model};
use crate::{
    datapath::Hook,
    plan::{NoMark, SteeringMark},
    topology::BridgeGroup,
};

/// The mark that is wanted now, if any.
#[derive(Clone, Copy, Debug)]
pub struct Marks(Option<SteeringMark>);

impl Marks {
    /// With the gate off, or while the agent is paused, no flow of ours would take a mark off again:
    /// then there is none.
    #[must_use]
    pub fn of(config: &AgentConfig, paused: bool) -> Self {
        let steers = config.gates.steering() && !paused;
        Self(config.steering_mark.filter(|_| steers))
    }

    /// The mark of one group's uplink; `None` = it is steered by headers, as is wanted.
    ///
    /// # Errors
    /// Says why it is steered by headers although a mark is wanted.
    pub fn of_group(
        self,
        model: &Model,
        group: &BridgeGroup,
    ) -> Result<Option<SteeringMark>, NoMark> {
        model.mark_for(group, self.0)
    }
}

/// At start a bridge that cannot be steered by mark is refused, where that was asked for: somebody is
/// there to read it. Later it is steered by headers, which a warning and `status` say: to stop would
/// lose more than the mark is worth.
///
/// # Errors
/// Names the first such bridge, and the reason.
pub fn refuse_unmarkable(model: &Model, config: &AgentConfig) -> Result<(), AgentError> {
    let marks = Marks::of(config, false);
    for group in &model.topology().groups {
        marks
            .of_group(model, group)
            .map_err(|reason| AgentError::NoMark {
                bridge: group.bridge.to_string(),
                reason,
            })?;
    }
    Ok(())
}

/// Why frames of a group's uplink reach the bridge that are to be dropped before; `None` = they do not,
/// or none is to be dropped.
#[must_use]
pub fn drops_in_vain(group: &BridgeGroup, config: &AgentConfig) -> Option<&'static str> {
    let in_tc = config.validate == Validate::Drop && config.hook == Some(Hook::Tc);
    let is_netdev = !matches!(&*group.datapath_type, "" | "system");
    (in_tc && is_netdev).then_some(
        "its datapath (netdev) takes frames before tc: invalid ones are counted as dropped and reach it \
         all the same; use --datapath xdp",
    )
}

/// At start somebody is there to read it; later `status` says it.
pub fn warn_of_drops_in_vain(model: &Model, config: &AgentConfig) {
    for group in &model.topology().groups {
        if let Some(reason) = drops_in_vain(group, config) {
            tracing::warn!(bridge = %group.bridge, reason, "invalid frames are not kept from a bridge");
        }
    }
}
