//! What the demo is at: a bar on a terminal, lines elsewhere; always on standard error.

use std::fmt::Display;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Announces steps.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
    started: Instant,
    step: u64,
}

impl Progress {
    /// A bar where standard error is a terminal, lines where it is not.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            lines: !std::io::stderr().is_terminal(),
            started: Instant::now(),
            step: 0,
        }
    }

    pub(crate) fn begin(&mut self, steps: u64) {
        self.bar = ProgressBar::with_draw_target(
            Some(steps),
            if self.lines {
                ProgressDrawTarget::hidden()
            } else {
                ProgressDrawTarget::stderr()
            },
        );
        let style = "{spinner} [{pos}/{len}] {wide_msg} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.bar.set_style(style);
        }
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    pub(crate) fn step(&mut self, what: impl Display) {
        self.step += 1;
        self.bar.set_position(self.step);
        self.bar.set_message(what.to_string());
        if self.lines {
            eprintln!("{:6.1} s  {what}", self.started.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
        if self.lines {
            eprintln!("{:6.1} s  done", self.started.elapsed().as_secs_f64());
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
