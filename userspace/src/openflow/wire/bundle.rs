//! Several changes as one (the ONF's extension 230 to OpenFlow 1.3; OpenFlow 1.4 section 7.3.9).

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, with_length},
    flow_mod::FlowMod,
    header::{Header, Version},
};

/// The type of a FLOW_MOD in OpenFlow 1.3.
pub(super) const FLOW_MOD: u8 = 14;

/// What to do with a bundle, or what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleStep {
    /// Open it.
    OpenRequest,
    /// It is open.
    OpenReply,
    /// Accept no more additions.
    CloseRequest,
    /// It is closed.
    CloseReply,
    /// Carry it out.
    CommitRequest,
    /// It is carried out.
    CommitReply,
    /// Forget it.
    DiscardRequest,
    /// It is forgotten.
    DiscardReply,
}

impl BundleStep {
    const ALL: [Self; 8] = [
        Self::OpenRequest,
        Self::OpenReply,
        Self::CloseRequest,
        Self::CloseReply,
        Self::CommitRequest,
        Self::CommitReply,
        Self::DiscardRequest,
        Self::DiscardReply,
    ];

    const fn number(self) -> u16 {
        self as u16
    }
}

/// One step in a bundle's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BundleControl {
    /// Which bundle of this connection.
    pub bundle: u32,
    /// The step.
    pub step: BundleStep,
    /// [`Self::ATOMIC`] and [`Self::ORDERED`], the same in all messages of a bundle.
    pub flags: u16,
}

impl BundleControl {
    /// All of it happens or nothing.
    pub const ATOMIC: u16 = 1;
    /// In the order in which it was added.
    pub const ORDERED: u16 = 1 << 1;

    pub(super) fn decode(mut reader: Reader<'_>) -> Result<Self, WireError> {
        let bundle = reader.u32()?;
        let step = reader.u16()?;
        Ok(Self {
            bundle,
            step: BundleStep::ALL
                .get(usize::from(step))
                .copied()
                .ok_or_else(|| WireError::BadValue {
                    what: "the step of a bundle",
                    value: u64::from(step),
                })?,
            flags: reader.u16()?,
        })
    }

    pub(super) fn encode(self, to: &mut BytesMut) {
        to.put_u32(self.bundle);
        to.put_u16(self.step.number());
        to.put_u16(self.flags);
    }
}

/// A change that a bundle shall hold. Only changes to flows are supported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BundleAdd {
    /// Which bundle of this connection.
    pub bundle: u32,
    /// As in [`BundleControl`].
    pub flags: u16,
    /// The change; its xid is that of the message around it, by which an error names it.
    pub flow_mod: FlowMod,
}

impl BundleAdd {
    pub(super) fn decode(mut reader: Reader<'_>) -> Result<Self, WireError> {
        let bundle = reader.u32()?;
        reader.skip(2)?;
        let flags = reader.u16()?;
        let inner = reader.rest();
        let header = Header::decode(inner)?;
        let length = usize::from(header.length);
        if header.version != Version::V1_3.number() || header.kind != FLOW_MOD {
            let what = "the type of a message in a bundle";
            let value = u64::from(header.kind);
            return Err(WireError::BadValue { what, value });
        }
        let what = "a message in a bundle";
        let body = inner
            .get(Header::LENGTH..length)
            .ok_or(WireError::BadLength { what, length })?;
        Ok(Self {
            bundle,
            flags,
            flow_mod: FlowMod::decode(body)?,
        })
    }

    pub(super) fn encode(&self, xid: u32, to: &mut BytesMut) -> Result<(), WireError> {
        to.put_u32(self.bundle);
        to.put_u16(0);
        to.put_u16(self.flags);
        with_length(to, "a message in a bundle", 2, |to| {
            to.put_u8(Version::V1_3.number());
            to.put_u8(FLOW_MOD);
            to.put_u16(0);
            to.put_u32(xid);
            self.flow_mod.encode(to)
        })
        .map(drop)
    }
}
