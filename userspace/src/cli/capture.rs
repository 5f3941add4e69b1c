//! Frames out of a pcap, a pcapng or a file of hex lines, one after the other, never the whole file
//! in memory.

mod hex;
mod input;
mod pcap;
mod pcapng;

use std::io::{self, Read};

use input::Input;

/// The longest frame that is read (bytes): the largest snapshot length of tcpdump and Wireshark.
pub const MAX_FRAME: usize = 262_144;

/// The link-layer header type of Ethernet (LINKTYPE_ETHERNET).
const ETHERNET: i32 = 1;

/// One frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFrame<'a> {
    /// From the destination address on, as far as it was captured.
    pub bytes: &'a [u8],
    /// How many bytes it had on the wire: more than `bytes` where the capture was cut short.
    pub length: usize,
}

/// Why a capture, or one frame of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The input breaks off by the system's account.
    #[error("cannot read the input at offset {offset}")]
    Read {
        /// Bytes from the start.
        offset: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The first bytes are none of the three formats'.
    #[error(
        "the input is neither pcap nor pcapng nor lines of hex: it starts with the bytes {start}"
    )]
    Unrecognized {
        /// In hex.
        start: String,
    },
    /// The file ends within a record.
    #[error(
        "the {format} file is cut short: the record at offset {offset} needs {needed} bytes, {left} \
         are left"
    )]
    Truncated {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where the record starts, bytes from the start of the file.
        offset: u64,
        /// Its length in bytes, as far as known.
        needed: usize,
        /// Bytes of it that are there.
        left: usize,
    },
    /// A record claims more than any capture holds.
    #[error(
        "the {format} record at offset {offset} claims {length} bytes, more than the {limit} that \
         are read: the file is damaged"
    )]
    Oversized {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where the record starts, bytes from the start of the file.
        offset: u64,
        /// The claimed length.
        length: usize,
        /// The accepted one.
        limit: usize,
    },
    /// A record that breaks the format's rules.
    #[error("the {format} record at offset {offset} is malformed: {problem}")]
    Malformed {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where the record starts, bytes from the start of the file.
        offset: u64,
        /// Which rule.
        problem: &'static str,
    },
    /// A frame, or a whole pcap file, of another link layer.
    #[error(
        "the {format} record at offset {offset} has link type {link_type}, not Ethernet (1): \
         capture on an Ethernet interface, not on `any`"
    )]
    LinkType {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where the record starts, bytes from the start of the file.
        offset: u64,
        /// The number that is there.
        link_type: i32,
    },
    /// A line that is no row of hex bytes.
    #[error("line {line} is no frame in hex: {problem}")]
    Hex {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: HexProblem,
    },
}

/// What can be wrong with a line of hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexProblem {
    /// A character that is neither a hex digit nor a separator.
    #[error("column {column} holds {found:?}")]
    Character {
        /// Counted in characters from 1.
        column: usize,
        /// What is there.
        found: char,
    },
    /// A byte of one digit only.
    #[error("the byte that ends at column {column} has one digit")]
    HalfByte {
        /// Counted in characters from 1.
        column: usize,
    },
    /// More than [`MAX_FRAME`] bytes.
    #[error("it is longer than {} bytes", MAX_FRAME)]
    TooLong,
    /// No UTF-8, and so no hex.
    #[error("it is not text")]
    NotText,
}

impl CaptureError {
    /// Whether the frames behind this one can still be read.
    #[must_use]
    pub fn is_of_one_frame(&self) -> bool {
        match self {
            Self::Hex { .. } => true,
            // A pcap has one link type for all of its frames, a pcapng one for each interface.
            Self::LinkType { format, .. } => *format == pcapng::FORMAT,
            _ => false,
        }
    }
}

/// A capture that is being read.
#[derive(Debug)]
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Hex(hex::Lines),
}

impl<R: Read> Capture<R> {
    /// Looks at the first bytes to tell the format. An empty input is an empty capture.
    ///
    /// # Errors
    /// Where the input cannot be read, is of none of the formats, or is a pcap of another link layer
    /// than Ethernet.
    pub fn open(reader: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(reader);
        input.fill(4)?;
        let start = input.data();
        let format = if pcapng::starts_so(start) {
            Format::Pcapng(pcapng::Pcapng::default())
        } else if pcap::starts_so(start) {
            Format::Pcap(pcap::Pcap::open(&mut input)?)
        } else if hex::starts_so(start) {
            Format::Hex(hex::Lines::default())
        } else {
            let start = start.iter().take(4).map(|byte| format!("{byte:02x}"));
            return Err(CaptureError::Unrecognized {
                start: start.collect(),
            });
        };
        Ok(Self { input, format })
    }

    /// The next frame, `None` at the end.
    ///
    /// # Errors
    /// Where it cannot be read. If [`CaptureError::is_of_one_frame`], the next call gives the frame
    /// behind it; otherwise there is no use in another call.
    pub fn next_frame(&mut self) -> Result<Option<CapturedFrame<'_>>, CaptureError> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.next_frame(&mut self.input),
            Format::Pcapng(pcapng) => pcapng.next_frame(&mut self.input),
            Format::Hex(lines) => lines.next_frame(&mut self.input),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
