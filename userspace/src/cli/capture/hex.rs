//! Hex: one frame a line; `#` starts a comment, and blank lines hold no frame.

use std::io::Read;

use super::{CaptureError, CapturedFrame, HexProblem, MAX_FRAME, input::Input};

/// The longest line (bytes): three characters a byte, and room for a comment.
const MAX_LINE: usize = 4 * MAX_FRAME;

/// Where in the text the reader is.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: u64,
    frame: Vec<u8>,
}

/// Whether a file starts like a text of hex: with a digit, a separator, a comment or nothing.
pub(super) fn starts_so(start: &[u8]) -> bool {
    start
        .first()
        .is_none_or(|byte| byte.is_ascii_hexdigit() || b" \t\r\n#".contains(byte))
}

impl Lines {
    pub(super) fn next_frame<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<CapturedFrame<'_>>, CaptureError> {
        loop {
            let line = next_line(input)?;
            self.line += 1;
            let parsed = match line {
                Line::End => return Ok(None),
                Line::Whole(length) => parse(input.take(length), &mut self.frame),
                Line::TooLong => Err(HexProblem::TooLong),
            };
            parsed.map_err(|problem| CaptureError::Hex {
                line: self.line,
                problem,
            })?;
            if !self.frame.is_empty() {
                break;
            }
        }
        Ok(Some(CapturedFrame {
            bytes: &self.frame,
            length: self.frame.len(),
        }))
    }
}

/// What is next in the text.
enum Line {
    /// Nothing.
    End,
    /// A line of so many bytes, its end counted in, at the start of the window.
    Whole(usize),
    /// A line of more than [`MAX_LINE`] bytes, which was left behind.
    TooLong,
}

fn next_line<R: Read>(input: &mut Input<R>) -> Result<Line, CaptureError> {
    let mut scanned = 0;
    let mut too_long = false;
    loop {
        let data = input.data();
        let end = data
            .get(scanned..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            .map(|position| scanned + position + 1);
        scanned = data.len();
        let length = match end {
            Some(length) => length,
            None if input.ended() && scanned == 0 && !too_long => return Ok(Line::End),
            None if input.ended() => scanned,
            None => {
                // No more than a window of such a line is kept in memory.
                if too_long || scanned > MAX_LINE {
                    too_long = true;
                    input.skip(scanned);
                    scanned = 0;
                }
                input.read_more()?;
                continue;
            }
        };
        if too_long || length > MAX_LINE {
            input.skip(length);
            return Ok(Line::TooLong);
        }
        return Ok(Line::Whole(length));
    }
}

/// Reads pairs of digits; blanks, `:`, `-`, `.` and a `0x` in front may stand between bytes.
fn parse(line: &[u8], frame: &mut Vec<u8>) -> Result<(), HexProblem> {
    frame.clear();
    let text = std::str::from_utf8(line).map_err(|_| HexProblem::NotText)?;
    let text = text.split('#').next().unwrap_or_default();
    let digits = text.trim_start();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let mut high = None;
    let mut column = text.chars().count() - digits.chars().count();
    for character in digits.chars() {
        column += 1;
        match (character.to_digit(16), high) {
            (Some(digit), None) => high = Some(digit),
            (Some(digit), Some(first)) => {
                // Two hex digits are at most 0xff.
                frame.push(u8::try_from(first * 16 + digit).unwrap_or(u8::MAX));
                high = None;
            }
            (None, _) if !character.is_whitespace() && !":-.".contains(character) => {
                return Err(HexProblem::Character {
                    column,
                    found: character,
                });
            }
            (None, Some(_)) => return Err(HexProblem::HalfByte { column: column - 1 }),
            (None, None) => {}
        }
    }
    if high.is_some() {
        return Err(HexProblem::HalfByte { column });
    }
    if frame.len() > MAX_FRAME {
        return Err(HexProblem::TooLong);
    }
    Ok(())
}
