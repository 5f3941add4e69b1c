//! pcap: a header, then a record a frame (draft-ietf-opsawg-pcap).

use std::io::Read;

use pcap_parser::{
    LegacyPcapBlock, PcapError, nom, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use super::{CaptureError, CapturedFrame, ETHERNET, MAX_FRAME, input::Input};

pub(super) const FORMAT: &str = "pcap";

/// Length of the file's header.
const FILE_HEADER: usize = 24;

/// The upper bits of the link type tell of an FCS, which is no matter here.
const LINK_TYPE_MASK: i32 = 0xffff;

type Parser = fn(&[u8]) -> nom::IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

/// How the records of one file are written.
#[derive(Debug)]
pub(super) struct Pcap {
    parse: Parser,
    record_header: usize,
    big_endian: bool,
}

/// Whether a file starts with one of the five magic numbers.
pub(super) fn starts_so(start: &[u8]) -> bool {
    matches!(
        start.first_chunk(),
        Some(
            [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0xc3, 0xd4]
                | [0x4d, 0x3c, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d]
                | [0x34, 0xcd, 0xb2, 0xa1]
        )
    )
}

impl Pcap {
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Result<Self, CaptureError> {
        if !input.fill(FILE_HEADER)? {
            return Err(CaptureError::Truncated {
                format: FORMAT,
                offset: 0,
                needed: FILE_HEADER,
                left: input.data().len(),
            });
        }
        let (_, header) = parse_pcap_header(input.data()).map_err(|_| CaptureError::Malformed {
            format: FORMAT,
            offset: 0,
            problem: "its file header cannot be read",
        })?;
        let link_type = header.network.0 & LINK_TYPE_MASK;
        if link_type != ETHERNET {
            return Err(CaptureError::LinkType {
                format: FORMAT,
                offset: 0,
                link_type,
            });
        }
        input.skip(FILE_HEADER);
        let big_endian = header.is_bigendian();
        let (parse, record_header): (Parser, usize) = if header.is_modified_format() {
            (parse_pcap_frame_modified, 24)
        } else if big_endian {
            (parse_pcap_frame_be, 16)
        } else {
            (parse_pcap_frame, 16)
        };
        Ok(Self {
            parse,
            record_header,
            big_endian,
        })
    }

    pub(super) fn next_frame<'a, R: Read>(
        &mut self,
        input: &'a mut Input<R>,
    ) -> Result<Option<CapturedFrame<'a>>, CaptureError> {
        let offset = input.offset();
        let whole_header = input.fill(self.record_header)?;
        if input.data().is_empty() {
            return Ok(None);
        }
        let truncated = |needed, left| CaptureError::Truncated {
            format: FORMAT,
            offset,
            needed,
            left,
        };
        let captured = match input.data() {
            [_, _, _, _, _, _, _, _, a, b, c, d, ..] if whole_header => {
                let length = [*a, *b, *c, *d];
                if self.big_endian {
                    u32::from_be_bytes(length)
                } else {
                    u32::from_le_bytes(length)
                }
            }
            left => return Err(truncated(self.record_header, left.len())),
        };
        let captured = usize::try_from(captured).unwrap_or(usize::MAX);
        if captured > MAX_FRAME {
            return Err(CaptureError::Oversized {
                format: FORMAT,
                offset,
                length: captured,
                limit: MAX_FRAME,
            });
        }
        let needed = self.record_header + captured;
        if !input.fill(needed)? {
            return Err(truncated(needed, input.data().len()));
        }
        match (self.parse)(input.take(needed)) {
            Ok((_, record)) => Ok(Some(CapturedFrame {
                bytes: record.data,
                length: usize::try_from(record.origlen)
                    .unwrap_or(usize::MAX)
                    .max(record.data.len()),
            })),
            Err(_) => Err(CaptureError::Malformed {
                format: FORMAT,
                offset,
                problem: "it cannot be read",
            }),
        }
    }
}
