//! Adding and deleting flows (OpenFlow 1.3 section 7.3.4.1).

use bytes::{BufMut, BytesMut};

use super::{
    action::{Instruction, decode_instructions, encode_instructions},
    codec::{Reader, WireError},
    oxm::{Oxm, decode_match, encode_match},
    port_number::PortNumber,
};

/// No packet is buffered in the switch (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = u32::MAX;
/// Any group (`OFPG_ANY`).
pub(super) const ANY_GROUP: u32 = u32::MAX;

/// What to do with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowCommand {
    /// Add it, or replace the one with the same table, priority and match, whosever it is.
    Add,
    /// Change the actions of all that the match covers.
    Modify,
    /// Change the actions of the very one.
    ModifyStrict,
    /// Delete all that the match covers.
    Delete,
    /// Delete the very one.
    DeleteStrict,
}

impl FlowCommand {
    const ALL: [Self; 5] = [
        Self::Add,
        Self::Modify,
        Self::ModifyStrict,
        Self::Delete,
        Self::DeleteStrict,
    ];

    const fn number(self) -> u8 {
        self as u8
    }
}

/// A change to the flow tables. Fields that this client never uses are written as unused and not
/// kept when read (out port and group, buffered packet).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowMod {
    /// The flow's cookie; for deletions what the cookie must be where `cookie_mask` has ones.
    pub cookie: u64,
    /// Which bits of the cookie limit a deletion; 0 for additions.
    pub cookie_mask: u64,
    /// The table.
    pub table: u8,
    /// What to do.
    pub command: FlowCommand,
    /// Seconds without a frame after which the flow goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the flow goes; 0 for never.
    pub hard_timeout: u16,
    /// The priority.
    pub priority: u16,
    /// `OFPFF_*`.
    pub flags: u16,
    /// Which frames it takes.
    pub matches: Vec<Oxm>,
    /// What it does.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    pub(super) fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("a FLOW_MOD", body);
        let cookie = reader.u64()?;
        let cookie_mask = reader.u64()?;
        let table = reader.u8()?;
        let command = reader.u8()?;
        let command = FlowCommand::ALL
            .get(usize::from(command))
            .copied()
            .ok_or_else(|| WireError::BadValue {
                what: "the command of a FLOW_MOD",
                value: u64::from(command),
            })?;
        let idle_timeout = reader.u16()?;
        let hard_timeout = reader.u16()?;
        let priority = reader.u16()?;
        reader.skip(12)?;
        let flags = reader.u16()?;
        reader.skip(2)?;
        Ok(Self {
            cookie,
            cookie_mask,
            table,
            command,
            idle_timeout,
            hard_timeout,
            priority,
            flags,
            matches: decode_match(&mut reader)?,
            instructions: decode_instructions(reader)?,
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        to.put_u64(self.cookie);
        to.put_u64(self.cookie_mask);
        to.put_u8(self.table);
        to.put_u8(self.command.number());
        to.put_u16(self.idle_timeout);
        to.put_u16(self.hard_timeout);
        to.put_u16(self.priority);
        to.put_u32(NO_BUFFER);
        to.put_u32(PortNumber::ANY.0);
        to.put_u32(ANY_GROUP);
        to.put_u16(self.flags);
        to.put_u16(0);
        encode_match(&self.matches, to)?;
        encode_instructions(&self.instructions, to)
    }
}
