//! `neighsteer classify`: one verdict for each frame of a capture.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::PathBuf,
};

use neighsteer_common::{Bytes, Policy, Verdict, classify};
use serde::Serialize;

use super::capture::{Capture, CaptureError, CapturedFrame};
use super::policy::PolicyArgs;

/// Classify the frames of a pcap, a pcapng or lines of hex
///
/// Prints one verdict a frame: what it is, what the flow table does with it, what is odd about it.
/// The classifier is the one that runs in the kernel; no privilege and no kernel support is needed.
///
/// A frame that cannot be read is counted and left out, the ones around it are printed, and the exit
/// code is 1.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tcpdump -i eth0 -w - 'arp or icmp6' | neighsteer classify --bridge-mac 02:42:ac:12:00:03
  neighsteer classify --bridge-mac 02:42:ac:12:00:03 --vlan 5 --output json node.pcapng
  echo ffffffffffff0242ac1200630806 | neighsteer classify")]
pub struct ClassifyArgs {
    /// The capture; `-` or nothing is the standard input
    pub file: Option<PathBuf>,

    /// What decisions are made by
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Why not every frame got its verdict.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The capture's file cannot be opened.
    #[error("cannot open {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The capture cannot be read to its end.
    #[error("stopped after {read} frames")]
    Stopped {
        /// How many were read.
        read: u64,
        /// Why.
        #[source]
        source: CaptureError,
    },
    /// Some frames could not be read; all others were.
    #[error("{unread} of {all} frames cannot be read, the first of them frame {index}")]
    Unread {
        /// How many were left out.
        unread: u64,
        /// How many the capture has.
        all: u64,
        /// The first one's index.
        index: u64,
        /// Why that one.
        #[source]
        source: CaptureError,
    },
    /// The output cannot be written.
    #[error("cannot write the verdicts")]
    Write {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl ClassifyArgs {
    /// The capture, or the standard input.
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read>, ClassifyError> {
        match &self.file {
            Some(path) if path.as_os_str() != "-" => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(source) => Err(ClassifyError::Open {
                    path: path.clone(),
                    source,
                }),
            },
            _ => Ok(Box::new(io::stdin().lock())),
        }
    }
}

/// Prints a verdict for each frame of `input`, a line each, as text or as JSON, and says how many
/// there were.
///
/// Verdicts are flushed before each read, so that a live capture is seen live. A closed output ends
/// it without an error.
///
/// # Errors
/// Where a frame, the rest of the input, or the output is of no use. Every frame that could be read
/// was printed.
pub fn run(
    args: &ClassifyArgs,
    json: bool,
    input: impl Read,
    output: impl Write,
) -> Result<u64, ClassifyError> {
    let output = RefCell::new(BufWriter::new(output));
    let mut printer = Printer {
        policy: args.policy.policy(),
        json,
        output: &output,
        index: 0,
    };
    let result = printer.print_all(FlushFirst {
        input,
        output: &output,
    });
    // Not `result?` first: what was printed before an error is to be seen.
    let flushed = output.borrow_mut().flush();
    match (result, flushed) {
        (Err(error), _) if error.is_closed_output() => Ok(printer.index),
        (Err(error), _) => Err(error),
        (Ok(()), Err(source)) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(ClassifyError::Write { source })
        }
        (Ok(()), _) => Ok(printer.index),
    }
}

impl ClassifyError {
    fn is_closed_output(&self) -> bool {
        matches!(self, Self::Write { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Flushes the output before it waits for input.
struct FlushFirst<'a, R, W: Write> {
    input: R,
    output: &'a RefCell<BufWriter<W>>,
}

impl<R: Read, W: Write> Read for FlushFirst<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A failure comes up again at the next write, where it belongs.
        let _ = self.output.borrow_mut().flush();
        self.input.read(buffer)
    }
}

struct Printer<'a, W: Write> {
    policy: Option<Policy>,
    json: bool,
    output: &'a RefCell<BufWriter<W>>,
    /// Frames so far, those that could not be read counted in.
    index: u64,
}

impl<W: Write> Printer<'_, W> {
    fn print_all(&mut self, input: impl Read) -> Result<(), ClassifyError> {
        let mut unread: Option<(u64, u64, CaptureError)> = None;
        let stopped = |read, source| ClassifyError::Stopped { read, source };
        let mut capture = Capture::open(input).map_err(|source| stopped(0, source))?;
        loop {
            match capture.next_frame() {
                Ok(Some(frame)) => {
                    self.index += 1;
                    self.print(frame)
                        .map_err(|source| ClassifyError::Write { source })?;
                }
                Ok(None) => break,
                Err(error) if error.is_of_one_frame() => {
                    self.index += 1;
                    match &mut unread {
                        Some((count, _, _)) => *count += 1,
                        None => unread = Some((1, self.index, error)),
                    }
                }
                Err(source) => return Err(stopped(self.index, source)),
            }
        }
        match unread {
            Some((unread, index, source)) => Err(ClassifyError::Unread {
                unread,
                all: self.index,
                index,
                source,
            }),
            None => Ok(()),
        }
    }

    fn print(&self, frame: CapturedFrame<'_>) -> io::Result<()> {
        let verdict = classify(&Bytes::from(frame.bytes), self.policy.as_ref());
        let mut output = self.output.borrow_mut();
        if self.json {
            serde_json::to_writer(&mut *output, &Line::new(self.index, frame, verdict))?;
            output.write_all(b"\n")
        } else {
            print_text(&mut *output, self.index, frame, verdict)
        }
    }
}

fn print_text(
    output: &mut impl Write,
    index: u64,
    frame: CapturedFrame<'_>,
    verdict: Verdict,
) -> io::Result<()> {
    let Verdict {
        kind,
        decision,
        notes,
    } = verdict;
    write!(output, "{index:>6}  {kind:<22}  {decision:<9}  ")?;
    if notes.is_empty() {
        write!(output, "-")?;
    } else {
        write!(output, "{notes}")?;
    }
    if frame.bytes.len() < frame.length {
        let captured = frame.bytes.len();
        write!(output, "  ({captured} of {} bytes captured)", frame.length)?;
    }
    writeln!(output)
}

/// One line of JSON output.
#[derive(Serialize)]
struct Line {
    index: u64,
    kind: &'static str,
    decision: &'static str,
    notes: Vec<&'static str>,
    /// Bytes on the wire.
    length: usize,
    /// Bytes in the capture, which the verdict is about.
    captured: usize,
}

impl Line {
    fn new(index: u64, frame: CapturedFrame<'_>, verdict: Verdict) -> Self {
        Self {
            index,
            kind: verdict.kind.name(),
            decision: verdict.decision.name(),
            notes: verdict.notes.names().collect(),
            length: frame.length,
            captured: frame.bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests;
