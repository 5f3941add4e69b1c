//! `neighsteer pause` and `neighsteer resume`: a switch at run time, kept for later runs.

use std::time::Duration;

use serde::Serialize;
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
is written; the datapath goes on counting. It stays so over restarts of the agent, until `resume`.

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
}

/// Pauses or resumes, and waits until every bridge has followed; [`Finding::Found`] where one has
/// not in time (`neighsteer status` says which).
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
    let is =
        |value: &serde_json::Value, key| value.get(key) == Some(&serde_json::Value::Bool(true));
    let deadline = Instant::now() + PATIENCE;
    let settled = loop {
        let status = request(directory, Command::Status).await?;
        if is(&status, "settled") || Instant::now() > deadline {
            break is(&status, "settled");
        }
        sleep(POLL).await;
    };
    let report = Report {
        paused: is(&answer, "paused"),
        changed: is(&answer, "changed"),
        settled,
    };
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Text => output.line(describe(&report))?,
    }
    Ok(if settled {
        Finding::Clean
    } else {
        Finding::Found
    })
}

fn describe(report: &Report) -> String {
    let state = match (report.paused, report.changed) {
        (true, true) => "paused: none of our flows is on a bridge, nothing is mirrored",
        (true, false) => "paused already",
        (false, true) => "resumed: steering and mirroring as the gates say",
        (false, false) => "not paused",
    };
    if report.settled {
        return state.to_owned();
    }
    format!("{state}; a bridge has not followed yet, see `neighsteer status`")
}
