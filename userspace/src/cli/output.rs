//! How commands print: text for people, JSON for programs.

use std::io::{self, Write};

use super::terminal::on_one_line;

/// The form of what is printed on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON: one document, or one line a record where records stream.
    Json,
}

/// Standard output, and the form that was asked for.
pub struct Output<'a> {
    /// The form.
    pub format: Format,
    /// Where it goes.
    pub writer: &'a mut (dyn Write + Send),
}

impl Output<'_> {
    /// Whether JSON was asked for.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints one JSON document.
    ///
    /// # Errors
    /// Where standard output is closed or full.
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *self.writer, value)?;
        writeln!(self.writer)
    }

    /// Prints one record of many, on a line of its own.
    ///
    /// # Errors
    /// Where standard output is closed or full.
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self.writer, value)?;
        writeln!(self.writer)
    }

    /// Prints one line of text, whatever is in it.
    ///
    /// # Errors
    /// Where standard output is closed or full.
    pub fn line(&mut self, line: impl std::fmt::Display) -> io::Result<()> {
        let line = line.to_string();
        writeln!(self.writer, "{}", on_one_line(&line))
    }
}

/// What a command found; its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing to say: exit code 0.
    Clean,
    /// A difference, a missing binding, a bad frame: exit code 1.
    Found,
}
