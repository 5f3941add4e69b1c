//! Which frames a flow takes.

use std::{
    collections::BTreeSet,
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::Port;
use crate::ids::Mac;

/// What kind of frame a match is limited to: the keyword and the header fields that it stands for
/// (ovs-fields(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Ethernet type 0x0806.
    Arp,
    /// Ethernet type 0x0800.
    Ip,
    /// Ethernet type 0x86dd.
    Ipv6,
    /// Ethernet type 0x86dd and next header 58.
    Icmp6,
}

impl Protocol {
    /// The keyword in the syntax of ovs-ofctl(8).
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Ip => "ip",
            Self::Ipv6 => "ipv6",
            Self::Icmp6 => "icmp6",
        }
    }
}

/// The fields that a frame must have; an absent one matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Match {
    /// The port by which it came in.
    pub in_port: Option<Port>,
    /// The mark that the host's network stack gave it (`skb->mark`), in full.
    pub pkt_mark: Option<u32>,
    /// The VLAN of the outermost tag, 1..=4095.
    pub dl_vlan: Option<u16>,
    /// The Ethernet source.
    pub dl_src: Option<Mac>,
    /// The Ethernet destination.
    pub dl_dst: Option<Mac>,
    /// The kind of frame.
    pub protocol: Option<Protocol>,
    /// The ARP operation.
    pub arp_op: Option<u16>,
    /// The ARP target protocol address.
    pub arp_tpa: Option<Ipv4Addr>,
    /// The ICMPv6 type.
    pub icmpv6_type: Option<u8>,
    /// The target address of a Neighbor Solicitation or Advertisement.
    pub nd_target: Option<Ipv6Addr>,
    /// Fields that this program reads but never writes, as ovs-ofctl prints them.
    pub other: BTreeSet<Box<str>>,
}

impl Match {
    /// Whether every frame matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Match {
    /// Fields in the order of the design's flow tables: port, VLAN, addresses, kind, its fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = List { f, any: false };
        list.field("in_port=", self.in_port)?;
        list.field("pkt_mark=", self.pkt_mark.map(|mark| format!("{mark:#x}")))?;
        list.field("dl_vlan=", self.dl_vlan)?;
        list.field("dl_src=", self.dl_src)?;
        list.field("dl_dst=", self.dl_dst)?;
        list.field("", self.protocol.map(Protocol::keyword))?;
        list.field("arp_op=", self.arp_op)?;
        list.field("arp_tpa=", self.arp_tpa)?;
        list.field("icmpv6_type=", self.icmpv6_type)?;
        list.field("nd_target=", self.nd_target)?;
        for other in &self.other {
            list.field("", Some(other))?;
        }
        Ok(())
    }
}

struct List<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    any: bool,
}

impl List<'_, '_> {
    fn field(&mut self, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
        let Some(value) = value else {
            return Ok(());
        };
        let comma = if self.any { ", " } else { "" };
        self.any = true;
        write!(self.f, "{comma}{name}{value}")
    }
}
