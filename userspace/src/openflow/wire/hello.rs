//! The first message of either side: which versions it speaks.

use bytes::{BufMut, BytesMut};

use super::{
    codec::{Reader, WireError, padding, put_zeros, with_length},
    header::Version,
};

/// The element with a bitmap of versions (`OFPHET_VERSIONBITMAP`).
const VERSION_BITMAP: u16 = 1;

/// A HELLO, its header's version included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The header's version: the highest that the sender speaks.
    pub version: u8,
    /// Bit n is set where the sender speaks version n; absent from senders before 1.3.1 and, where
    /// it speaks every version up to the header's, from Open vSwitch.
    pub bitmap: Option<u32>,
}

impl Hello {
    /// An offer of one version and no other.
    #[must_use]
    pub const fn only(version: Version) -> Self {
        Self {
            version: version.number(),
            bitmap: Some(1 << version.number()),
        }
    }

    /// Whether the sender speaks a version.
    #[must_use]
    pub const fn offers(&self, version: Version) -> bool {
        match self.bitmap {
            Some(bitmap) => bitmap & (1 << version.number()) != 0,
            None => version.number() <= self.version,
        }
    }

    pub(super) fn decode(version: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("a HELLO", body);
        let mut bitmap = None;
        // OpenFlow 1.0 allows any bytes here, which later versions read as elements: what cannot
        // be read as one says nothing.
        while reader.len() >= 4 {
            let kind = reader.u16()?;
            let length = usize::from(reader.u16()?);
            let Ok(mut element) = reader.body_of("a HELLO element", length, 4) else {
                break;
            };
            if kind == VERSION_BITMAP && bitmap.is_none() && element.len() >= 4 {
                bitmap = Some(element.u32()?);
            }
            if reader.skip(padding(length)).is_err() {
                break;
            }
        }
        Ok(Self { version, bitmap })
    }

    pub(super) fn encode(&self, to: &mut BytesMut) -> Result<(), WireError> {
        let Some(bitmap) = self.bitmap else {
            return Ok(());
        };
        let length = with_length(to, "a HELLO element", 2, |to| {
            to.put_u16(VERSION_BITMAP);
            to.put_u16(0);
            to.put_u32(bitmap);
            Ok(())
        })?;
        put_zeros(to, padding(length));
        Ok(())
    }
}
