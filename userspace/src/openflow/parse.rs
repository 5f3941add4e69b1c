//! Reads flows in the syntax of ovs-ofctl(8): what `add-flow` takes and what `dump-flows` prints.
//! Different spellings of one match become one value, so that desired and installed compare.

#[cfg(test)]
pub(crate) mod tests;

use std::str::FromStr;

use super::{Action, Cookie, Flow, InstalledFlow, Match, Port, Protocol};
use crate::ids::OfPort;

/// The priority of a flow that names none (OpenFlow's default), which `dump-flows` leaves out.
const DEFAULT_PRIORITY: u16 = 32768;

/// A text that is no flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the flow {line:?}: {problem}")]
pub struct ParseFlowError {
    /// The text.
    pub line: String,
    /// What is wrong with it.
    pub problem: FlowProblem,
}

/// What is wrong with the text of a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowProblem {
    /// Nothing says what the flow does.
    #[error("it has no actions=")]
    NoActions,
    /// A field of the flow itself (not of its match) has a bad value.
    #[error("{field} has the value {value:?}")]
    BadValue {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
    },
}

/// Reads the output of `ovs-ofctl dump-flows` (with `--no-names`, any OpenFlow version).
///
/// # Errors
/// At the first line that is neither a heading nor a flow.
pub fn parse_dump(text: &str) -> Result<Vec<InstalledFlow>, ParseFlowError> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !is_heading(line))
        .map(parse_line)
        .collect()
}

/// Reads one flow, as [`Flow`] displays it.
///
/// # Errors
/// Where it has no actions, or a cookie, table or priority that is no number in range.
pub fn parse_flow(text: &str) -> Result<Flow, ParseFlowError> {
    parse_line(text).map(|installed| installed.flow)
}

impl FromStr for Flow {
    type Err = ParseFlowError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_flow(text)
    }
}

/// `OFPST_FLOW reply (OF1.3) (xid=0x2):` and, from Nicira's extension, `NXST_FLOW reply (xid=0x4):`;
/// an answer in several parts repeats it with `flags=[more]`.
fn is_heading(line: &str) -> bool {
    let line = line.trim_end();
    (line.starts_with("OFPST_") || line.starts_with("NXST_"))
        && (line.ends_with(':') || line.ends_with(": flags=[more]"))
}

fn parse_line(line: &str) -> Result<InstalledFlow, ParseFlowError> {
    let fail = |problem| ParseFlowError {
        line: line.to_owned(),
        problem,
    };
    let (front, actions) = split_actions(line).ok_or_else(|| fail(FlowProblem::NoActions))?;
    let mut installed = InstalledFlow {
        flow: Flow {
            cookie: Cookie::default(),
            table: 0,
            priority: DEFAULT_PRIORITY,
            matches: Match::default(),
            actions: parse_actions(actions),
        },
        packets: 0,
        bytes: 0,
    };
    let mut fields = Vec::new();
    for token in split_outside_parentheses(front, |c| c == ',' || c.is_whitespace()) {
        let (name, value) = token.split_once('=').unwrap_or((token, ""));
        let flow = &mut installed.flow;
        match name {
            "cookie" => flow.cookie = Cookie(number("cookie", value).map_err(fail)?),
            "table" => flow.table = number("table", value).map_err(fail)?,
            "priority" => flow.priority = number("priority", value).map_err(fail)?,
            "n_packets" => installed.packets = number("n_packets", value).map_err(fail)?,
            "n_bytes" => installed.bytes = number("n_bytes", value).map_err(fail)?,
            "duration" | "idle_timeout" | "hard_timeout" | "idle_age" | "hard_age"
            | "importance" | "send_flow_rem" | "check_overlap" | "reset_counts"
            | "no_packet_counts" | "no_byte_counts" | "out_port" | "out_group" => {}
            _ => fields.push((name, value, token)),
        }
    }
    installed.flow.matches = parse_match(&fields);
    Ok(installed)
}

/// The text before and after `actions=`, which is its own word.
fn split_actions(line: &str) -> Option<(&str, &str)> {
    line.match_indices("actions=").find_map(|(at, word)| {
        let front = line.get(..at)?;
        let is_word = front.is_empty() || front.ends_with([' ', ',', '\t']);
        is_word.then_some(())?;
        Some((front, line.get(at + word.len()..)?))
    })
}

/// The non-empty parts of `text` between separators that are in no parentheses.
fn split_outside_parentheses(
    text: &str,
    is_separator: impl Fn(char) -> bool,
) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    text.split(move |c: char| {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(c)
    })
    .filter(|part| !part.is_empty())
}

/// A number in decimal or, with `0x`, in hex.
fn number<N: TryFrom<u64>>(field: &'static str, value: &str) -> Result<N, FlowProblem> {
    read_number(value).ok_or_else(|| FlowProblem::BadValue {
        field,
        value: value.to_owned(),
    })
}

fn read_number<N: TryFrom<u64>>(value: &str) -> Option<N> {
    let number = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => value.parse(),
    };
    number.ok()?.try_into().ok()
}

fn parse_port(text: &str) -> Option<Port> {
    if text.eq_ignore_ascii_case("LOCAL") || text == "65534" {
        return Some(Port::Local);
    }
    OfPort::from_column(text.parse().ok()).map(Port::Number)
}

/// Fields of a match as (name, value, both as written). What cannot be held in a typed field, for
/// example a masked address, is kept as text.
fn parse_match(fields: &[(&str, &str, &str)]) -> Match {
    let mut matches = Match::default();
    let protocol = fields.iter().find_map(|&(name, value, _)| {
        let ethernet_type = || read_number::<u16>(value);
        match name {
            "arp" => Some(Protocol::Arp),
            "ip" => Some(Protocol::Ip),
            "ipv6" => Some(Protocol::Ipv6),
            "icmp6" => Some(Protocol::Icmp6),
            "dl_type" | "eth_type" => match ethernet_type()? {
                0x0806 => Some(Protocol::Arp),
                0x0800 => Some(Protocol::Ip),
                0x86dd => Some(Protocol::Ipv6),
                _ => None,
            },
            _ => None,
        }
    });
    matches.protocol = protocol;
    for &(name, value, token) in fields {
        let known = match name {
            "arp" | "ip" | "ipv6" | "icmp6" if value.is_empty() => true,
            "dl_type" | "eth_type" => matches!(
                (read_number(value), protocol),
                (Some(0x0806u16), Some(Protocol::Arp))
                    | (Some(0x0800), Some(Protocol::Ip))
                    | (Some(0x86dd), Some(Protocol::Ipv6 | Protocol::Icmp6))
            ),
            "in_port" => set(&mut matches.in_port, parse_port(value)),
            "pkt_mark" => set(&mut matches.pkt_mark, read_number(value)),
            "dl_vlan" => set(&mut matches.dl_vlan, read_number(value)),
            "dl_src" | "eth_src" => set(&mut matches.dl_src, value.parse().ok()),
            "dl_dst" | "eth_dst" => set(&mut matches.dl_dst, value.parse().ok()),
            "arp_op" => set(&mut matches.arp_op, read_number(value)),
            "arp_tpa" => set(&mut matches.arp_tpa, value.parse().ok()),
            "icmpv6_type" => set(&mut matches.icmpv6_type, read_number(value)),
            "icmp_type" if protocol == Some(Protocol::Icmp6) => {
                set(&mut matches.icmpv6_type, read_number(value))
            }
            "nd_target" => set(&mut matches.nd_target, value.parse().ok()),
            _ => false,
        };
        if !known {
            matches.other.insert(token.into());
        }
    }
    matches
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some() && field.is_none();
    if known {
        *field = value;
    }
    known
}

fn parse_actions(text: &str) -> Vec<Action> {
    split_outside_parentheses(text.trim(), |c| c == ',')
        .map(str::trim)
        .filter(|action| !action.eq_ignore_ascii_case("drop") && !action.is_empty())
        .map(parse_action)
        .collect()
}

fn parse_action(text: &str) -> Action {
    let output = text.strip_prefix("output:").unwrap_or(text);
    if let Some(port) = parse_port(output) {
        return Action::Output(port);
    }
    match output {
        _ if output.eq_ignore_ascii_case("NORMAL") => Action::Normal,
        _ if output.eq_ignore_ascii_case("FLOOD") => Action::Flood,
        _ => set_pkt_mark(text).map_or_else(|| Action::Other(text.into()), Action::SetPktMark),
    }
}

/// The whole mark, as `dump-flows` prints it from OpenFlow 1.5 on or for 1.0 to 1.2, in this order.
fn set_pkt_mark(text: &str) -> Option<u32> {
    let newer = text
        .strip_prefix("set_field:")
        .and_then(|it| it.strip_suffix("->pkt_mark"));
    let older = text
        .strip_prefix("load:")
        .and_then(|it| it.strip_suffix("->NXM_NX_PKT_MARK[]"));
    read_number(newer.or(older)?)
}
