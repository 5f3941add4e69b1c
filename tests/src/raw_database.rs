//! The least that can be done: bytes to a database server and back, for benches to compare with.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
};

/// A connection that understands nothing of what it carries.
#[derive(Debug)]
pub struct RawClient {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl RawClient {
    /// Connects to a server's socket.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: UnixStream::connect(socket)?,
            buffer: vec![0; 1 << 20],
        })
    }

    /// Sends a request and reads one whole message; returns its length in bytes and its last ones.
    ///
    /// # Errors
    /// Where the connection ends.
    pub fn call(&mut self, request: &[u8]) -> io::Result<(usize, Vec<u8>)> {
        self.stream.write_all(request)?;
        let (mut length, mut depth, mut text, mut escaped) = (0, 0_u32, false, false);
        loop {
            let read = self.stream.read(&mut self.buffer)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            length += read;
            let chunk = self.buffer.get(..read).unwrap_or_default();
            for byte in chunk {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => text = !text,
                    b'{' | b'[' if !text => depth += 1,
                    b'}' | b']' if !text => depth -= 1,
                    _ => {}
                }
            }
            if depth == 0 {
                return Ok((length, chunk.to_vec()));
            }
        }
    }
}
