//! Netlink messages and attributes, in the host's byte order.

use nix::errno::Errno;

/// `NLM_F_REQUEST | NLM_F_ACK`: every request ends with an acknowledgement or the end of a dump.
const REQUEST_AND_ACK: u16 = 0x1 | 0x4;
/// `NLM_F_ROOT | NLM_F_MATCH`.
const DUMP: u16 = 0x100 | 0x200;
const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// `NLMSG_NOOP`.
const NOOP: u16 = 1;
/// `NLMSG_ERROR`: an acknowledgement when its number is 0.
const ERROR: u16 = 2;
/// `NLMSG_DONE`.
const DONE: u16 = 3;
/// `NLA_F_NESTED | NLA_F_NET_BYTEORDER`: flags in an attribute's type.
const ATTRIBUTE_FLAGS: u16 = 0xc000;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;

/// A request on its way.
pub(super) struct Request {
    /// What it asks for, for errors.
    pub(super) what: &'static str,
    kind: u16,
    flags: u16,
    sequence: u32,
    body: Vec<u8>,
}

impl Request {
    pub(super) fn new(what: &'static str, kind: u16) -> Self {
        Self {
            what,
            kind,
            flags: REQUEST_AND_ACK,
            sequence: 1,
            body: Vec::new(),
        }
    }

    /// Asks for every object that matches.
    pub(super) fn dump(mut self) -> Self {
        self.flags |= DUMP;
        self
    }

    /// Gives it another sequence number than 1, which its answers have too.
    pub(super) fn numbered(mut self, sequence: u32) -> Self {
        self.sequence = sequence;
        self
    }

    /// Appends a fixed header.
    pub(super) fn header(mut self, parts: &[&[u8]]) -> Self {
        self.body.extend(parts.iter().copied().flatten());
        self
    }

    /// Appends an attribute.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        push_attribute(&mut self.body, kind, value);
        self
    }

    /// Appends an attribute that holds attributes.
    pub(super) fn nested(self, kind: u16, attributes: &[(u16, &[u8])]) -> Self {
        let mut value = Vec::new();
        for (kind, bytes) in attributes {
            push_attribute(&mut value, *kind, bytes);
        }
        self.attribute(kind | NESTED, &value)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.body.len()).unwrap_or(u32::MAX);
        let port = 0u32;
        [
            &length.to_ne_bytes()[..],
            &self.kind.to_ne_bytes(),
            &self.flags.to_ne_bytes(),
            &self.sequence.to_ne_bytes(),
            &port.to_ne_bytes(),
            &self.body,
        ]
        .concat()
    }
}

fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap_or(u16::MAX);
    body.extend_from_slice(&length.to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(align(body.len()), 0);
}

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// One object.
    Body(&'a [u8]),
    /// Nothing more comes.
    End,
    /// The request failed.
    Error(Errno),
}

/// The messages of one datagram; `None` for a malformed one, which is the last.
pub(super) fn replies(mut datagram: &[u8]) -> impl Iterator<Item = Option<Reply<'_>>> {
    std::iter::from_fn(move || {
        loop {
            if datagram.is_empty() {
                return None;
            }
            let Some((kind, body, rest)) = split_message(datagram) else {
                datagram = &[];
                return Some(None);
            };
            datagram = rest;
            return Some(match kind {
                NOOP => continue,
                DONE => Some(Reply::End),
                ERROR => read_u32(body).map(|number| match number.cast_signed() {
                    0 => Reply::End,
                    number => Reply::Error(Errno::from_raw(number.saturating_neg())),
                }),
                _ => Some(Reply::Body(body)),
            });
        }
    })
}

/// A message as it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    /// That of the request that it answers; 0 for news.
    pub(super) sequence: u32,
    pub(super) body: &'a [u8],
}

/// The messages of one datagram, whatever they are; `None` for a malformed one, which is the last.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Option<Message<'_>>> {
    std::iter::from_fn(move || {
        if datagram.is_empty() {
            return None;
        }
        let header = datagram;
        let Some((kind, body, rest)) = split_message(datagram) else {
            datagram = &[];
            return Some(None);
        };
        datagram = rest;
        Some(Some(Message {
            kind,
            flags: header.get(6..).and_then(read_u16).unwrap_or_default(),
            sequence: header.get(8..).and_then(read_u32).unwrap_or_default(),
            body,
        }))
    })
}

/// Type and body of the first message, and what follows it.
fn split_message(datagram: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(read_u32(datagram)?).ok()?;
    let kind = read_u16(datagram.get(4..)?)?;
    let body = datagram.get(HEADER..length)?;
    let rest = datagram.get(align(length)..).unwrap_or_default();
    Some((kind, body, rest))
}

/// Types (without flags) and values of the attributes in `bytes`, as far as they are well formed.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(read_u16(bytes)?);
        let kind = read_u16(bytes.get(2..)?)? & !ATTRIBUTE_FLAGS;
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = bytes.get(align(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a type.
pub(super) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

pub(super) fn read_u16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(super) fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A text up to its NUL.
pub(super) fn read_text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

const fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_a_message_with_its_attributes() {
        let bytes = Request::new("test", 20)
            .header(&[&[1, 2, 3, 4]])
            .attribute(7, b"abc\0")
            .nested(9, &[(1, &[5]), (2, b"xy")])
            .bytes();
        let (kind, body, rest) = split_message(&bytes).unwrap();
        assert_eq!((kind, rest.len()), (20, 0));
        assert_eq!(&body[..4], [1, 2, 3, 4]);
        assert_eq!(read_text(attribute(&body[4..], 7).unwrap()), "abc");
        let nested = attribute(&body[4..], 9).unwrap();
        let nested: Vec<_> = attributes(nested).collect();
        assert_eq!(nested, [(1, &[5][..]), (2, b"xy")]);
    }

    #[test]
    fn acknowledgements_errors_and_ends_are_told_apart() {
        let message = |kind, body: &[u8]| {
            Request {
                what: "test",
                kind,
                flags: 0,
                sequence: 1,
                body: body.to_vec(),
            }
            .bytes()
        };
        let datagram = [
            message(NOOP, &[]),
            message(16, &[8, 8, 8, 8]),
            message(ERROR, &(-2i32).to_ne_bytes()),
            message(ERROR, &0i32.to_ne_bytes()),
            message(DONE, &[]),
        ]
        .concat();
        let expected = [
            Some(Reply::Body(&[8, 8, 8, 8])),
            Some(Reply::Error(Errno::ENOENT)),
            Some(Reply::End),
            Some(Reply::End),
        ];
        assert!(replies(&datagram).eq(expected));
    }

    #[test]
    fn malformed_messages_and_attributes_end_the_walk() {
        for bytes in [&[1, 2, 3][..], &[200, 0, 0, 0, 1, 0, 0, 0], &[0; 16]] {
            let read: Vec<_> = replies(bytes).take(9).collect();
            assert_eq!(read, [None], "{bytes:?}");
        }
        for bytes in [&[1][..], &[9, 0, 1, 0], &[0, 0, 1, 0], &[3, 0, 1, 0]] {
            assert_eq!(attributes(bytes).take(9).count(), 0, "{bytes:?}");
        }
    }
}
