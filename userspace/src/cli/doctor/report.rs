//! What was found, one line each.

use std::fmt;

use serde::Serialize;

use crate::cli::output::Output;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// The agent works, with less than all.
    Warning,
    /// The agent does not work.
    Error,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// What to do; `None` where all is well.
    pub(super) advice: Option<String>,
}

/// All checks, in their order.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Report {
    pub(super) checks: Vec<Check>,
}

impl Report {
    pub(super) fn ok(&mut self, check: impl Into<String>, found: impl fmt::Display) {
        self.add(check, Verdict::Ok, found, None);
    }

    pub(super) fn warn(
        &mut self,
        check: impl Into<String>,
        found: impl fmt::Display,
        advice: impl Into<String>,
    ) {
        self.add(check, Verdict::Warning, found, Some(advice.into()));
    }

    pub(super) fn error(
        &mut self,
        check: impl Into<String>,
        found: impl fmt::Display,
        advice: impl Into<String>,
    ) {
        self.add(check, Verdict::Error, found, Some(advice.into()));
    }

    /// An error of something that is not there, or that we may not ask.
    pub(super) fn unreached(&mut self, check: &str, found: String, advice: &str) {
        let advice = match found.contains("Permission denied") {
            true => "run this as root, or as a user who may ask it",
            false => advice,
        };
        self.error(check, found, advice);
    }

    fn add(
        &mut self,
        check: impl Into<String>,
        verdict: Verdict,
        found: impl fmt::Display,
        advice: Option<String>,
    ) {
        self.checks.push(Check {
            check: check.into(),
            verdict,
            found: found.to_string(),
            advice,
        });
    }

    pub(super) fn has_errors(&self) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.verdict == Verdict::Error)
    }

    pub(super) fn print(&self, output: &mut Output<'_>) -> anyhow::Result<()> {
        if output.is_json() {
            output.json(self)?;
            return Ok(());
        }
        for Check {
            check,
            verdict,
            found,
            advice,
        } in &self.checks
        {
            let advice = match advice {
                Some(advice) => format!("; to do: {advice}"),
                None => String::new(),
            };
            output.line(format_args!(
                "{:<8}{check}: {found}{advice}",
                verdict.word()
            ))?;
        }
        Ok(())
    }
}
