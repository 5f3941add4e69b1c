//! Reads what the test harness prints: counts, and what is worth showing.

use std::ops::AddAssign;

/// What a test prints, on a line of its own, when the machine cannot run it.
const SKIPPED: &str = "SKIPPED: ";

/// How the rows of a table begin.
const TABLE: &str = "| ";

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Follows a `cargo test … -- --show-output` line by line.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    summed: Counts,
    /// Tests of the program under way that passed by skipping themselves.
    skipped: usize,
    /// The test whose output is being read, if it has already been counted as skipped.
    counted: bool,
    in_successes: bool,
}

impl Reader {
    /// Takes a line; gives back what of it to show. The output of tests that passed is not shown,
    /// but for the reason of a skip and tables of what was measured.
    pub(crate) fn read<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        match line {
            "successes:" => {
                self.in_successes = true;
                return None;
            }
            "failures:" => self.in_successes = false,
            _ => {}
        }
        if let Some(result) = line.strip_prefix("test result: ") {
            self.in_successes = false;
            self.take_result(result);
            return Some(line);
        }
        if !self.in_successes {
            return Some(line);
        }
        if line.starts_with("---- ") {
            self.counted = false;
        }
        let skipped = line.starts_with(SKIPPED);
        if skipped && !self.counted {
            self.counted = true;
            self.skipped += 1;
        }
        (skipped || line.starts_with(TABLE)).then_some(line)
    }

    /// The sum so far.
    pub(crate) fn counts(&self) -> Counts {
        self.summed
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    fn take_result(&mut self, result: &str) {
        let number = |of: &str| {
            result
                .split([';', '.'])
                .filter_map(|part| part.trim().strip_suffix(of))
                .find_map(|number| number.trim().parse::<usize>().ok())
                .unwrap_or(0)
        };
        let skipped = std::mem::take(&mut self.skipped);
        self.summed += Counts {
            passed: number("passed").saturating_sub(skipped),
            failed: number("failed"),
            skipped: skipped + number("ignored"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test a_frame_is_counted ... ok
test a_vm_boots ... ok
test a_slow_one ... ignored
test a_flow_is_put_back ... FAILED

successes:

---- a_frame_is_counted stdout ----
failures:  none, says the program under test

---- a_vm_boots stdout ----
SKIPPED: no qemu
SKIPPED: and no image


successes:
    a_frame_is_counted
    a_vm_boots

failures:

---- a_flow_is_put_back stdout ----
no flow

failures:
    a_flow_is_put_back

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    fn read(output: &str) -> (Vec<&str>, Counts) {
        let mut reader = Reader::default();
        let shown = output
            .lines()
            .filter_map(|line| reader.read(line))
            .collect();
        (shown, reader.counts())
    }

    #[test]
    fn a_test_that_skips_itself_is_not_one_that_passed() {
        let (_, counts) = read(OUTPUT);
        assert_eq!(
            counts,
            Counts {
                passed: 1,
                failed: 1,
                skipped: 2
            }
        );
    }

    #[test]
    fn only_the_output_of_failed_tests_and_the_reasons_of_skips_are_shown() {
        let (shown, _) = read(OUTPUT);
        assert!(shown.contains(&"no flow"));
        assert!(shown.contains(&"SKIPPED: no qemu"));
        assert!(!shown.contains(&"failures:  none, says the program under test"));
    }

    #[test]
    fn the_sums_of_several_test_programs_add_up() {
        let (_, counts) = read(&format!("{OUTPUT}{OUTPUT}"));
        assert_eq!(counts.skipped, 4);
        assert_eq!(counts.passed, 2);
    }
}
