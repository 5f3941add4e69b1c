//! Flows as this program has them, to and from OpenFlow's fields and actions.

#[cfg(test)]
mod tests;

use super::text;
use crate::{
    ids::OfPort,
    openflow::{
        Action, Cookie, Flow, InstalledFlow, Match, Port, Protocol,
        wire::{
            self, FlowCommand, FlowMod, FlowStats, Instruction, MonitoredFlow, Oxm, PortNumber,
            VLAN_PRESENT,
        },
    },
};

pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(super) const PROTOCOL_ICMPV6: u8 = 58;

/// A flow with a part that this program reads from others and never writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` cannot be written as OpenFlow: only known fields and actions can")]
pub struct UnwritableFlow {
    /// The field or action.
    pub part: String,
}

/// A request about one flow. A deletion takes it only with its cookie.
pub(super) fn flow_mod(flow: &Flow, command: FlowCommand) -> Result<FlowMod, UnwritableFlow> {
    let adds = matches!(command, FlowCommand::Add);
    let instructions = if adds {
        instructions(&flow.actions)?
    } else {
        Vec::new()
    };
    Ok(FlowMod {
        cookie: flow.cookie.0,
        cookie_mask: if adds { 0 } else { u64::MAX },
        table: flow.table,
        command,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: flow.priority,
        flags: 0,
        matches: fields(&flow.matches)?,
        instructions,
    })
}

/// A match's fields in the order in which each has its prerequisites before it.
pub(super) fn fields(matches: &Match) -> Result<Vec<Oxm>, UnwritableFlow> {
    if let Some(part) = matches.other.first() {
        return Err(UnwritableFlow {
            part: part.to_string(),
        });
    }
    let mut fields = Vec::new();
    fields.extend(matches.in_port.map(|port| Oxm::InPort(number(port))));
    fields.extend(matches.pkt_mark.map(Oxm::PktMark));
    fields.extend(matches.dl_dst.map(Oxm::EthDst));
    fields.extend(matches.dl_src.map(Oxm::EthSrc));
    fields.extend(matches.protocol.map(|protocol| {
        Oxm::EthType(match protocol {
            Protocol::Arp => ETHERTYPE_ARP,
            Protocol::Ip => ETHERTYPE_IPV4,
            Protocol::Ipv6 | Protocol::Icmp6 => ETHERTYPE_IPV6,
        })
    }));
    fields.extend(
        matches
            .dl_vlan
            .map(|vlan| Oxm::VlanVid(VLAN_PRESENT | vlan)),
    );
    if matches.protocol == Some(Protocol::Icmp6) {
        fields.push(Oxm::IpProto(PROTOCOL_ICMPV6));
    }
    fields.extend(matches.arp_op.map(Oxm::ArpOp));
    fields.extend(matches.arp_tpa.map(Oxm::ArpTpa));
    fields.extend(matches.icmpv6_type.map(Oxm::Icmpv6Type));
    fields.extend(matches.nd_target.map(Oxm::NdTarget));
    Ok(fields)
}

fn number(port: Port) -> PortNumber {
    match port {
        Port::Number(number) => number.into(),
        Port::Local => PortNumber::LOCAL,
    }
}

/// No actions are no instruction: the frame is dropped.
fn instructions(actions: &[Action]) -> Result<Vec<Instruction>, UnwritableFlow> {
    if actions.is_empty() {
        return Ok(Vec::new());
    }
    let actions = actions.iter().map(|action| {
        let port = match action {
            Action::Output(port) => number(*port),
            Action::Normal => PortNumber::NORMAL,
            Action::Flood => PortNumber::FLOOD,
            Action::SetPktMark(mark) => return Ok(wire::Action::SetField(Oxm::PktMark(*mark))),
            Action::Other(part) => {
                return Err(UnwritableFlow {
                    part: part.to_string(),
                });
            }
        };
        Ok(wire::Action::output(port))
    });
    Ok(vec![Instruction::Apply(actions.collect::<Result<_, _>>()?)])
}

/// A flow that a bridge lists.
pub(super) fn installed(stats: &FlowStats) -> InstalledFlow {
    InstalledFlow {
        flow: Flow {
            cookie: Cookie(stats.cookie),
            table: stats.table,
            priority: stats.priority,
            matches: matching(&stats.matches),
            actions: actions(&stats.instructions),
        },
        packets: stats.packets,
        bytes: stats.bytes,
    }
}

/// A flow that a bridge tells of.
pub(super) fn monitored(flow: &MonitoredFlow) -> Flow {
    Flow {
        cookie: Cookie(flow.cookie),
        table: flow.table,
        priority: flow.priority,
        matches: matching(&flow.matches),
        actions: actions(&flow.instructions),
    }
}

fn port(number: PortNumber) -> Option<Port> {
    if number == PortNumber::LOCAL {
        return Some(Port::Local);
    }
    number.real().map(|port: OfPort| Port::Number(port))
}

fn matching(fields: &[Oxm]) -> Match {
    let ethertype = fields.iter().find_map(|field| match field {
        Oxm::EthType(ethertype) => Some(*ethertype),
        _ => None,
    });
    let ip_proto = fields.iter().find_map(|field| match field {
        Oxm::IpProto(protocol) => Some(*protocol),
        _ => None,
    });
    let mut matches = Match {
        protocol: match (ethertype, ip_proto) {
            (Some(ETHERTYPE_ARP), _) => Some(Protocol::Arp),
            (Some(ETHERTYPE_IPV4), None) => Some(Protocol::Ip),
            (Some(ETHERTYPE_IPV6), None) => Some(Protocol::Ipv6),
            (Some(ETHERTYPE_IPV6), Some(PROTOCOL_ICMPV6)) => Some(Protocol::Icmp6),
            _ => None,
        },
        ..Match::default()
    };
    let keyword = text::protocol_keyword(ethertype, ip_proto);
    for field in fields {
        let known = match field {
            Oxm::InPort(number) => set(&mut matches.in_port, port(*number)),
            Oxm::PktMark(mark) => set(&mut matches.pkt_mark, Some(*mark)),
            Oxm::EthDst(mac) => set(&mut matches.dl_dst, Some(*mac)),
            Oxm::EthSrc(mac) => set(&mut matches.dl_src, Some(*mac)),
            Oxm::EthType(_) => matches.protocol.is_some() || keyword.is_some(),
            Oxm::IpProto(_) => matches.protocol == Some(Protocol::Icmp6) || keyword.is_some(),
            Oxm::VlanVid(vid) if vid & VLAN_PRESENT != 0 => {
                set(&mut matches.dl_vlan, Some(vid & !VLAN_PRESENT))
            }
            Oxm::ArpOp(operation) => set(&mut matches.arp_op, Some(*operation)),
            Oxm::ArpTpa(address) => set(&mut matches.arp_tpa, Some(*address)),
            Oxm::Icmpv6Type(kind) => set(&mut matches.icmpv6_type, Some(*kind)),
            Oxm::NdTarget(address) => set(&mut matches.nd_target, Some(*address)),
            Oxm::VlanVid(_) | Oxm::ArpSpa(_) | Oxm::Other(_) => false,
        };
        if !known {
            matches.other.insert(text::field(field).into());
        }
    }
    matches.other.extend(keyword.map(Into::into));
    matches
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some() && field.is_none();
    if known {
        *field = value;
    }
    known
}

fn actions(instructions: &[Instruction]) -> Vec<Action> {
    let mut actions = Vec::new();
    for instruction in instructions {
        match instruction {
            Instruction::Apply(applied) => actions.extend(applied.iter().map(action)),
            other => actions.push(Action::Other(text::instruction(other).into())),
        }
    }
    actions
}

fn action(action: &wire::Action) -> Action {
    if let wire::Action::Output { port: number, .. } = *action {
        match number {
            PortNumber::NORMAL => return Action::Normal,
            PortNumber::FLOOD => return Action::Flood,
            _ => {
                if let Some(port) = port(number) {
                    return Action::Output(port);
                }
            }
        }
    }
    if let wire::Action::SetField(Oxm::PktMark(mark)) = *action {
        return Action::SetPktMark(mark);
    }
    Action::Other(text::action(action).into())
}
