//! The agent that runs here, if any, and whether it is the one that was asked about.

use std::path::Path;

use serde_json::Value;

use super::report::Report;
use crate::{
    agent::{
        chain,
        control::{Command, ControlError, request},
        lock,
        state::StateFile,
    },
    cli::{agent::AgentSettings, status},
    plan::{GateError, Gates},
};

/// What it says of itself.
pub(super) async fn ask(directory: &Path) -> Result<Value, ControlError> {
    request(directory, Command::Status).await
}

/// Whether bridges are to be steered now: as the agent that runs was told, else as was asked.
pub(super) fn steers(agent: &Result<Value, ControlError>, directory: &Path, asked: bool) -> bool {
    match agent {
        Ok(status) => has_gate(status) && !is_paused(status),
        Err(_) => asked && !StateFile::open(directory).is_ok_and(|state| state.paused()),
    }
}

fn has_gate(status: &Value) -> bool {
    status.get("steering_gate") == Some(&Value::Bool(true))
}

fn is_paused(status: &Value) -> bool {
    status.get("paused") == Some(&Value::Bool(true))
}

pub(super) fn check(
    report: &mut Report,
    agent: &Result<Value, ControlError>,
    settings: &AgentSettings,
    gates: Result<Gates, GateError>,
) {
    let directory = &settings.state.state_dir;
    match agent {
        Ok(status) => differences(report, status, settings, gates),
        Err(error @ ControlError::Connect { .. }) => {
            report.warn("agent", chain(error), "start `neighsteer agent`");
            match StateFile::open(directory) {
                Ok(state) if state.paused() => report.warn(
                    "agent",
                    "paused by hand: one that starts does not steer",
                    "`neighsteer resume` once it runs",
                ),
                Ok(_) => {}
                Err(error) => report.error("agent", chain(&error), "mend or remove that file"),
            }
        }
        Err(error @ ControlError::Denied { .. }) => {
            report.warn("agent", chain(error), "ask as root or as the agent's user");
        }
        Err(error) => {
            let holder = match lock::holder_in(directory) {
                Some(pid) => format!(" (pid {pid})"),
                None => String::new(),
            };
            report.error(
                "agent",
                chain(error),
                format!(
                    "something listens there and does not answer as an agent does: look at its log, end \
                     it{holder}, and start it again"
                ),
            );
        }
    }
}

/// How the agent that runs differs from the one that was asked about, and what is wrong with it.
fn differences(
    report: &mut Report,
    status: &Value,
    settings: &AgentSettings,
    gates: Result<Gates, GateError>,
) {
    let mode = settings.connection.host.mode;
    let said = status.get("mode").and_then(Value::as_str);
    let mut is_same = true;
    if let Some(said) = said.filter(|said| *said != mode.word()) {
        is_same = false;
        let advice = format!("ask with --mode {said}");
        report.warn("agent", format!("it runs in mode {said}"), advice);
    }
    if gates.is_ok_and(|gates| gates.steering() != has_gate(status)) {
        is_same = false;
        let (is, flags) = match has_gate(status) {
            true => (
                "on",
                "ask with --enable-network-segmentation --disable-udn-arp-ndp-flood",
            ),
            false => ("off", "ask without the gates, or start it with them"),
        };
        report.warn("agent", format!("it runs with the gate {is}"), flags);
    }
    if is_paused(status) {
        let advice = "`neighsteer resume` ends that";
        report.warn("agent", "paused by hand: it does not steer", advice);
    }
    for problem in status::problems(status) {
        report.warn("agent", problem, "`neighsteer status` says more");
    }
    if is_same {
        report.ok("agent", "it runs; `neighsteer status` says how it stands");
    }
}
