//! Fields and actions that this program never writes, in the syntax of ovs-ofctl(8) where they are
//! well known, for people to read. Others show their numbers and bytes.

use std::{
    fmt::Write as _,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::convert::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use crate::{
    ids::Mac,
    openflow::wire::{Action, Instruction, Oxm, PortNumber, RawOxm},
};

/// The keyword that stands for an Ethernet type, with an IP protocol or without, where this program
/// has no type for it.
pub(super) fn protocol_keyword(
    ethertype: Option<u16>,
    ip_proto: Option<u8>,
) -> Option<&'static str> {
    const ETHERTYPE_RARP: u16 = 0x8035;
    Some(match (ethertype?, ip_proto) {
        (ETHERTYPE_RARP, None) => "rarp",
        (ETHERTYPE_IPV4, Some(1)) => "icmp",
        (ETHERTYPE_IPV4, Some(6)) => "tcp",
        (ETHERTYPE_IPV4, Some(17)) => "udp",
        (ETHERTYPE_IPV4, Some(132)) => "sctp",
        (ETHERTYPE_IPV6, Some(6)) => "tcp6",
        (ETHERTYPE_IPV6, Some(17)) => "udp6",
        (ETHERTYPE_IPV6, Some(132)) => "sctp6",
        _ => return None,
    })
}

/// A field as `name=value` or `name=value/mask`.
pub(super) fn field(field: &Oxm) -> String {
    match field {
        Oxm::InPort(port) => format!("in_port={port}"),
        Oxm::PktMark(mark) => format!("pkt_mark={mark:#x}"),
        Oxm::EthDst(mac) => format!("dl_dst={mac}"),
        Oxm::EthSrc(mac) => format!("dl_src={mac}"),
        Oxm::EthType(ethertype) => format!("dl_type={ethertype:#06x}"),
        Oxm::VlanVid(0) => "vlan_tci=0x0000/0x1fff".to_owned(),
        Oxm::VlanVid(vid) => format!("vlan_vid={vid:#x}"),
        Oxm::IpProto(protocol) => format!("nw_proto={protocol}"),
        Oxm::ArpOp(operation) => format!("arp_op={operation}"),
        Oxm::ArpSpa(address) => format!("arp_spa={address}"),
        Oxm::ArpTpa(address) => format!("arp_tpa={address}"),
        Oxm::Icmpv6Type(kind) => format!("icmpv6_type={kind}"),
        Oxm::NdTarget(address) => format!("nd_target={address}"),
        Oxm::Other(raw) => raw_field(raw),
    }
}

fn raw_field(raw: &RawOxm) -> String {
    let (name, format) = name_and_format(raw);
    let (value, mask) = raw.value_and_mask();
    let mut text = format!("{name}={}", format.show(value));
    if let Some(mask) = mask {
        match format.prefix(mask) {
            Some(prefix) => write!(text, "/{prefix}"),
            None => write!(text, "/{}", format.show_mask(mask)),
        }
        .unwrap_or_default();
    }
    text
}

#[derive(Clone, Copy)]
enum Format {
    Decimal,
    Hex,
    Ethernet,
    Ipv4,
    Ipv6,
    Port,
}

impl Format {
    fn show(self, bytes: &[u8]) -> String {
        match self {
            Self::Decimal => unsigned(bytes).map(|number| number.to_string()),
            Self::Hex => None,
            Self::Ethernet => bytes.try_into().ok().map(|mac| Mac(mac).to_string()),
            Self::Ipv4 => ipv4(bytes).map(|address| address.to_string()),
            Self::Ipv6 => ipv6(bytes).map(|address| address.to_string()),
            Self::Port => unsigned(bytes)
                .and_then(|number| u32::try_from(number).ok())
                .map(|number| PortNumber(number).to_string()),
        }
        .unwrap_or_else(|| hex(bytes))
    }

    fn show_mask(self, bytes: &[u8]) -> String {
        match self {
            Self::Decimal | Self::Port => hex(bytes),
            _ => self.show(bytes),
        }
    }

    /// The prefix length that an address's mask stands for.
    fn prefix(self, mask: &[u8]) -> Option<u32> {
        let (ones, length) = match self {
            Self::Ipv4 => {
                let mask = u32::from(ipv4(mask)?);
                (mask.leading_ones(), mask.count_ones())
            }
            Self::Ipv6 => {
                let mask = u128::from(ipv6(mask)?);
                (mask.leading_ones(), mask.count_ones())
            }
            _ => return None,
        };
        (ones == length).then_some(ones)
    }
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| {
        bytes
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    })
}

fn ipv4(bytes: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from)
}

fn ipv6(bytes: &[u8]) -> Option<Ipv6Addr> {
    <[u8; 16]>::try_from(bytes).ok().map(Ipv6Addr::from)
}

/// `0x` and the digits without leading zeros.
fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    let digits = digits.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

/// Names of ovs-fields(7), by class and number.
fn name_and_format(raw: &RawOxm) -> (String, Format) {
    let (name, format) = match (raw.class(), raw.number()) {
        (0x8000, 0) => ("in_port", Format::Port),
        (0x8000, 2) => ("metadata", Format::Hex),
        (0x8000, 3) => ("dl_dst", Format::Ethernet),
        (0x8000, 4) => ("dl_src", Format::Ethernet),
        (0x8000, 6) => ("vlan_vid", Format::Hex),
        (0x8000, 7) => ("dl_vlan_pcp", Format::Decimal),
        (0x8000, 8) => ("ip_dscp", Format::Decimal),
        (0x8000, 9) => ("nw_ecn", Format::Decimal),
        (0x8000, 11) => ("nw_src", Format::Ipv4),
        (0x8000, 12) => ("nw_dst", Format::Ipv4),
        (0x8000, 13 | 15 | 17) => ("tp_src", Format::Decimal),
        (0x8000, 14 | 16 | 18) => ("tp_dst", Format::Decimal),
        (0x8000, 19) => ("icmp_type", Format::Decimal),
        (0x8000, 20) => ("icmp_code", Format::Decimal),
        (0x8000, 22) => ("arp_spa", Format::Ipv4),
        (0x8000, 23) => ("arp_tpa", Format::Ipv4),
        (0x8000, 24) => ("arp_sha", Format::Ethernet),
        (0x8000, 25) => ("arp_tha", Format::Ethernet),
        (0x8000, 26) => ("ipv6_src", Format::Ipv6),
        (0x8000, 27) => ("ipv6_dst", Format::Ipv6),
        (0x8000, 28) => ("ipv6_label", Format::Hex),
        (0x8000, 30) => ("icmpv6_code", Format::Decimal),
        (0x8000, 31) => ("nd_target", Format::Ipv6),
        (0x8000, 32) => ("nd_sll", Format::Ethernet),
        (0x8000, 33) => ("nd_tll", Format::Ethernet),
        (0x8000, 38) => ("tun_id", Format::Hex),
        (0x0001, register @ 0..=15) => return (format!("reg{register}"), Format::Hex),
        (0x0001, 26) => ("ip_frag", Format::Hex),
        (0x0001, 29) => ("nw_ttl", Format::Decimal),
        (0x0001, 33) => ("pkt_mark", Format::Hex),
        (0x0001, 105) => ("ct_state", Format::Hex),
        (0x0001, 106) => ("ct_zone", Format::Decimal),
        (0x0001, 107) => ("ct_mark", Format::Hex),
        (0x0001, 108) => ("ct_label", Format::Hex),
        (class, number) => return (format!("oxm({class:#06x},{number})"), Format::Hex),
    };
    (name.to_owned(), format)
}

/// An action that has no type of its own.
pub(super) fn action(action: &Action) -> String {
    match action {
        Action::Output {
            port: PortNumber::CONTROLLER,
            max_len,
        } => format!("CONTROLLER:{max_len}"),
        Action::Output { port, .. } if port.is_reserved() => port.to_string(),
        Action::Output { port, .. } => format!("output:{port}"),
        Action::PushVlan(ethertype) => format!("push_vlan:{ethertype:#06x}"),
        Action::PopVlan => "pop_vlan".to_owned(),
        Action::Group(group) => format!("group:{group}"),
        Action::SetField(set) => {
            if let Oxm::VlanVid(vid) = set {
                return format!("set_field:{vid}->vlan_vid");
            }
            let text = field(set);
            let (name, value) = text.split_once('=').unwrap_or(("field", &text));
            format!("set_field:{value}->{name}")
        }
        Action::Other { kind, body } => format!("action({kind},{})", hex(body)),
    }
}

/// An instruction other than apply-actions.
pub(super) fn instruction(instruction: &Instruction) -> String {
    match instruction {
        Instruction::GotoTable(table) => format!("goto_table:{table}"),
        Instruction::Other { kind, body } => format!("instruction({kind},{})", hex(body)),
        Instruction::Apply(actions) => {
            let actions: Vec<String> = actions.iter().map(action).collect();
            format!("apply_actions({})", actions.join(","))
        }
    }
}
