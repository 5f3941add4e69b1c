//! Listing flows (OpenFlow 1.3 section 7.3.5.2).

use bytes::{BufMut, BytesMut};

use super::{
    action::{Instruction, decode_instructions, encode_instructions},
    codec::{Reader, WireError, put_zeros, with_length},
    flow_mod::ANY_GROUP,
    oxm::{Oxm, decode_match, encode_match},
    port_number::PortNumber,
};

/// Which flows are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowStatsRequest {
    /// The table; 0xff for all.
    pub table: u8,
    /// What the cookie must be where `cookie_mask` has ones.
    pub cookie: u64,
    /// Which bits of the cookie count.
    pub cookie_mask: u64,
    /// The match that covers theirs; empty for all.
    pub matches: Vec<Oxm>,
}

impl FlowStatsRequest {
    pub(super) fn decode(mut reader: Reader<'_>) -> Result<Self, WireError> {
        let table = reader.u8()?;
        reader.skip(3 + 4 + 4 + 4)?;
        Ok(Self {
            table,
            cookie: reader.u64()?,
            cookie_mask: reader.u64()?,
            matches: decode_match(&mut reader)?,
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        to.put_u8(self.table);
        put_zeros(to, 3);
        to.put_u32(PortNumber::ANY.0);
        to.put_u32(ANY_GROUP);
        put_zeros(to, 4);
        to.put_u64(self.cookie);
        to.put_u64(self.cookie_mask);
        encode_match(&self.matches, to).map(drop)
    }
}

/// A flow that a switch lists. Its age is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowStats {
    /// The table.
    pub table: u8,
    /// The priority.
    pub priority: u16,
    /// Seconds without a frame after which the flow goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the flow goes; 0 for never.
    pub hard_timeout: u16,
    /// `OFPFF_*`.
    pub flags: u16,
    /// The cookie.
    pub cookie: u64,
    /// Frames that it took.
    pub packets: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Which frames it takes.
    pub matches: Vec<Oxm>,
    /// What it does.
    pub instructions: Vec<Instruction>,
}

impl FlowStats {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let length = usize::from(reader.u16()?);
        let mut reader = reader.body_of("a listed flow", length, 2)?;
        let table = reader.u8()?;
        reader.skip(1 + 4 + 4)?;
        let priority = reader.u16()?;
        let idle_timeout = reader.u16()?;
        let hard_timeout = reader.u16()?;
        let flags = reader.u16()?;
        reader.skip(4)?;
        Ok(Self {
            table,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            cookie: reader.u64()?,
            packets: reader.u64()?,
            bytes: reader.u64()?,
            matches: decode_match(&mut reader)?,
            instructions: decode_instructions(reader)?,
        })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        with_length(to, "a listed flow", 0, |to| {
            to.put_u16(0);
            to.put_u8(self.table);
            put_zeros(to, 1 + 4 + 4);
            to.put_u16(self.priority);
            to.put_u16(self.idle_timeout);
            to.put_u16(self.hard_timeout);
            to.put_u16(self.flags);
            put_zeros(to, 4);
            to.put_u64(self.cookie);
            to.put_u64(self.packets);
            to.put_u64(self.bytes);
            encode_match(&self.matches, to)?;
            encode_instructions(&self.instructions, to)
        })
        .map(drop)
    }
}
