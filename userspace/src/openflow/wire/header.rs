//! The eight bytes in front of every message, and where a message ends.

use super::codec::{Reader, WireError};

/// A version of OpenFlow that this client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 1.0, the only one with `OFPPC_NO_FLOOD`.
    V1_0,
    /// 1.3, for flows.
    V1_3,
}

impl Version {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1_0 => 1,
            Self::V1_3 => 4,
        }
    }

    /// The version with a number, if it is one of ours.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::V1_0),
            4 => Some(Self::V1_3),
            _ => None,
        }
    }
}

/// The header of a message (`struct ofp_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version's number; in a HELLO it may be one that this client does not speak.
    pub version: u8,
    /// The type's number, which depends on the version.
    pub kind: u8,
    /// The message's length, header included (bytes, at least 8).
    pub length: u16,
    /// What pairs a reply with its request.
    pub xid: u32,
}

impl Header {
    /// A header's own length (bytes).
    pub const LENGTH: usize = 8;

    /// The header at the front of `bytes`.
    ///
    /// # Errors
    /// Where there are fewer than eight bytes, or the length field holds less than eight.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("an OpenFlow header", bytes);
        let header = Self {
            version: reader.u8()?,
            kind: reader.u8()?,
            length: reader.u16()?,
            xid: reader.u32()?,
        };
        let length = usize::from(header.length);
        if length < Self::LENGTH {
            let what = "an OpenFlow message";
            return Err(WireError::BadLength { what, length });
        }
        Ok(header)
    }

    /// How long the message at the front of a stream's bytes is (bytes), once that can be told.
    ///
    /// # Errors
    /// Where the length field holds less than eight: the stream is beyond repair.
    pub fn frame_length(stream: &[u8]) -> Result<Option<usize>, WireError> {
        if stream.len() < Self::LENGTH {
            return Ok(None);
        }
        Self::decode(stream).map(|header| Some(usize::from(header.length)))
    }
}
