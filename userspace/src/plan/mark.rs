//! Steering by the mark that the datapath sets, in the place of the frames' headers.

#[cfg(test)]
mod tests;

use std::{fmt, num::ParseIntError, ops::RangeInclusive, str::FromStr};

use serde::Serialize;

use super::{BridgePlan, COOKIE, STEERING_PRIORITY, design};
use crate::{
    openflow::{Action, Flow, Match},
    topology::BridgeGroup,
};

/// What the header flows of an uplink have where a flow above takes marked frames. OVN-Kubernetes has
/// nothing in table 0 between 50 and 99.
pub const UNMARKED_PRIORITY: u16 = 51;

/// By what the flows of an uplink tell frames to steer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SteeringMatch {
    /// Address, kind and type in the frame's own headers
    #[default]
    Header,
    /// The mark that the datapath sets, and headers where it has not
    Mark,
}

/// Marks that others use on a node with OVN-Kubernetes, where a frame that carries one is taken for
/// something else: numbers that are compared as a whole.
const TAKEN: [(RangeInclusive<u32>, &str); 5] = [
    (
        0x3f0..=0x3f0,
        "what leaves by the node's own address (EgressIP, EgressService)",
    ),
    (
        0x1000..=0x2000,
        "user-defined networks (4096 + the network's ID)",
    ),
    (50_000..=65_535, "EgressIP objects (50000 and up)"),
    (
        0x17_45ec..=0x17_45ec,
        "services with the internal traffic policy Local",
    ),
    (0..=0, "frames without a mark"),
];
/// Bits that kubelet and kube-proxy look at alone, whatever the others are: to masquerade, to drop.
const KUBERNETES_BITS: u32 = 0x4000 | 0x8000;

/// The mark (`skb->mark`) of frames to steer. It is matched in full: a partial mask would go into
/// every megaflow of the uplink, and take away their hardware offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringMark(u32);

/// A number that cannot be the mark of frames to steer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// Not a 32-bit number.
    #[error("a 32-bit number, decimal or 0x…, is wanted")]
    NotANumber(#[from] ParseIntError),
    /// OVN-Kubernetes gives it another meaning.
    #[error(
        "{mark:#x} marks {what} with OVN-Kubernetes: choose another one, such as {}",
        SteeringMark::DEFAULT
    )]
    Taken {
        /// The number.
        mark: u32,
        /// What it stands for.
        what: &'static str,
    },
    /// Kubernetes looks at some of its bits alone.
    #[error(
        "{mark:#x} has a bit of 0xc000, by which Kubernetes' own rules masquerade and drop: choose \
         another one, such as {}",
        SteeringMark::DEFAULT
    )]
    KubernetesBits {
        /// The number.
        mark: u32,
    },
}

impl SteeringMark {
    /// `ns` in ASCII, and 52 for the priority of the flow.
    pub const DEFAULT: Self = Self(0x6e73_0034);

    /// Takes a number that nobody else is known to use.
    ///
    /// # Errors
    /// Says who does.
    pub fn new(mark: u32) -> Result<Self, MarkError> {
        let taken = TAKEN.iter().find(|(range, _)| range.contains(&mark));
        match taken {
            Some((_, what)) => Err(MarkError::Taken { mark, what }),
            None if mark & KUBERNETES_BITS != 0 => Err(MarkError::KubernetesBits { mark }),
            None => Ok(Self(mark)),
        }
    }

    /// The number, host order.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for SteeringMark {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for SteeringMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for SteeringMark {
    /// As it is displayed.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for SteeringMark {
    type Err = MarkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.parse(),
        };
        Self::new(number?)
    }
}

/// Why the frames of a bridge are steered by their headers, though by mark was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMark {
    /// The switch reads frames ahead of tc.
    #[error(
        "its datapath type is {0}, which takes frames before a tc program can mark them: only the \
         kernel's datapath (system) sees marks"
    )]
    Datapath(String),
    /// The hardware forwards frames that no program sees.
    #[error(
        "Open vSwitch has other_config:hw-offload=true: frames that the hardware forwards are not \
         marked, and flows that match a mark are not offloaded"
    )]
    HardwareOffload,
}

/// The mark by which a group's uplink is steered, where `wanted` is one and its bridge allows it;
/// `None` = by headers, as is wanted.
///
/// # Errors
/// Says why it does not.
pub fn mark_for(
    group: &BridgeGroup,
    hardware_offload: bool,
    wanted: Option<SteeringMark>,
) -> Result<Option<SteeringMark>, NoMark> {
    if wanted.is_none() {
        return Ok(None);
    }
    if !matches!(&*group.datapath_type, "" | "system") {
        return Err(NoMark::Datapath(group.datapath_type.to_string()));
    }
    if hardware_offload {
        return Err(NoMark::HardwareOffload);
    }
    Ok(wanted)
}

impl BridgePlan {
    /// The same plan with one flow for all frames of the uplink that the datapath has marked, above
    /// those that match headers. These go on taking what is not marked: while there is no program,
    /// nothing is lost. A plan that steers nothing stays as it is.
    ///
    /// The mark is cleared first, so that neither the host nor OVN sees it.
    #[must_use]
    pub fn by_mark(mut self, group: &BridgeGroup, mark: SteeringMark) -> Self {
        let mut marked = None;
        for flow in &mut self.flows {
            if is_uplink_steering(flow, group) {
                flow.priority = UNMARKED_PRIORITY;
                marked.get_or_insert_with(|| flow.actions.clone());
            }
        }
        if let Some(actions) = marked {
            let matches = Match {
                in_port: Some(group.uplink.ofport.into()),
                pkt_mark: Some(mark.get()),
                ..Match::default()
            };
            let clear = Action::SetPktMark(0);
            let actions = std::iter::once(clear).chain(actions).collect();
            let flow = design::flow(0, STEERING_PRIORITY, matches, actions);
            self.flows.insert(0, flow);
        }
        self
    }
}

fn is_uplink_steering(flow: &Flow, group: &BridgeGroup) -> bool {
    flow.table == 0
        && flow.priority == STEERING_PRIORITY
        && flow.matches.in_port == Some(group.uplink.ofport.into())
}

/// The mark by which a bridge's uplink is steered, as an installed flow of ours tells.
#[must_use]
pub fn mark_of<'a>(
    flows: impl IntoIterator<Item = &'a Flow>,
    group: &BridgeGroup,
) -> Option<SteeringMark> {
    flows.into_iter().find_map(|flow| {
        let is_ours = flow.cookie == COOKIE && is_uplink_steering(flow, group);
        flow.matches.pkt_mark.filter(|_| is_ours).map(SteeringMark)
    })
}
