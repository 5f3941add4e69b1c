//! pcapng: blocks, some of which hold a frame (draft-ietf-opsawg-pcapng).

use std::io::Read;

use pcap_parser::{Block, parse_block_be, parse_block_le, traits::PcapNGPacketBlock};

use super::{CaptureError, CapturedFrame, ETHERNET, MAX_FRAME, input::Input};

pub(super) const FORMAT: &str = "pcapng";

/// The type of the block that starts a section; it reads the same in either byte order.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The longest block that is read (bytes): decryption secrets and comments count in.
const MAX_BLOCK: usize = 16 << 20;
/// Type, length and length again: no block is shorter.
const MIN_BLOCK: usize = 12;
/// The same, of a block that holds a frame or an interface.
const MIN_BLOCK_WITH_FIELDS: usize = 16;
/// Byte-order magic of a section in little-endian order.
const LITTLE_ENDIAN: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
/// The same in big-endian order.
const BIG_ENDIAN: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// What the current section said of itself.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: i32,
    /// 0 is no limit.
    snapshot_length: usize,
}

/// Whether a file starts with a section header.
pub(super) fn starts_so(start: &[u8]) -> bool {
    start.first_chunk() == Some(&SECTION_HEADER)
}

impl Pcapng {
    pub(super) fn next_frame<'a, R: Read>(
        &mut self,
        input: &'a mut Input<R>,
    ) -> Result<Option<CapturedFrame<'a>>, CaptureError> {
        // Positions instead of a slice, for the window moves on with each block.
        let (bytes, length, needed) = loop {
            let Some(needed) = self.whole_block(input)? else {
                return Ok(None);
            };
            match self.frame_of(input, needed)? {
                Some((bytes, length)) => break (bytes, length, needed),
                None => input.skip(needed),
            }
        };
        let block = input.take(needed);
        Ok(Some(CapturedFrame {
            bytes: block.get(bytes).unwrap_or_default(),
            length,
        }))
    }

    /// The length of the next block, once all of it is in the window; `None` at the end of the file.
    fn whole_block<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<usize>, CaptureError> {
        let offset = input.offset();
        let malformed = |problem| CaptureError::Malformed {
            format: FORMAT,
            offset,
            problem,
        };
        input.fill(MIN_BLOCK)?;
        let (block_type, length, magic) = match input.data() {
            [] => return Ok(None),
            [a, b, c, d, e, f, g, h, i, j, k, l, ..] => {
                ([*a, *b, *c, *d], [*e, *f, *g, *h], [*i, *j, *k, *l])
            }
            left => {
                return Err(CaptureError::Truncated {
                    format: FORMAT,
                    offset,
                    needed: MIN_BLOCK,
                    left: left.len(),
                });
            }
        };
        if block_type == SECTION_HEADER {
            self.big_endian = match magic {
                LITTLE_ENDIAN => false,
                BIG_ENDIAN => true,
                _ => return Err(malformed("its byte-order magic is unknown")),
            };
            self.interfaces.clear();
        }
        let (block_type, length) = if self.big_endian {
            (u32::from_be_bytes(block_type), u32::from_be_bytes(length))
        } else {
            (u32::from_le_bytes(block_type), u32::from_le_bytes(length))
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_BLOCK {
            return Err(CaptureError::Oversized {
                format: FORMAT,
                offset,
                length,
                limit: MAX_BLOCK,
            });
        }
        // Types 1 to 6 and the section header have fields, which pcap-parser relies on.
        let least = if (1..=6).contains(&block_type) || block_type == 0x0a0d_0d0a {
            MIN_BLOCK_WITH_FIELDS
        } else {
            MIN_BLOCK
        };
        if length < least || length % 4 != 0 {
            return Err(malformed("its length is impossible"));
        }
        if input.fill(length)? {
            Ok(Some(length))
        } else {
            Err(CaptureError::Truncated {
                format: FORMAT,
                offset,
                needed: length,
                left: input.data().len(),
            })
        }
    }

    /// Where in the block at the start of the window a frame is, and how long it was on the wire.
    ///
    /// The block of a frame that cannot be used is left behind.
    fn frame_of<R: Read>(
        &mut self,
        input: &mut Input<R>,
        needed: usize,
    ) -> Result<Option<(std::ops::Range<usize>, usize)>, CaptureError> {
        let offset = input.offset();
        let malformed = |problem| CaptureError::Malformed {
            format: FORMAT,
            offset,
            problem,
        };
        let block = input.data().get(..needed).unwrap_or_default();
        let parse = if self.big_endian {
            parse_block_be
        } else {
            parse_block_le
        };
        let (_, parsed) = parse(block).map_err(|_| malformed("its fields do not fit into it"))?;
        let (interface, header, captured, length) = match &parsed {
            Block::InterfaceDescription(interface) => {
                self.interfaces.push(Interface {
                    link_type: interface.linktype.0,
                    snapshot_length: usize::try_from(interface.snaplen).unwrap_or(usize::MAX),
                });
                return Ok(None);
            }
            Block::EnhancedPacket(packet) => (
                usize::try_from(packet.if_id).unwrap_or(usize::MAX),
                28,
                packet.packet_data().len(),
                packet.orig_len(),
            ),
            Block::SimplePacket(packet) => (0, 12, packet.packet_data().len(), packet.orig_len()),
            _ => return Ok(None),
        };
        let interface = self
            .interfaces
            .get(interface)
            .copied()
            .ok_or_else(|| malformed("it names an interface that no block described"))?;
        if interface.link_type != ETHERNET {
            input.skip(needed);
            return Err(CaptureError::LinkType {
                format: FORMAT,
                offset,
                link_type: interface.link_type,
            });
        }
        let mut captured = captured;
        // A simple packet block holds no captured length of its own.
        if matches!(parsed, Block::SimplePacket(_)) && interface.snapshot_length > 0 {
            captured = captured.min(interface.snapshot_length);
        }
        if captured > MAX_FRAME {
            return Err(CaptureError::Oversized {
                format: FORMAT,
                offset,
                length: captured,
                limit: MAX_FRAME,
            });
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX).max(captured);
        Ok(Some((header..header + captured, length)))
    }
}
