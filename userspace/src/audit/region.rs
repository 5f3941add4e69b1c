//! Sets of frames, and which of them a match takes.

use crate::{
    ids::Mac,
    openflow::{Match, Port, Protocol},
};

/// Frames that have the same values in some fields. A field without a value may hold anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Region {
    /// The fields; `other` holds what is only known as text.
    pub(super) fields: Match,
    /// Whether the destination has the group bit. `fields.dl_dst` may name it besides.
    pub(super) multicast: bool,
}

impl Region {
    /// The frames of the set that a match takes, as far as can be told: where a field of the match
    /// is only known as text, frames are kept rather than lost. `None` where there are none.
    pub(super) fn intersect(&self, matches: &Match) -> Option<Self> {
        if matches.other.iter().any(|text| self.is_without(text)) {
            return None;
        }
        let own = &self.fields;
        let dl_dst = meet(own.dl_dst, matches.dl_dst)?;
        if self.multicast && dl_dst.is_some_and(|mac| !mac.is_multicast()) {
            return None;
        }
        let mut other = own.other.clone();
        other.extend(matches.other.iter().cloned());
        Some(Self {
            fields: Match {
                in_port: meet(own.in_port, matches.in_port)?,
                pkt_mark: meet(own.pkt_mark, matches.pkt_mark)?,
                dl_vlan: meet(own.dl_vlan, matches.dl_vlan)?,
                dl_src: meet(own.dl_src, matches.dl_src)?,
                dl_dst,
                protocol: meet_protocol(own.protocol, matches.protocol)?,
                arp_op: meet(own.arp_op, matches.arp_op)?,
                arp_tpa: meet(own.arp_tpa, matches.arp_tpa)?,
                icmpv6_type: meet(own.icmpv6_type, matches.icmpv6_type)?,
                nd_target: meet(own.nd_target, matches.nd_target)?,
                other,
            },
            multicast: self.multicast,
        })
    }

    /// Whether a match takes every frame of the set. Where a field is only known as text and the set
    /// was not made with the very same one, the answer is no.
    pub(super) fn is_covered_by(&self, matches: &Match) -> bool {
        let own = &self.fields;
        let protocol = match matches.protocol {
            Some(Protocol::Ipv6) => {
                matches!(own.protocol, Some(Protocol::Ipv6 | Protocol::Icmp6))
            }
            wanted => wanted.is_none() || own.protocol == wanted,
        };
        let texts = |text: &str| own.other.contains(text) || self.is_within(text);
        protocol
            && is_met(own.in_port, matches.in_port)
            && is_met(own.pkt_mark, matches.pkt_mark)
            && is_met(own.dl_vlan, matches.dl_vlan)
            && is_met(own.dl_src, matches.dl_src)
            && is_met(own.dl_dst, matches.dl_dst)
            && is_met(own.arp_op, matches.arp_op)
            && is_met(own.arp_tpa, matches.arp_tpa)
            && is_met(own.icmpv6_type, matches.icmpv6_type)
            && is_met(own.nd_target, matches.nd_target)
            && matches.other.iter().all(|text| texts(text))
    }

    /// Whether no frame of the set has a field that is only known as text.
    fn is_without(&self, text: &str) -> bool {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match name {
            // A port that no frame comes in by, such as CONTROLLER.
            "in_port" => true,
            "dl_dst" | "eth_dst" => {
                masked_mac(value).is_some_and(|(wanted, mask)| match self.fields.dl_dst {
                    Some(mac) => apply(mac, mask) != apply(wanted, mask),
                    None => self.multicast && mask.is_multicast() && !wanted.is_multicast(),
                })
            }
            // Without a tag.
            "vlan_tci" if value == "0x0000/0x1fff" || value == "0x0000/0x1000" => {
                self.fields.dl_vlan.is_some()
            }
            "dl_type" | "eth_type" => self.fields.protocol.is_some(),
            "nw_proto" | "ip_proto" => {
                self.is_neighbour()
                    && !(value == "58" && self.fields.protocol != Some(Protocol::Arp))
            }
            // Nobody connects to a group.
            "tcp" | "tcp6" | "sctp" | "sctp6" if self.multicast => true,
            _ => is_other_protocol(name) && self.is_neighbour(),
        }
    }

    /// Whether every frame of the set has a field that is only known as text.
    fn is_within(&self, text: &str) -> bool {
        let Some(("dl_dst" | "eth_dst", value)) = text.split_once('=') else {
            return false;
        };
        masked_mac(value).is_some_and(|(wanted, mask)| match self.fields.dl_dst {
            Some(mac) => apply(mac, mask) == apply(wanted, mask),
            None => self.multicast && mask == GROUP_BIT && wanted.is_multicast(),
        })
    }

    fn is_neighbour(&self) -> bool {
        matches!(self.fields.protocol, Some(Protocol::Arp | Protocol::Icmp6))
    }

    /// The port that the frames come in by.
    pub(super) fn in_port(&self) -> Option<Port> {
        self.fields.in_port
    }
}

const GROUP_BIT: Mac = Mac([1, 0, 0, 0, 0, 0]);

/// Keywords that stand for frames which are neither ARP nor ICMPv6 (ovs-fields(7)).
fn is_other_protocol(keyword: &str) -> bool {
    const KEYWORDS: [&str; 11] = [
        "tcp", "tcp6", "udp", "udp6", "sctp", "sctp6", "icmp", "rarp", "mpls", "mplsm", "nsh",
    ];
    KEYWORDS.contains(&keyword)
}

/// What both allow; `None` where they contradict each other.
fn meet<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => Some(one.or(other)),
    }
}

fn meet_protocol(one: Option<Protocol>, other: Option<Protocol>) -> Option<Option<Protocol>> {
    match (one, other) {
        (Some(Protocol::Ipv6), Some(Protocol::Icmp6))
        | (Some(Protocol::Icmp6), Some(Protocol::Ipv6)) => Some(Some(Protocol::Icmp6)),
        _ => meet(one, other),
    }
}

fn is_met<T: PartialEq>(own: Option<T>, wanted: Option<T>) -> bool {
    wanted.is_none() || own == wanted
}

fn masked_mac(text: &str) -> Option<(Mac, Mac)> {
    let (value, mask) = text.split_once('/')?;
    Some((value.parse().ok()?, mask.parse().ok()?))
}

fn apply(Mac(mut bytes): Mac, Mac(mask): Mac) -> [u8; 6] {
    for (byte, mask) in bytes.iter_mut().zip(mask) {
        *byte &= mask;
    }
    bytes
}
