//! Frames and policies for property tests, biased to what hosts rarely send.
//!
//! Addresses and VLAN IDs come from small sets, so that they meet; every field of a header is right
//! most of the time, so that the odd one is seen alone; in the end some frames are cut short, have
//! bits flipped, or are noise from the start.

mod arp;
mod ipv6;
mod link;

use std::{fmt, net::IpAddr};

use neighsteer_common::{NodeAddresses, OuterTag, Policy};
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::frames::{BRIDGE_MAC, EthernetFrame, HOST_IP, HOST_IP6, Mac, NODE_IP, NODE_IP6, hex};

/// What one call of the classifier gets.
#[derive(Clone, PartialEq, Eq)]
pub struct Case {
    /// The frame, less the outer tag.
    pub frame: Vec<u8>,
    /// A tag beside the frame.
    pub outer_tag: Option<OuterTag>,
    /// What the classifier knows of the bridge.
    pub policy: Policy,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("frame", &format_args!("{}", hex(&self.frame)))
            .field("outer_tag", &self.outer_tag)
            .field("bridge_mac", &Mac(self.policy.bridge_mac))
            .field("gateway_vlan", &self.policy.gateway_vlan)
            .finish()
    }
}

impl Case {
    /// The frame with the outer tag back in it, as it was on the wire. A frame that ends before the
    /// place of a tag has none.
    #[must_use]
    pub fn on_the_wire(&self) -> Vec<u8> {
        match (self.outer_tag, self.frame.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => [
                addresses,
                &tag.tpid.to_be_bytes(),
                &tag.tci.to_be_bytes(),
                rest,
            ]
            .concat(),
            _ => self.frame.clone(),
        }
    }
}

/// A frame, a policy, and, one time in four, a tag beside the frame.
pub fn case() -> impl Strategy<Value = Case> {
    (frame().boxed(), link::outer_tag().boxed(), policy().boxed()).prop_map(
        |(frame, outer_tag, policy)| Case {
            frame,
            outer_tag,
            policy,
        },
    )
}

/// The bridge's MAC address mostly, no gateway VLAN or one that the frames use.
pub fn policy() -> impl Strategy<Value = Policy> {
    let bridge_mac = prop_oneof![
        9 => Just(BRIDGE_MAC.0),
        1 => any::<[u8; 6]>().prop_map(|mut mac| { mac[0] &= 0xfe; mac }),
    ];
    let gateway_vlan = prop_oneof![
        5 => Just(None),
        4 => Just(Some(link::VLAN)),
        1 => (1..=4094u16).prop_map(Some),
    ];
    (bridge_mac, gateway_vlan, node_addresses()).prop_map(
        |(bridge_mac, gateway_vlan, node_addresses)| Policy {
            bridge_mac,
            gateway_vlan,
            node_addresses,
        },
    )
}

/// None, or those that the frames use.
fn node_addresses() -> impl Strategy<Value = NodeAddresses> {
    let addresses: [IpAddr; 4] = [
        NODE_IP.into(),
        HOST_IP.into(),
        NODE_IP6.into(),
        HOST_IP6.into(),
    ];
    prop::sample::subsequence(addresses.to_vec(), 0..=addresses.len())
        .prop_map(NodeAddresses::from_iter)
}

/// The bytes of a frame, at most some 3,000: the kernel's test run takes no more in one page.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        30 => (structured().boxed(), spoilage().boxed()).prop_map(|(frame, spoilage)| {
            let mut bytes = frame.to_bytes();
            bytes.truncate(3_000);
            spoilage.apply(bytes)
        }),
        1 => vec(any::<u8>(), 0..128),
    ]
}

/// A frame whose layers are in order, whatever they say.
fn structured() -> impl Strategy<Value = EthernetFrame> {
    let body = prop_oneof![
        4 => arp::body().boxed(),
        8 => ipv6::packet().boxed(),
        1 => (any::<u16>(), vec(any::<u8>(), 0..64))
            .prop_map(|(ethertype, bytes)| link::Body { ethertype, bytes }),
    ];
    (link::header().boxed(), body).prop_map(|(header, body)| header.around(body))
}

/// What happens to a frame on its way.
#[derive(Clone, Debug)]
enum Spoilage {
    None,
    Cut(Index),
    Flip(Vec<Index>),
    Pad(usize),
}

fn spoilage() -> impl Strategy<Value = Spoilage> {
    prop_oneof![
        14 => Just(Spoilage::None),
        3 => any::<Index>().prop_map(Spoilage::Cut),
        4 => vec(any::<Index>(), 1..4).prop_map(Spoilage::Flip),
        2 => (1..64usize).prop_map(Spoilage::Pad),
    ]
}

impl Spoilage {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::None => {}
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Flip(bits) => {
                for bit in bits {
                    // Half of the flips hit the headers, however long the frame is.
                    let reach = bytes
                        .len()
                        .min(if bits.len() % 2 == 0 { 80 } else { usize::MAX });
                    if reach > 0 {
                        let at = bit.index(reach * 8);
                        bytes[at / 8] ^= 1 << (at % 8);
                    }
                }
            }
            Self::Pad(count) => bytes.resize(bytes.len() + count, 0),
        }
        bytes
    }
}
