//! The one classifier.

use crate::{Decision, Frame, Kind, Notes, Verdict};

/// What the classifier must know of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The MAC address that every gateway router shares with the bridge.
    pub bridge_mac: [u8; 6],
    /// The gateway VLAN ID (1..=4094), if the node has one.
    pub gateway_vlan: Option<u16>,
}

/// Classifies one frame. Without a policy every decision is [`Decision::Undecided`].
#[inline(always)]
pub fn classify<F: Frame>(_frame: &F, _policy: Option<&Policy>) -> Verdict {
    Verdict {
        kind: Kind::NotNeighbour,
        decision: Decision::Undecided,
        notes: Notes(0),
    }
}
