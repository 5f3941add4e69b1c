//! What the eBPF programs and the agent agree upon: map keys and values and the settings that are
//! written before load. Every type is `repr(C)` without padding; a change of any layout, name or
//! number raises [`VERSION`].
#![cfg_attr(
    feature = "user",
    expect(unsafe_code, reason = "`aya::Pod` is an unsafe trait")
)]

use core::mem::{align_of, offset_of, size_of};

use crate::{Check, Decision, Kind, NodeAddresses, Notes, Policy, Validate};

/// The version of everything in this module, part of the pins' path.
pub const VERSION: u32 = 3;

/// Name of the counters' map.
pub const COUNTERS: &str = "COUNTERS";
/// Name of the map of failed checks.
pub const CHECKS: &str = "CHECKS";
/// Name of the settings' global; it holds the version, so that an object of another one is told by
/// not having it.
pub const SETTINGS: &str = "SETTINGS_V3";
const _: () = assert!(VERSION == 3, "the settings' name holds the version");
/// Name of the program for tc ingress.
pub const TC_INGRESS: &str = "tc_ingress";
/// Name of the program for XDP.
pub const XDP_INGRESS: &str = "xdp_ingress";

/// How many keys the counters' map has room for: one interface needs at most
/// [`KEYS_PER_INTERFACE`], and an object that plain bpftool or tc loaded may serve several.
pub const COUNTERS_MAX_ENTRIES: usize = 512;
/// The most keys that one interface and direction can have.
pub const KEYS_PER_INTERFACE: usize = (Kind::ALL.len() - 1) * Decision::ALL.len();
/// How many interfaces and directions the map of failed checks has room for.
pub const CHECKS_MAX_ENTRIES: usize = 64;

/// Which way the counted frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// From the interface into the node.
    Ingress = 0,
    /// From the node out of the interface; of a representor of the host, what the host sends, which
    /// the interface receives.
    Egress = 1,
}

impl Direction {
    /// The name in text and JSON output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    /// The direction of that number in a map key.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Ingress),
            1 => Some(Self::Egress),
            _ => None,
        }
    }
}

impl core::fmt::Display for Direction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// What one counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CounterKey {
    /// Index of the interface, in the network namespace that the program runs in.
    pub interface_index: u32,
    /// A [`Direction`].
    pub direction: u8,
    /// A [`Kind`], never [`Kind::NotNeighbour`].
    pub kind: u8,
    /// A [`Decision`].
    pub decision: u8,
    /// Zero.
    pub reserved: u8,
}

/// One CPU's share of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CounterValue {
    /// Frames.
    pub packets: u64,
    /// Their bytes from the Ethernet header on, a tag that was taken off counted in, FCS not.
    pub bytes: u64,
    /// When the last one was seen: ns since boot, time asleep not counted, to the kernel's tick
    /// (`CLOCK_MONOTONIC_COARSE`: a finer clock costs more than all the rest).
    pub last_seen_ns: u64,
}

/// Whose failed checks an entry counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CheckKey {
    /// Index of the interface, in the network namespace that the program runs in.
    pub interface_index: u32,
    /// A [`Direction`].
    pub direction: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

/// One CPU's share of the frames that failed a check, each by the [`Check`] of the note of its name;
/// a frame that failed several is counted in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CheckCounts {
    /// [`Notes::HOP_LIMIT_NOT_255`].
    pub hop_limit_not_255: u64,
    /// [`Notes::CODE_NOT_ZERO`].
    pub code_not_zero: u64,
    /// [`Notes::TOO_SHORT`].
    pub too_short: u64,
    /// [`Notes::MULTICAST_TARGET`].
    pub multicast_target: u64,
    /// [`Notes::FRAGMENTED_NDP`].
    pub fragmented_ndp: u64,
    /// [`Notes::SENDER_MAC_DIFFERS`].
    pub sender_mac_differs: u64,
    /// [`Notes::ODD_SENDER`].
    pub odd_sender: u64,
    /// [`Notes::NODE_ADDRESS_ANNOUNCED`].
    pub node_address_announced: u64,
    /// Frames that were dropped, each once.
    pub dropped: u64,
}

impl CheckCounts {
    /// The frames that failed a check.
    #[must_use]
    pub const fn failed(&self, check: Check) -> u64 {
        match check {
            Check::HopLimit => self.hop_limit_not_255,
            Check::Code => self.code_not_zero,
            Check::Length => self.too_short,
            Check::Target => self.multicast_target,
            Check::Fragment => self.fragmented_ndp,
            Check::SenderMac => self.sender_mac_differs,
            Check::Sender => self.odd_sender,
            Check::NodeAddress => self.node_address_announced,
        }
    }

    /// Counts one frame with these notes.
    ///
    /// Without branches, which would each double what the kernel's verifier has to look at.
    #[inline(always)]
    pub fn count(&mut self, notes: Notes, dropped: bool) {
        self.hop_limit_not_255 += notes.bit(Notes::HOP_LIMIT_NOT_255);
        self.code_not_zero += notes.bit(Notes::CODE_NOT_ZERO);
        self.too_short += notes.bit(Notes::TOO_SHORT);
        self.multicast_target += notes.bit(Notes::MULTICAST_TARGET);
        self.fragmented_ndp += notes.bit(Notes::FRAGMENTED_NDP);
        self.sender_mac_differs += notes.bit(Notes::SENDER_MAC_DIFFERS);
        self.odd_sender += notes.bit(Notes::ODD_SENDER);
        self.node_address_announced += notes.bit(Notes::NODE_ADDRESS_ANNOUNCED);
        self.dropped += u64::from(dropped);
    }

    /// Adds another CPU's share.
    pub const fn add(&mut self, other: &Self) {
        self.hop_limit_not_255 += other.hop_limit_not_255;
        self.code_not_zero += other.code_not_zero;
        self.too_short += other.too_short;
        self.multicast_target += other.multicast_target;
        self.fragmented_ndp += other.fragmented_ndp;
        self.sender_mac_differs += other.sender_mac_differs;
        self.odd_sender += other.odd_sender;
        self.node_address_announced += other.node_address_announced;
        self.dropped += other.dropped;
    }
}

/// Read-only settings of one load. All zero: no policy, no tag, ingress, failed checks counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// [`Policy::bridge_mac`].
    pub bridge_mac: [u8; 6],
    /// [`Policy::gateway_vlan`], host order; 0 for none.
    pub gateway_vlan: u16,
    /// 1 when the two fields above are a policy; 0 when the program is to decide nothing.
    pub policy_set: u8,
    /// 1 when `skb->mark` is to be set to `tag` + decision.
    pub tag_set: u8,
    /// A [`Direction`].
    pub direction: u8,
    /// A [`Validate`].
    pub validate: u8,
    /// What the decision's number is added to.
    pub tag: u32,
    /// What `skb->mark` of frames to steer is set to, and of no others; 0 for none.
    pub steering_mark: u32,
    /// [`Policy::node_addresses`].
    pub node_addresses: NodeAddresses,
}

impl Settings {
    /// Settings for a direction, a policy and a tag, each of the latter two where there is one, and
    /// for what is done about failed checks.
    #[must_use]
    pub fn new(
        direction: Direction,
        policy: Option<&Policy>,
        tag: Option<u32>,
        validate: Validate,
    ) -> Self {
        let node_addresses = policy.map_or(NodeAddresses::NONE, |policy| policy.node_addresses);
        Self {
            bridge_mac: policy.map_or([0; 6], |policy| policy.bridge_mac),
            gateway_vlan: policy.and_then(|policy| policy.gateway_vlan).unwrap_or(0),
            policy_set: u8::from(policy.is_some()),
            tag_set: u8::from(tag.is_some()),
            direction: direction as u8,
            validate: validate as u8,
            tag: tag.unwrap_or(0),
            steering_mark: 0,
            node_addresses,
        }
    }

    /// The same settings, with a mark for frames to steer where there is one.
    #[must_use]
    pub fn with_steering_mark(self, mark: Option<u32>) -> Self {
        Self {
            steering_mark: mark.unwrap_or(0),
            ..self
        }
    }

    /// The policy that these settings hold, if any.
    #[inline(always)]
    #[must_use]
    pub const fn policy(&self) -> Option<Policy> {
        if self.policy_set == 0 {
            return None;
        }
        Some(Policy {
            bridge_mac: self.bridge_mac,
            gateway_vlan: if self.gateway_vlan == 0 {
                None
            } else {
                Some(self.gateway_vlan)
            },
            node_addresses: self.node_addresses,
        })
    }
}

/// What the test programs say of the last frame that they saw on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ObservedVerdict {
    /// Frames so far.
    pub frames: u64,
    /// The last one's verdict, packed by [`Verdict::pack`](crate::Verdict::pack).
    pub verdict: u32,
    /// The last one's length in bytes, as it is counted.
    pub length: u32,
}

// No padding: the sum of the fields is the size.
const _: () = {
    assert!(size_of::<CounterKey>() == 8 && align_of::<CounterKey>() == 4);
    assert!(offset_of!(CounterKey, direction) == 4);
    assert!(offset_of!(CounterKey, kind) == 5);
    assert!(offset_of!(CounterKey, decision) == 6);
    assert!(offset_of!(CounterKey, reserved) == 7);
    assert!(size_of::<CounterValue>() == 24 && align_of::<CounterValue>() == 8);
    assert!(offset_of!(CounterValue, bytes) == 8);
    assert!(offset_of!(CounterValue, last_seen_ns) == 16);
    assert!(size_of::<ObservedVerdict>() == 16 && align_of::<ObservedVerdict>() == 8);
    assert!(size_of::<Settings>() == 56 && align_of::<Settings>() == 4);
    assert!(offset_of!(Settings, gateway_vlan) == 6);
    assert!(offset_of!(Settings, policy_set) == 8);
    assert!(offset_of!(Settings, tag_set) == 9);
    assert!(offset_of!(Settings, direction) == 10);
    assert!(offset_of!(Settings, validate) == 11);
    assert!(offset_of!(Settings, tag) == 12);
    assert!(offset_of!(Settings, steering_mark) == 16);
    assert!(offset_of!(Settings, node_addresses) == 20);
    assert!(size_of::<NodeAddresses>() == 4 + 16 * NodeAddresses::IPV6);
    assert!(size_of::<CheckKey>() == 8 && align_of::<CheckKey>() == 4);
    assert!(size_of::<CheckCounts>() == 8 * (Check::ALL.len() + 1));
    assert!(KEYS_PER_INTERFACE <= COUNTERS_MAX_ENTRIES);
};

#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for CounterKey {}
#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for CounterValue {}
#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for CheckKey {}
#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for CheckCounts {}
#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for Settings {}
#[cfg(feature = "user")]
// SAFETY: `repr(C)`, integers only, no padding (asserted above).
unsafe impl aya::Pod for ObservedVerdict {}
