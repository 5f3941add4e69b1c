//! Being told of changes to flows: the ONF's extension 187 to OpenFlow 1.3, multipart type 1870
//! (Open vSwitch ≥ 3.0; the same as NXST_FLOW_MONITOR of nicira-ext.h but for its numbers).

use bytes::{BufMut, BytesMut};

use super::{
    action::{Instruction, decode_instructions, encode_instructions},
    codec::{Reader, WireError, padding, put_zeros, with_length},
    oxm::{Oxm, decode_match, encode_match},
    port_number::PortNumber,
};

const ABBREVIATED: u16 = 3;

/// What to be told of. Several requests may overlap: a flow is told of once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowMonitorRequest {
    /// A number of one's own, different in each request.
    pub id: u32,
    /// [`Self::INITIAL`] and the others.
    pub flags: u16,
    /// The table; 0xff for all.
    pub table: u8,
    /// The match that covers theirs; empty for all. The cookie is no criterion.
    pub matches: Vec<Oxm>,
}

impl FlowMonitorRequest {
    /// List what is there at first, as added.
    pub const INITIAL: u16 = 1;
    /// Tell of additions.
    pub const ADD: u16 = 1 << 1;
    /// Tell of deletions.
    pub const DELETE: u16 = 1 << 2;
    /// Tell of modifications.
    pub const MODIFY: u16 = 1 << 3;
    /// Tell the actions too.
    pub const ACTIONS: u16 = 1 << 4;
    /// Tell in full of what this connection changed itself.
    pub const OWN: u16 = 1 << 5;

    /// A request for everything about the flows of all tables that a match covers.
    #[must_use]
    pub const fn all(id: u32, matches: Vec<Oxm>) -> Self {
        Self {
            id,
            flags: Self::INITIAL
                | Self::ADD
                | Self::DELETE
                | Self::MODIFY
                | Self::ACTIONS
                | Self::OWN,
            table: 0xff,
            matches,
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let id = reader.u32()?;
        let flags = reader.u16()?;
        reader.skip(2 + 4)?;
        let table = reader.u8()?;
        reader.skip(3)?;
        Ok(Self {
            id,
            flags,
            table,
            matches: decode_match(reader)?,
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        to.put_u32(self.id);
        to.put_u16(self.flags);
        let match_length_at = to.len();
        to.put_u16(0);
        to.put_u32(PortNumber::ANY.0);
        to.put_u8(self.table);
        put_zeros(to, 3);
        let length = encode_match(&self.matches, to)?;
        patch_match_length(to, match_length_at, length)
    }
}

/// The match's length is repeated in front of it.
fn patch_match_length(to: &mut BytesMut, at: usize, length: usize) -> Result<(), WireError> {
    let what = "a match";
    let field = u16::try_from(length).map_err(|_| WireError::TooLong { what, length })?;
    to.get_mut(at..at + 2)
        .ok_or(WireError::Truncated { what })?
        .copy_from_slice(&field.to_be_bytes());
    Ok(())
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowChange {
    /// It was added; also what is there at first.
    Added,
    /// It was deleted.
    Deleted {
        /// `OFPRR_*`: 0 idle, 1 hard timeout, 2 by a request, 3 with its group, 5 evicted.
        reason: u16,
    },
    /// Its actions or cookie were changed.
    Modified,
}

impl FlowChange {
    const fn numbers(self) -> (u16, u16) {
        match self {
            Self::Added => (0, 0),
            Self::Deleted { reason } => (1, reason),
            Self::Modified => (2, 0),
        }
    }

    const fn from_numbers(event: u16, reason: u16) -> Option<Self> {
        Some(match event {
            0 => Self::Added,
            1 => Self::Deleted { reason },
            2 => Self::Modified,
            _ => return None,
        })
    }
}

/// One entry of a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FlowUpdate {
    /// A flow and what became of it.
    Full {
        /// What became of it.
        change: FlowChange,
        /// The flow.
        flow: MonitoredFlow,
    },
    /// This connection's own request was carried out.
    Abbreviated {
        /// The request's xid.
        xid: u32,
    },
}

/// A flow in a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MonitoredFlow {
    /// The table.
    pub table: u8,
    /// The priority.
    pub priority: u16,
    /// Seconds without a frame after which the flow goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the flow goes; 0 for never.
    pub hard_timeout: u16,
    /// The cookie.
    pub cookie: u64,
    /// Which frames it takes.
    pub matches: Vec<Oxm>,
    /// What it does (what it did, once deleted).
    pub instructions: Vec<Instruction>,
}

impl FlowUpdate {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let what = "a flow update";
        let length = usize::from(reader.u16()?);
        if !length.is_multiple_of(8) {
            return Err(WireError::BadLength { what, length });
        }
        let mut reader = reader.body_of(what, length, 2)?;
        let event = reader.u16()?;
        if event == ABBREVIATED {
            let xid = reader.u32()?;
            return Ok(Self::Abbreviated { xid });
        }
        let reason = reader.u16()?;
        let value = u64::from(event);
        let what = "the event of a flow update";
        let change =
            FlowChange::from_numbers(event, reason).ok_or(WireError::BadValue { what, value })?;
        let priority = reader.u16()?;
        let idle_timeout = reader.u16()?;
        let hard_timeout = reader.u16()?;
        let match_length = usize::from(reader.u16()?);
        let table = reader.u8()?;
        reader.skip(1)?;
        let cookie = reader.u64()?;
        let padded = match_length + padding(match_length);
        let mut matches = reader.inner("a match", padded)?;
        Ok(Self::Full {
            change,
            flow: MonitoredFlow {
                table,
                priority,
                idle_timeout,
                hard_timeout,
                cookie,
                matches: decode_match(&mut matches)?,
                instructions: decode_instructions(reader)?,
            },
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        with_length(to, "a flow update", 0, |to| {
            to.put_u16(0);
            match self {
                Self::Abbreviated { xid } => {
                    to.put_u16(ABBREVIATED);
                    to.put_u32(*xid);
                    Ok(())
                }
                Self::Full { change, flow } => {
                    let (event, reason) = change.numbers();
                    to.put_u16(event);
                    to.put_u16(reason);
                    to.put_u16(flow.priority);
                    to.put_u16(flow.idle_timeout);
                    to.put_u16(flow.hard_timeout);
                    let match_length_at = to.len();
                    to.put_u16(0);
                    to.put_u8(flow.table);
                    to.put_u8(0);
                    to.put_u64(flow.cookie);
                    let length = encode_match(&flow.matches, to)?;
                    patch_match_length(to, match_length_at, length)?;
                    encode_instructions(&flow.instructions, to)
                }
            }
        })
        .map(drop)
    }
}
