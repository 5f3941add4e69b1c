//! `neighsteer pause` and `neighsteer resume`: a switch at run time, kept for later runs.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    connection::StateArgs,
    output::{Finding, Format, Output},
};
use crate::agent::control::{Command, request};

/// How long the bridges may take to follow.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often the agent is asked meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// The flags of `neighsteer pause` and `neighsteer resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
While paused, none of our flows, no-flood flags and static FDB entries is on any bridge and no binding
is written, those of node IPs are deleted; the datapath goes on counting. It stays so over restarts of the agent, until `resume`.

Examples:
  neighsteer pause
  neighsteer resume --output json")]
pub struct PauseArgs {
    /// Where the agent's socket is
    #[command(flatten)]
    pub state: StateArgs,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    paused: bool,
    changed: bool,
    settled: bool,
    /// Rows of node IPs that are still there although we are paused.
    static_bindings_left: u64,
    /// Why they are.
    northbound_error: Option<String>,
}

impl Report {
    fn is_done(&self) -> bool {
        self.settled && self.static_bindings_left == 0
    }

    /// Whether waiting any longer is of use.
    fn is_final(&self) -> bool {
        self.settled && (self.static_bindings_left == 0 || self.northbound_error.is_some())
    }
}

/// Pauses or resumes, and waits until every bridge has followed and the static bindings have gone;
/// [`Finding::Found`] where that is not so in time (`neighsteer status` says what).
///
/// # Errors
/// Where no agent answers, or the change cannot be kept: then nothing is changed.
pub async fn run(
    args: &PauseArgs,
    pause: bool,
    output: &mut Output<'_>,
) -> anyhow::Result<Finding> {
    let directory = &args.state.state_dir;
    let command = if pause {
        Command::Pause
    } else {
        Command::Resume
    };
    let answer = request(directory, command).await?;
    let deadline = Instant::now() + PATIENCE;
    let report = loop {
        let status = request(directory, Command::Status).await?;
        let report = report(&answer, &status);
        if report.is_final() || Instant::now() > deadline {
            break report;
        }
        sleep(POLL).await;
    };
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => output.line(describe(&report))?,
    }
    Ok(if report.is_done() {
        Finding::Clean
    } else {
        Finding::Found
    })
}

fn report(answer: &Value, status: &Value) -> Report {
    let is = |value: &Value, key| value.get(key) == Some(&Value::Bool(true));
    let paused = is(answer, "paused");
    let northbound = status.pointer("/databases/OVN_Northbound");
    let lost = northbound.filter(|it| it.get("connected") == Some(&Value::Bool(false)));
    let is_true = |path| status.pointer(path) == Some(&Value::Bool(true));
    let has_source = status
        .pointer("/nodes/source")
        .is_some_and(|it| !it.is_null());
    // Rows that are nobody's known to the agent stay, too.
    let kept = is_true("/nodes/keep_rows") || !(has_source || is_true("/nodes/withdraws"));
    let ours = status.pointer("/nodes/static_rows/ours");
    Report {
        paused,
        changed: is(answer, "changed"),
        settled: is(status, "settled"),
        static_bindings_left: (ours.and_then(Value::as_u64).filter(|_| paused && !kept))
            .unwrap_or(0),
        northbound_error: lost.map(|it| {
            let error = it.get("last_error").and_then(Value::as_str);
            error.unwrap_or("it is not connected").to_owned()
        }),
    }
}

fn describe(report: &Report) -> String {
    let state = match (report.paused, report.changed) {
        (true, true) => "paused: none of our flows is on a bridge, nothing is mirrored",
        (true, false) => "paused already",
        (false, true) => "resumed: steering and mirroring as the gates say",
        (false, false) => "not paused",
    };
    if !report.settled {
        let state = if report.paused { "paused" } else { "resumed" };
        return format!(
            "{state}, but a bridge has not followed yet and has other flows than it should, see \
             `neighsteer status`"
        );
    }
    match (report.static_bindings_left, &report.northbound_error) {
        (0, _) => state.to_owned(),
        (left, Some(error)) => format!(
            "{state}; {left} static bindings stay until the northbound database is back: {error}"
        ),
        (left, None) => {
            format!("{state}; {left} static bindings are still there, see `neighsteer status`")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_that_stay_because_the_northbound_database_is_away_are_said() {
        let status = |connected: bool, ours: u64| {
            json!({"settled": true, "nodes": {"source": {}, "static_rows": {"ours": ours}},
                "databases": {"OVN_Northbound": {"connected": connected, "last_error": "refused"}}})
        };
        let paused = json!({"paused": true, "changed": true});
        let left = report(&paused, &status(false, 7));
        assert!(left.is_final() && !left.is_done());
        let text = describe(&left);
        assert!(text.contains("7 static bindings stay"), "{text}");
        assert!(text.contains("refused"), "{text}");
        assert!(!report(&paused, &status(true, 7)).is_final());
        assert!(report(&paused, &status(false, 0)).is_done());
        let resumed = json!({"paused": false, "changed": true});
        assert!(report(&resumed, &status(true, 7)).is_done());
    }
}
