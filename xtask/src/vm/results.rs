//! What comes out of the machine's second serial port: what the tests say, between marks.

use crate::test::{Counts, Reader};

/// Follows one machine's tests line by line.
#[derive(Debug, Default)]
pub(super) struct Results {
    reader: Reader,
    /// The test program under way, and how many tests had failed before it.
    running: Option<(String, usize)>,
    died: usize,
    done: bool,
}

impl Results {
    /// Takes a line; gives back what of it to show.
    pub(super) fn take(&mut self, line: &str) -> Option<String> {
        if let Some(name) = line.strip_prefix("[start] ") {
            self.running = Some((name.to_owned(), self.reader.counts().failed));
            return Some(format!("{name}:"));
        }
        if let Some(end) = line.strip_prefix("[end] ") {
            return self.end(end);
        }
        if line == "[done]" {
            self.done = true;
            return None;
        }
        self.reader.read(line).map(str::to_owned)
    }

    /// `NAME STATUS`: a program that died took its own summary with it.
    fn end(&mut self, end: &str) -> Option<String> {
        let failed_before = self.running.take().map_or(0, |(_, failed)| failed);
        let (name, status) = end.rsplit_once(' ').unwrap_or((end, ""));
        if status == "0" || self.reader.counts().failed > failed_before {
            return None;
        }
        self.died += 1;
        Some(match status {
            "124" | "137" => format!("{name} did not end in time"),
            _ => format!("{name} ended with status {status} and no test failure of its own"),
        })
    }

    /// Whether every program has run.
    pub(super) fn are_complete(&self) -> bool {
        self.done
    }

    /// The program under way.
    pub(super) fn running(&self) -> Option<&str> {
        self.running.as_ref().map(|(name, _)| name.as_str())
    }

    /// The sum so far.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.reader.counts();
        counts.failed += self.died;
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered";
    const FAILED: &str = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured";

    fn read(lines: &[&str]) -> Results {
        let mut results = Results::default();
        for line in lines {
            results.take(line);
        }
        results
    }

    #[test]
    fn programs_add_up_until_the_machine_is_done() {
        let mut results = read(&["[start] a", PASSED, "[end] a 0", "[start] b"]);
        assert_eq!(results.running(), Some("b"));
        assert!(!results.are_complete());
        for line in [FAILED, "[end] b 101", "[done]"] {
            results.take(line);
        }
        assert!(results.are_complete());
        let counts = results.counts();
        assert_eq!((counts.passed, counts.failed), (3, 1));
    }

    #[test]
    fn a_program_that_dies_is_a_failure() {
        for status in ["124", "137", "134", "127"] {
            let end = format!("[end] a {status}");
            assert_eq!(read(&["[start] a", &end]).counts().failed, 1, "{status}");
        }
    }
}
