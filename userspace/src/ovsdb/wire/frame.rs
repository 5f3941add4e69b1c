//! Where one message ends in a stream without delimiters (RFC 7047, 4).

use bytes::{Buf, Bytes, BytesMut};

/// Above this size a message's buffer is not kept for the next one.
const KEEP_BYTES: usize = 256 * 1024;

/// Cuts a byte stream into JSON objects, each byte looked at once however the stream is split.
#[derive(Debug)]
pub struct Framer {
    /// The longest message that is accepted, in bytes.
    limit: usize,
    /// Bytes of the current message that have been looked at.
    scanned: usize,
    /// Brackets and braces that are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// A stream that does not consist of JSON objects of an acceptable size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The message did not end within the limit.
    #[error("a message is longer than {limit} bytes, the configured limit")]
    Oversized {
        /// Bytes.
        limit: usize,
    },
    /// A message starts with something else than `{`.
    #[error("byte {byte:#04x} where a message should start: is this an OVSDB server?")]
    NotAnObject {
        /// What was there.
        byte: u8,
    },
}

impl Framer {
    /// A framer at the start of a stream; `limit` in bytes a message.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            scanned: 0,
            depth: 0,
            in_string: false,
            escaped: false,
        }
    }

    /// Takes the next whole message off the front of `input`; `None` until it is complete.
    ///
    /// `input` must be the same buffer at every call, with new bytes only appended. What is
    /// returned starts with `{` and has balanced brackets; it need not be valid JSON.
    ///
    /// # Errors
    /// Where no message can be found; the stream is then of no further use.
    pub fn take(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        if self.scanned == 0 {
            let blank = input
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            input.advance(blank);
            match input.first() {
                None => return Ok(None),
                Some(b'{') => {}
                Some(&byte) => return Err(FrameError::NotAnObject { byte }),
            }
        }
        let oversized = FrameError::Oversized { limit: self.limit };
        match self.find_end(input) {
            Some(end) if end > self.limit => Err(oversized),
            Some(end) => {
                *self = Self::new(self.limit);
                let frame = input.split_to(end).freeze();
                if frame.len() > KEEP_BYTES {
                    // Let go of the large buffer as soon as this message has been read.
                    *input = BytesMut::from(&input[..]);
                }
                Ok(Some(frame))
            }
            None if input.len() > self.limit => Err(oversized),
            None => {
                self.scanned = input.len();
                Ok(None)
            }
        }
    }

    /// The length of the message at the front of `input`, if all of it is there.
    fn find_end(&mut self, input: &[u8]) -> Option<usize> {
        // Locals stay in registers: every byte that the server sends passes here.
        let (mut depth, mut in_string, mut escaped) = (self.depth, self.in_string, self.escaped);
        let mut rest = input.get(self.scanned..).unwrap_or_default().iter();
        while let Some(&byte) = rest.next() {
            if in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(input.len() - rest.len());
                    }
                }
                _ => {}
            }
        }
        (self.depth, self.in_string, self.escaped) = (depth, in_string, escaped);
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(
        limit: usize,
        chunks: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Vec<Bytes>, FrameError> {
        let mut framer = Framer::new(limit);
        let mut input = BytesMut::new();
        let mut found = Vec::new();
        for chunk in chunks {
            input.extend_from_slice(&chunk);
            while let Some(frame) = framer.take(&mut input)? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    #[test]
    fn brackets_and_quotes_within_texts_do_not_end_a_message() {
        let message = br#"{"a":"}]\"\\","b":[{"c":"{"}]}"#;
        let found = frames(100, [message.to_vec(), message.to_vec()]).unwrap();
        assert_eq!(found, [&message[..], &message[..]]);
    }

    #[test]
    fn two_messages_in_one_read_are_both_found() {
        let found = frames(100, [b" {\"a\":1}\n{\"b\":2} {".to_vec()]).unwrap();
        assert_eq!(found, [&b"{\"a\":1}"[..], b"{\"b\":2}"]);
    }

    #[test]
    fn an_endless_message_is_cut_off_at_the_limit() {
        let error = frames(1000, std::iter::repeat_n(b"{\"a".to_vec(), 1000)).unwrap_err();
        assert_eq!(error, FrameError::Oversized { limit: 1000 });
    }

    #[test]
    fn a_stream_that_is_no_json_is_refused_at_its_first_byte() {
        let error = frames(1000, [b"HTTP/1.1 400".to_vec()]).unwrap_err();
        assert_eq!(error, FrameError::NotAnObject { byte: b'H' });
    }

    #[test]
    fn a_large_message_does_not_keep_its_buffer() {
        let mut input = BytesMut::new();
        input.extend_from_slice(format!("{{\"a\":\"{}\"}}{{", "x".repeat(KEEP_BYTES)).as_bytes());
        let frame = Framer::new(usize::MAX).take(&mut input).unwrap();
        assert!(frame.is_some());
        assert!(input.capacity() < KEEP_BYTES);
        assert_eq!(&input[..], b"{");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(
            texts in proptest::collection::vec("[\\\\\"{}\\[\\]a-zäß ]{0,40}", 1..8),
            splits in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let messages: Vec<String> = texts
                .iter()
                .map(|text| serde_json::json!({ text: [text, {"x": text}] }).to_string())
                .collect();
            let stream = messages.join("\n").into_bytes();
            let mut cuts: Vec<usize> = splits.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.sort_unstable();
            let mut start = 0;
            let mut chunks = Vec::new();
            for cut in cuts.into_iter().chain([stream.len()]) {
                chunks.push(stream[start..cut].to_vec());
                start = cut;
            }
            let found = frames(1 << 20, chunks).unwrap();
            prop_assert_eq!(found, messages);
        }

        #[test]
        fn arbitrary_bytes_never_panic(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..10)) {
            let _ = frames(64, chunks);
        }
    }
}
