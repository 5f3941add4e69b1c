//! Flows and what they do.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::ser::SerializeStruct;

use super::Match;
use crate::ids::OfPort;

/// Whose flow it is: an opaque number, no part of a flow's identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Cookie(pub u64);

impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port of a bridge, in a match or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// A real port.
    Number(OfPort),
    /// The bridge's own port to the host.
    Local,
}

impl From<OfPort> for Port {
    fn from(port: OfPort) -> Self {
        Self::Number(port)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => fmt::Display::fmt(number, f),
            Self::Local => f.write_str("LOCAL"),
        }
    }
}

/// One step of what a flow does with a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// To one port, whatever its no-flood flag says.
    Output(Port),
    /// What a learning switch does: learn the source, forward or flood.
    Normal,
    /// To every port but the ingress and the no-flood ones.
    Flood,
    /// Gives the frame another mark (`skb->mark`); 0 takes it off.
    SetPktMark(u32),
    /// Any action that this program reads but never writes, as ovs-ofctl prints it.
    Other(Box<str>),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(Port::Number(number)) => write!(f, "output:{number}"),
            Self::Output(Port::Local) => f.write_str("LOCAL"),
            Self::Normal => f.write_str("NORMAL"),
            Self::Flood => f.write_str("FLOOD"),
            Self::SetPktMark(mark) => write!(f, "set_field:{mark:#x}->pkt_mark"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// A flow as it is wanted or installed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Whose it is.
    pub cookie: Cookie,
    /// The table that it is in.
    pub table: u8,
    /// Its priority: the highest that matches wins.
    pub priority: u16,
    /// Which frames it takes.
    pub matches: Match,
    /// What it does with them, in order; nothing means drop.
    pub actions: Vec<Action>,
}

/// What tells one flow from another (ovs-ofctl(8): adding a flow with the same table, priority and
/// match replaces the one that is there, whosever it is).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// The table, first so that keys sort as the pipeline runs.
    pub table: u8,
    /// The priority.
    pub priority: u16,
    /// The match.
    pub matches: Match,
}

impl Flow {
    /// The flow's identity.
    #[must_use]
    pub fn key(&self) -> FlowKey {
        FlowKey {
            table: self.table,
            priority: self.priority,
            matches: self.matches.clone(),
        }
    }

    /// The flow without its cookie and actions, as strict deletion wants it: only a flow with this
    /// very cookie is meant.
    #[must_use]
    pub fn to_strict_deletion(&self) -> String {
        let comma = if self.matches.is_empty() { "" } else { ", " };
        format!(
            "cookie={}/-1, priority={}, table={}{comma}{}",
            self.cookie, self.priority, self.table, self.matches
        )
    }

    /// The actions as ovs-ofctl writes them.
    #[must_use]
    pub fn actions_text(&self) -> String {
        struct Actions<'a>(&'a [Action]);
        impl fmt::Display for Actions<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.0.is_empty() {
                    return f.write_str("drop");
                }
                for (index, action) in self.0.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{action}")?;
                }
                Ok(())
            }
        }
        Actions(&self.actions).to_string()
    }
}

impl fmt::Display for Flow {
    /// The flow in the syntax of ovs-ofctl(8), as `add-flow` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.matches.is_empty() { "" } else { ", " };
        write!(
            f,
            "cookie={}, priority={}, table={}{comma}{}, actions={}",
            self.cookie,
            self.priority,
            self.table,
            self.matches,
            self.actions_text()
        )
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flow({self})")
    }
}

impl serde::Serialize for Flow {
    /// An object of `cookie`, `table`, `priority`, `match` and `actions`, the last two as text.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Flow", 5)?;
        object.serialize_field("cookie", &self.cookie.to_string())?;
        object.serialize_field("table", &self.table)?;
        object.serialize_field("priority", &self.priority)?;
        object.serialize_field("match", &self.matches.to_string())?;
        object.serialize_field("actions", &self.actions_text())?;
        object.end()
    }
}

/// A flow that a switch reports, with what it has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledFlow {
    /// The flow.
    pub flow: Flow,
    /// Frames that it took.
    pub packets: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}
