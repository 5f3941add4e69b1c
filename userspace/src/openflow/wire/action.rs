//! What a flow does: instructions, and the actions in them (OpenFlow 1.3 sections 7.2.4 and 7.2.5).

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, padding, put_zeros, with_length},
    oxm::Oxm,
    port_number::PortNumber,
};

const OUTPUT: u16 = 0;
const PUSH_VLAN: u16 = 17;
const POP_VLAN: u16 = 18;
const GROUP: u16 = 22;
const SET_FIELD: u16 = 25;

const GOTO_TABLE: u16 = 1;
const APPLY_ACTIONS: u16 = 4;

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// To a port.
    Output {
        /// The port; reserved ones have a meaning of their own.
        port: PortNumber,
        /// How much of the frame a controller gets (bytes, 0xffff for all); 0 for other ports.
        max_len: u16,
    },
    /// Adds a tag of this Ethernet type.
    PushVlan(u16),
    /// Removes the outermost tag.
    PopVlan,
    /// To a group.
    Group(u32),
    /// Sets a field.
    SetField(Oxm),
    /// Another action: its type and what follows the length field.
    Other {
        /// The type.
        kind: u16,
        /// What follows type and length, a multiple of eight less four (bytes).
        body: Vec<u8>,
    },
}

impl Action {
    /// To a port, with `max_len` as Open vSwitch writes it.
    #[must_use]
    pub const fn output(port: PortNumber) -> Self {
        Self::Output { port, max_len: 0 }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (kind, mut body) = tlv("an action", reader)?;
        let whole = body.clone();
        let action = match (kind, body.len()) {
            (OUTPUT, 12) => Self::Output {
                port: PortNumber(body.u32()?),
                max_len: body.u16()?,
            },
            (PUSH_VLAN, 4) => Self::PushVlan(body.u16()?),
            (POP_VLAN, 4) => Self::PopVlan,
            (GROUP, 4) => Self::Group(body.u32()?),
            (SET_FIELD, _) => {
                let field = Oxm::decode(&mut body)?;
                if body.len() >= 8 {
                    let length = whole.len() + 4;
                    let what = "a set-field action";
                    return Err(WireError::BadLength { what, length });
                }
                Self::SetField(field)
            }
            _ => Self::Other {
                kind,
                body: whole.rest().to_vec(),
            },
        };
        Ok(action)
    }

    fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        with_length(to, "an action", 2, |to| {
            match self {
                Self::Output { port, max_len } => {
                    to.put_u16(OUTPUT);
                    to.put_u16(0);
                    to.put_u32(port.0);
                    to.put_u16(*max_len);
                    put_zeros(to, 6);
                }
                Self::PushVlan(ethertype) => {
                    to.put_u16(PUSH_VLAN);
                    to.put_u16(0);
                    to.put_u16(*ethertype);
                    put_zeros(to, 2);
                }
                Self::PopVlan => {
                    to.put_u16(POP_VLAN);
                    put_zeros(to, 6);
                }
                Self::Group(group) => {
                    to.put_u16(GROUP);
                    to.put_u16(0);
                    to.put_u32(*group);
                }
                Self::SetField(field) => {
                    let start = to.len();
                    to.put_u16(SET_FIELD);
                    to.put_u16(0);
                    field.encode(to)?;
                    put_zeros(to, padding(to.len() - start));
                }
                Self::Other { kind, body } => {
                    to.put_u16(*kind);
                    to.put_u16(0);
                    to.put_slice(body);
                }
            }
            Ok(())
        })
        .map(drop)
    }
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Runs actions at once.
    Apply(Vec<Action>),
    /// Continues in another table.
    GotoTable(u8),
    /// Another instruction: its type and what follows the length field.
    Other {
        /// The type.
        kind: u16,
        /// What follows type and length, a multiple of eight less four (bytes).
        body: Vec<u8>,
    },
}

impl Instruction {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (kind, mut body) = tlv("an instruction", reader)?;
        Ok(match (kind, body.len()) {
            (APPLY_ACTIONS, _) => {
                body.skip(4)?;
                let mut actions = Vec::new();
                while !body.is_empty() {
                    actions.push(Action::decode(&mut body)?);
                }
                Self::Apply(actions)
            }
            (GOTO_TABLE, 4) => Self::GotoTable(body.u8()?),
            _ => Self::Other {
                kind,
                body: body.rest().to_vec(),
            },
        })
    }

    fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        with_length(to, "an instruction", 2, |to| {
            match self {
                Self::Apply(actions) => {
                    to.put_u16(APPLY_ACTIONS);
                    put_zeros(to, 6);
                    actions.iter().try_for_each(|action| action.encode(to))?;
                }
                Self::GotoTable(table) => {
                    to.put_u16(GOTO_TABLE);
                    to.put_u16(0);
                    to.put_u8(*table);
                    put_zeros(to, 3);
                }
                Self::Other { kind, body } => {
                    to.put_u16(*kind);
                    to.put_u16(0);
                    to.put_slice(body);
                }
            }
            Ok(())
        })
        .map(drop)
    }
}

/// Type and body of an action or instruction.
fn tlv<'a>(what: &'static str, reader: &mut Reader<'a>) -> Result<(u16, Reader<'a>), WireError> {
    let kind = reader.u16()?;
    let length = usize::from(reader.u16()?);
    if length < 8 || !length.is_multiple_of(8) {
        return Err(WireError::BadLength { what, length });
    }
    let body = reader.body_of(what, length, 4)?;
    Ok((kind, body))
}

/// Reads instructions up to the end of the reader.
pub(super) fn decode_instructions(mut reader: Reader<'_>) -> Result<Vec<Instruction>, WireError> {
    let mut instructions = Vec::new();
    while !reader.is_empty() {
        instructions.push(Instruction::decode(&mut reader)?);
    }
    Ok(instructions)
}

pub(super) fn encode_instructions(
    instructions: &[Instruction],
    to: &mut BytesMut,
) -> Result<(), WireError> {
    instructions
        .iter()
        .try_for_each(|instruction| instruction.encode(to))
}
