//! Reading and writing numbers in network order, with bounds.

use bytes::{BufMut, BytesMut};

/// Bytes that are no OpenFlow message, or a value that fits in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end before the structure does.
    #[error("{what} is cut short")]
    Truncated {
        /// The structure.
        what: &'static str,
    },
    /// A length field contradicts the structure.
    #[error("{what} says that it is {length} bytes long")]
    BadLength {
        /// The structure.
        what: &'static str,
        /// What its length field holds (bytes).
        length: usize,
    },
    /// A field holds a number without a meaning.
    #[error("{what} cannot be {value}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// What it holds.
        value: u64,
    },
    /// What should be written is longer than its length field can say.
    #[error("{what} of {length} bytes is too long for OpenFlow")]
    TooLong {
        /// The structure.
        what: &'static str,
        /// How long it would be (bytes).
        length: usize,
    },
    /// The message does not exist in the OpenFlow version.
    #[error("OpenFlow {version:#04x} has no {what}")]
    NotInVersion {
        /// The message.
        what: &'static str,
        /// The version's number on the wire.
        version: u8,
    },
}

/// Takes fields off the front of a structure.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which are called `what` in errors.
    pub(super) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { bytes, what }
    }

    /// The same bytes, called otherwise.
    pub(super) const fn named(self, what: &'static str) -> Self {
        Self {
            bytes: self.bytes,
            what,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All that is left.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or(WireError::Truncated { what: self.what })?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A reader of the next `length` bytes alone.
    pub(super) fn inner(&mut self, what: &'static str, length: usize) -> Result<Self, WireError> {
        Ok(Reader::new(what, self.take(length)?))
    }

    pub(super) fn skip(&mut self, length: usize) -> Result<(), WireError> {
        self.take(length).map(drop)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self
            .bytes
            .split_first_chunk()
            .ok_or(WireError::Truncated { what: self.what })?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    /// What a structure of `length` bytes, `read` of which are read, has left. An error where the
    /// length is shorter than what was read.
    pub(super) fn body_of(
        &mut self,
        what: &'static str,
        length: usize,
        read: usize,
    ) -> Result<Self, WireError> {
        let left = length
            .checked_sub(read)
            .ok_or(WireError::BadLength { what, length })?;
        self.inner(what, left)
    }
}

/// Bytes that round `length` up to a multiple of eight.
pub(super) const fn padding(length: usize) -> usize {
    length.wrapping_neg() & 7
}

/// Writes a structure and then its length, in bytes, into the 16-bit field `at` bytes after its
/// beginning. Padding that the length does not count is the caller's.
pub(super) fn with_length(
    to: &mut BytesMut,
    what: &'static str,
    at: usize,
    write: impl FnOnce(&mut BytesMut) -> Result<(), WireError>,
) -> Result<usize, WireError> {
    let start = to.len();
    write(to)?;
    let length = to.len() - start;
    let too_long = WireError::TooLong { what, length };
    let field = u16::try_from(length).map_err(|_| too_long)?;
    to.get_mut(start + at..start + at + 2)
        .ok_or(WireError::Truncated { what })?
        .copy_from_slice(&field.to_be_bytes());
    Ok(length)
}

/// Writes `count` zeros.
pub(super) fn put_zeros(to: &mut BytesMut, count: usize) {
    to.put_bytes(0, count);
}
