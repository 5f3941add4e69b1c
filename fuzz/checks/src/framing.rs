//! OVSDB framing: bytes off a connection, however they arrive, as messages.
//!
//! Input: how many bytes arrive at once, the longest message in 16 bytes, then the stream.

use bytes::{Bytes, BytesMut};
use neighsteer::ovsdb::wire::{
    frame::{FrameError, Framer},
    message::Incoming,
    outcome::parse_outcome,
};

/// Cuts a stream that arrives in pieces of `chunk` bytes.
fn cut(stream: &[u8], chunk: usize, limit: usize) -> (Vec<Bytes>, Option<FrameError>) {
    let mut framer = Framer::new(limit);
    let mut input = BytesMut::new();
    let mut frames = Vec::new();
    for piece in stream.chunks(chunk) {
        input.extend_from_slice(piece);
        loop {
            match framer.take(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(input.len() <= limit, "more is kept than a message may take");
    }
    (frames, None)
}

pub(super) fn run(data: &[u8]) {
    let [chunk, limit, stream @ ..] = data else {
        return;
    };
    let limit = (usize::from(*limit) + 1) * 16;
    let (frames, error) = cut(stream, usize::from(*chunk) + 1, limit);
    let whole = cut(stream, stream.len().max(1), limit.max(stream.len()));
    let bytewise = cut(stream, 1, limit);
    assert_eq!(bytewise, (frames.clone(), error), "cut otherwise");
    assert!(
        whole.0.starts_with(&frames),
        "a larger limit finds other messages"
    );
    for frame in &frames {
        assert!(frame.len() <= limit && frame.starts_with(b"{"));
        read(frame);
    }
}

/// Reads a message as a session would.
fn read(frame: &Bytes) {
    match Incoming::parse(frame) {
        Ok(Incoming::Reply {
            result: Ok(result), ..
        }) => {
            for operations in 0..3 {
                let _ = parse_outcome(&result, operations);
            }
        }
        Ok(message) => {
            let _ = format!("{message:?}");
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}
