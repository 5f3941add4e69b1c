//! What takes long shows that it goes on: a spinner on a terminal, plain lines elsewhere.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Width to which a program's latest line is cut beside the spinner.
const DETAIL_CHARS: usize = 70;

/// How progress is shown on standard error.
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    /// Looks whether standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Says that a piece of work begins.
    pub(crate) fn step(&self, text: impl Into<String>) -> Step {
        let text = text.into();
        let bar = if self.terminal {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {msg:.dim}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(text.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        } else {
            eprintln!("… {text}");
            ProgressBar::hidden()
        };
        Step {
            bar,
            text,
            started: Instant::now(),
            terminal: self.terminal,
        }
    }
}

/// One piece of work under way; dropped without [`Step::done`], it has failed.
pub(crate) struct Step {
    bar: ProgressBar,
    text: String,
    started: Instant,
    terminal: bool,
}

impl Step {
    /// Shows the latest line of the program at work.
    pub(crate) fn detail(&self, line: &str) {
        if self.terminal {
            let cut: String = line.trim().chars().take(DETAIL_CHARS).collect();
            self.bar.set_message(cut);
        }
    }

    /// Says that the work has ended well, and after how long.
    pub(crate) fn done(self) {
        self.bar.finish_and_clear();
        eprintln!(
            "✓ {} ({:.1} s)",
            self.text,
            self.started.elapsed().as_secs_f64()
        );
    }

    /// Takes the step away without a word: there was nothing to do.
    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.bar.is_finished() {
            self.bar.finish_and_clear();
        }
    }
}
