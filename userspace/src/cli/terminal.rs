//! Standard output, safe for a terminal: names out of databases and words of other programs may hold
//! sequences that a terminal obeys.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// Whether a terminal might obey a character, or show it as if the rest were something else: control
/// characters and those that turn the direction of writing (Unicode, `Bidi_Control`).
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text on one line, with every character that a terminal might obey as JSON would write it.
pub(super) fn on_one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // All of them are in the basic multilingual plane. Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// A writer that escapes what a terminal might obey, lines and tabs aside. JSON stays the same JSON.
#[derive(Debug)]
pub(super) struct Terminal<W> {
    inner: W,
    /// The beginning of a character that the next write goes on with.
    pending: Vec<u8>,
    reader_left: bool,
}

impl<W: Write> Terminal<W> {
    pub(super) const fn new(inner: W) -> Self {
        Self {
            inner,
            pending: Vec::new(),
            reader_left: false,
        }
    }

    /// Whether nobody reads what is written any more.
    pub(super) const fn reader_left(&self) -> bool {
        self.reader_left
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.reader_left |= result.as_ref().is_err_and(is_broken);
        result
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let text = escape(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'));
        let result = self.inner.write_all(text.as_bytes());
        self.note(result)
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        for chunk in all.utf8_chunks() {
            self.write_text(chunk.valid())?;
            let invalid = chunk.invalid();
            let is_last = invalid.as_ptr_range().end == all.as_ptr_range().end;
            let is_begun =
                is_last && std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
            if is_begun {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.write_text("\u{fffd}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.note(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]]) -> String {
        let mut terminal = Terminal::new(Vec::new());
        for part in parts {
            terminal.write_all(part).unwrap();
        }
        String::from_utf8(terminal.inner).unwrap()
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_the_rest_stays() {
        let text = "GR_\x1b]0;evil\x07\x1b[31m\u{9b}1m \u{202e}net 😀 ü\tx\r\n";
        assert_eq!(
            written(&[text.as_bytes()]),
            "GR_\\u001b]0;evil\\u0007\\u001b[31m\\u009b1m \\u202enet 😀 ü\tx\\u000d\n"
        );
        assert_eq!(on_one_line("a\nb"), "a\\u000ab");
        assert_eq!(on_one_line("patch-br-ex"), "patch-br-ex");
    }

    #[test]
    fn characters_that_come_in_pieces_are_put_together() {
        let text = "x\u{9b}😀y".as_bytes();
        for cut in 0..=text.len() {
            let (a, b) = text.split_at(cut);
            assert_eq!(written(&[a, b]), "x\\u009b😀y", "cut at {cut}");
        }
        assert_eq!(written(&[b"a\xffb"]), "a\u{fffd}b");
    }

    #[test]
    fn json_is_the_same_json_after_it() {
        let value = serde_json::json!({ "name": "\x1b[31m\u{7f}\u{9b}\n😀" });
        let text = serde_json::to_vec_pretty(&value).unwrap();
        let read: serde_json::Value = serde_json::from_str(&written(&[&text])).unwrap();
        assert_eq!(read, value);
    }

    #[test]
    fn only_a_reader_of_ours_that_left_counts_as_one() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut terminal = Terminal::new(Closed);
        assert!(!terminal.reader_left());
        terminal.write_all(b"x").unwrap_err();
        assert!(terminal.reader_left());
    }
}
