//! One connection: whole messages in and out, echoes and silence looked after.

use std::{io, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    time::{Instant, sleep_until},
};

use super::{
    error::SessionError,
    remote::Transport,
    tls::TlsError,
    wire::{
        frame::Framer,
        message::{Incoming, write_refusal, write_reply, write_request},
    },
};

/// Room that is made for each read.
const READ_BYTES: usize = 64 * 1024;
/// Answers that a server may leave unread.
const UNREAD_BYTES: usize = 1024 * 1024;

/// A connection. All its state is in here, so that [`Connection::next`] may be dropped at any
/// await and called again.
pub(crate) struct Connection {
    reader: ReadHalf<Box<dyn Transport>>,
    writer: WriteHalf<Box<dyn Transport>>,
    framer: Framer,
    input: BytesMut,
    output: BytesMut,
    /// Bytes of answers among `output`, at most.
    answers: usize,
    next_id: u64,
    probe: Option<Probe>,
    /// Bytes were handed to the writer that it may still hold: TLS does.
    unflushed: bool,
    /// Nothing was heard yet over TLS, so that the server may still refuse our certificate.
    unheard_tls: bool,
}

/// Watches for silence (ovsdb-server(7), "inactivity probe").
struct Probe {
    interval: Duration,
    /// When to act next.
    deadline: Instant,
    /// Whether an echo was sent since the server was last heard.
    asked: bool,
}

impl Connection {
    /// Takes over a stream. Without a probe interval, silence lasts for ever.
    pub(crate) fn new(
        stream: Box<dyn Transport>,
        max_message_bytes: usize,
        probe_interval: Option<Duration>,
        is_tls: bool,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader,
            writer,
            framer: Framer::new(max_message_bytes),
            input: BytesMut::new(),
            output: BytesMut::new(),
            answers: 0,
            next_id: 0,
            probe: probe_interval.map(|interval| Probe {
                interval,
                deadline: Instant::now() + interval,
                asked: false,
            }),
            unflushed: false,
            unheard_tls: is_tls,
        }
    }

    /// Queues a request and returns its id; it is sent while [`Connection::next`] is awaited.
    pub(crate) fn request(&mut self, method: &str, params: &[u8]) -> u64 {
        self.next_id += 1;
        write_request(&mut self.output, self.next_id, method, params);
        self.next_id
    }

    /// The next message that is not about keeping the connection alive. Cancel-safe.
    ///
    /// # Errors
    /// When the connection has ended or must.
    pub(crate) async fn next(&mut self) -> Result<Incoming, SessionError> {
        loop {
            while let Some(frame) = self.framer.take(&mut self.input)? {
                if let Some(message) = self.sort(Incoming::parse(&frame)?)? {
                    return Ok(message);
                }
            }
            self.exchange().await?;
        }
    }

    /// Answers what the server asks; hands on the rest.
    fn sort(&mut self, message: Incoming) -> Result<Option<Incoming>, SessionError> {
        match message {
            Incoming::Request { id, method, params } => {
                let before = self.output.len();
                if method == "echo" {
                    write_reply(&mut self.output, &id, &params);
                } else {
                    write_refusal(&mut self.output, &id);
                }
                self.answers += self.output.len() - before;
                if self.answers > UNREAD_BYTES {
                    return Err(SessionError::Unread {
                        bytes: self.answers,
                    });
                }
                Ok(None)
            }
            // The answer to our echo: that it came is all there is to know.
            Incoming::Reply { id: 0, .. } => Ok(None),
            message => Ok(Some(message)),
        }
    }

    /// Waits until something was read or written, or a probe is due.
    async fn exchange(&mut self) -> Result<(), SessionError> {
        if self.input.capacity() - self.input.len() < READ_BYTES / 2 {
            self.input.reserve(READ_BYTES);
        }
        let deadline = self.probe.as_ref().map(|probe| probe.deadline);
        tokio::select! {
            // Writing first: it ends by itself, while a busy server always has more to read. The
            // probe last: what has arrived counts, however late we are to read it.
            biased;
            written = write(&mut self.writer, &mut self.output),
                if self.unflushed || !self.output.is_empty() =>
            {
                self.unflushed = match written {
                    Ok(flushed) => !flushed,
                    Err(error) => return Err(self.broken(error)),
                };
                if self.output.is_empty() {
                    self.answers = 0;
                    if self.output.capacity() > READ_BYTES {
                        self.output = BytesMut::new();
                    }
                }
            }
            read = self.reader.read_buf(&mut self.input) => {
                match read {
                    Ok(0) => return Err(self.closed()),
                    Ok(_) => self.unheard_tls = false,
                    // TLS that ends without a farewell, as ovsdb-server leaves.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        return Err(self.closed());
                    }
                    Err(error) => return Err(self.broken(error)),
                }
                if let Some(probe) = &mut self.probe {
                    probe.asked = false;
                    probe.deadline = Instant::now() + probe.interval;
                }
            }
            () = at(deadline), if deadline.is_some() => self.probe_due()?,
        }
        Ok(())
    }

    fn closed(&self) -> SessionError {
        if self.unheard_tls {
            return SessionError::Tls(Box::new(TlsError::Dropped(None)));
        }
        SessionError::Closed {
            partial: self.input.len(),
        }
    }

    fn broken(&self, error: io::Error) -> SessionError {
        if self.unheard_tls {
            return SessionError::Tls(Box::new(TlsError::of_first_read(error)));
        }
        SessionError::Io(error)
    }

    fn probe_due(&mut self) -> Result<(), SessionError> {
        let Some(probe) = &mut self.probe else {
            return Ok(());
        };
        if probe.asked {
            return Err(SessionError::Silent {
                silence: probe.interval * 2,
            });
        }
        probe.asked = true;
        probe.deadline = Instant::now() + probe.interval;
        write_request(&mut self.output, 0, "echo", b"[]");
        Ok(())
    }
}

/// Writes a part of the output or, when there is none, sees off what the writer holds: then the
/// answer is `true`. Cancel-safe.
async fn write(
    writer: &mut WriteHalf<Box<dyn Transport>>,
    output: &mut BytesMut,
) -> io::Result<bool> {
    if output.is_empty() {
        writer.flush().await?;
        return Ok(true);
    }
    writer.write_buf(output).await?;
    Ok(false)
}

/// Waits until then; without a deadline, for ever.
pub(super) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
