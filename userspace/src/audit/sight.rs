//! Who sees a frame, and whether the flow table does what the classifier says.

use std::{fmt, sync::Arc};

use neighsteer_common::Decision;
use serde::Serialize;

use super::{PortNames, Translation, translation::Step};
use crate::{openflow::Port, plan::is_steering_priority, topology::BridgeGroup};

/// A gateway router, or a network behind another patch port, that a frame gets to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sight {
    /// The router; `None` behind a port that is no gateway router's.
    pub router: Option<Arc<str>>,
    /// Whether it is the group's source.
    pub is_source: bool,
    /// The patch port on the bridge, or what is known of the way.
    pub port: Arc<str>,
    /// Lookups behind the port.
    pub lookups: usize,
    /// Whether a binding is learned from the frame there.
    pub learns: bool,
    /// Whether the limit of lookups cut its way short.
    pub cut_off: bool,
}

/// Who is behind the patch ports that a frame went out by, in that order. A frame that is dropped at
/// the door (another VLAN's, or by the limit of lookups) is seen by nobody there.
#[must_use]
pub fn sights(group: &BridgeGroup, names: &PortNames, translation: &Translation) -> Vec<Sight> {
    let mut sights: Vec<Sight> = Vec::new();
    let mut inside = false;
    for visit in &translation.visits {
        let goes_on = visit.steps.len() > 1;
        if visit.depth != 1 {
            // Further bridges behind the first are part of the same way.
            if let (true, true, Some(sight)) = (inside, visit.depth > 1, sights.last_mut()) {
                sight.lookups += visit.steps.len();
                sight.learns |= visit.to_controller > 0;
                sight.cut_off |= visit.cut_off;
            }
            continue;
        }
        inside = goes_on;
        if !goes_on {
            continue;
        }
        let peer = visit.in_port.as_deref().unwrap_or("?");
        let port = names.behind(peer).map_or_else(
            || format!("{} of {}", peer, visit.bridge).into(),
            Arc::clone,
        );
        let mut routers = std::iter::once(&group.source).chain(&group.followers);
        let router = routers.find(|router| router.patch_port == port);
        sights.push(Sight {
            router: router.map(|it| Arc::clone(&it.name)),
            is_source: router.is_some_and(|it| it.name == group.source.name),
            port,
            lookups: visit.steps.len(),
            learns: visit.to_controller > 0,
            cut_off: visit.cut_off,
        });
    }
    sights
}

/// Where the classifier and the flow table do not agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "disagreement", rename_all = "kebab-case")]
pub enum Disagreement {
    /// A frame to steer that no steering flow takes.
    NotSteered {
        /// What the classifier decides.
        decision: &'static str,
        /// The priority of the flow that takes it, if one does.
        priority: Option<u16>,
        /// Whether the bridge has no steering flow at all.
        none_installed: bool,
    },
    /// A frame that is not to be steered and that a steering flow takes.
    Steered {
        /// What the classifier decides.
        decision: &'static str,
    },
    /// A frame that followers see, though it is to be steered or flooded.
    SeenByFollowers {
        /// How many do.
        followers: usize,
    },
    /// A steered frame that the source does not see.
    NotSeenBySource,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSteered {
                decision,
                none_installed: true,
                ..
            } => write!(
                f,
                "the classifier says {decision}, and the bridge has no steering flow"
            ),
            Self::NotSteered {
                decision,
                priority: Some(priority),
                ..
            } => write!(
                f,
                "the classifier says {decision}, and a flow of priority {priority} takes the frame"
            ),
            Self::NotSteered { decision, .. } => write!(
                f,
                "the classifier says {decision}, and no flow takes the frame"
            ),
            Self::Steered { decision } => write!(
                f,
                "the classifier says {decision}, and a steering flow takes the frame"
            ),
            Self::SeenByFollowers { followers } => {
                write!(f, "no follower should see the frame, and {followers} do")
            }
            Self::NotSeenBySource => f.write_str("the source does not see the frame"),
        }
    }
}

/// What was asked and what was found about one frame.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The bridge's group.
    pub group: &'a BridgeGroup,
    /// The port that the frame comes in by.
    pub in_port: Port,
    /// What the classifier decides.
    pub decision: Decision,
    /// Whether the frame is in a VLAN, as its tag says.
    pub is_tagged: bool,
    /// Whether any steering flow is installed.
    pub is_steered: bool,
}

/// Compares the decision with the flows that a frame took. Of a frame that comes in by another port
/// than an ingress port the design says nothing.
#[must_use]
pub fn disagreements(
    question: Question<'_>,
    translation: &Translation,
    sights: &[Sight],
) -> Vec<Disagreement> {
    let Question {
        group, decision, ..
    } = question;
    let mut ingress = group.ingress_ports();
    if !ingress.any(|port| question.in_port == Port::Number(port.ofport)) {
        return Vec::new();
    }
    let first = translation.visits.first().and_then(|it| it.steps.first());
    let takes = first.is_some_and(is_steering);
    let mut found = Vec::new();
    match (decision.is_steered(), takes) {
        (true, false) => found.push(Disagreement::NotSteered {
            decision: decision.name(),
            priority: first.and_then(|step| step.priority),
            none_installed: !question.is_steered,
        }),
        (false, true) => found.push(Disagreement::Steered {
            decision: decision.name(),
        }),
        _ => {}
    }
    if decision.is_steered() || decision == Decision::Flood {
        let routers = sights.iter().filter(|it| it.router.is_some());
        let followers = routers.filter(|it| !it.is_source).count();
        if followers > 0 {
            found.push(Disagreement::SeenByFollowers { followers });
        }
        // Without a gateway VLAN the flows steer frames of any VLAN, and the integration bridge takes
        // untagged ones alone from a localnet port without a tag.
        let is_dropped = question.is_tagged && group.gateway_vlan.is_none();
        if decision.is_steered() && !is_dropped && !sights.iter().any(|it| it.is_source) {
            found.push(Disagreement::NotSeenBySource);
        }
    }
    found
}

fn is_steering(step: &Step) -> bool {
    step.table == 0 && step.priority.is_some_and(is_steering_priority)
}
