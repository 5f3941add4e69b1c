//! A window on the input that grows to what a record needs.

use std::io::{self, Read};

use super::CaptureError;

/// How much is read at once (bytes).
const CHUNK: usize = 64 << 10;

/// Bytes that were read and not used yet.
#[derive(Debug)]
pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    /// How much of the front of `buffer` was used.
    used: usize,
    /// Where the window starts in the file.
    offset: u64,
    ended: bool,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            used: 0,
            offset: 0,
            ended: false,
        }
    }

    /// The window.
    pub(super) fn data(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    /// Where the window starts, bytes from the start of the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the window reaches to the end of the file.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads until the window has `wanted` bytes or the input ends, and says whether it has them.
    pub(super) fn fill(&mut self, wanted: usize) -> Result<bool, CaptureError> {
        while self.data().len() < wanted && !self.ended {
            self.read_more()?;
        }
        Ok(self.data().len() >= wanted)
    }

    /// Reads once: what is there, at least one byte unless the input ends.
    pub(super) fn read_more(&mut self) -> Result<(), CaptureError> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let filled = self.buffer.len();
        self.buffer.resize(filled + CHUNK, 0);
        let space = self.buffer.get_mut(filled..).unwrap_or_default();
        let read = loop {
            match self.reader.read(space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        let read = read.map_err(|source| CaptureError::Read {
            offset: self.offset + filled as u64,
            source,
        })?;
        self.ended = read == 0;
        Ok(())
    }

    /// Moves the start of the window.
    pub(super) fn skip(&mut self, count: usize) {
        let count = count.min(self.data().len());
        self.used += count;
        self.offset += count as u64;
    }

    /// Takes the first `count` bytes of the window, or all where there are fewer.
    pub(super) fn take(&mut self, count: usize) -> &[u8] {
        let start = self.used;
        self.skip(count);
        self.buffer.get(start..self.used).unwrap_or_default()
    }
}
