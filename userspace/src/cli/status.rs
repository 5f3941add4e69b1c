//! `neighsteer status`: how the running agent stands.

mod nodes;

use super::{
    connection::StateArgs,
    output::{Finding, Format, Output},
};
use crate::agent::control::{Command, request};

/// The flags of `neighsteer status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 1 where something is not as it should be.

Examples:
  neighsteer status
  neighsteer status --output json | jq .mirror")]
pub struct StatusArgs {
    /// Where the agent's socket is
    #[command(flatten)]
    pub state: StateArgs,
}

/// Prints what the agent says of itself; [`Finding::Found`] where a database is disconnected, a
/// bridge has not converged, is contended or left to others, another agent mirrors, a datapath is not attached,
/// or nodes are not known or wrong.
///
/// # Errors
/// Where no agent answers.
pub async fn run(args: &StatusArgs, output: &mut Output<'_>) -> anyhow::Result<Finding> {
    let status = request(&args.state.state_dir, Command::Status).await?;
    let problems = problems(&status);
    match output.format {
        Format::Json => output.json(&status)?,
        Format::Text => {
            print(&status, output)?;
            for problem in &problems {
                output.line(format_args!("problem: {problem}"))?;
            }
        }
    }
    Ok(if problems.is_empty() {
        Finding::Clean
    } else {
        Finding::Found
    })
}

fn objects<'a>(
    status: &'a serde_json::Value,
    key: &str,
) -> impl Iterator<Item = (String, &'a serde_json::Value)> {
    let value = status.get(key);
    let map = value
        .and_then(serde_json::Value::as_object)
        .into_iter()
        .flatten();
    let map = map.map(|(name, value)| (name.clone(), value));
    let list = value
        .and_then(serde_json::Value::as_array)
        .into_iter()
        .flatten();
    map.chain(list.map(|value| (String::new(), value)))
}

fn text(value: &serde_json::Value, key: &str) -> String {
    match value.get(key) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(serde_json::Value::Null) | None => "-".to_owned(),
        Some(serde_json::Value::Array(list)) => list.len().to_string(),
        Some(other) => other.to_string(),
    }
}

fn is_false(value: &serde_json::Value, key: &str) -> bool {
    value.get(key).and_then(serde_json::Value::as_bool) == Some(false)
}

fn is_true(value: &serde_json::Value, key: &str) -> bool {
    value.get(key).and_then(serde_json::Value::as_bool) == Some(true)
}

/// What is not as it should be.
pub(super) fn problems(status: &serde_json::Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, database) in
        objects(status, "databases").filter(|(_, database)| is_false(database, "connected"))
    {
        problems.push(format!(
            "database {name} is disconnected: {}",
            text(database, "last_error")
        ));
    }
    for (_, bridge) in
        objects(status, "steering").filter(|(_, bridge)| is_false(bridge, "converged"))
    {
        problems.push(format!(
            "bridge {} has not converged: {}",
            text(bridge, "bridge"),
            text(bridge, "last_error")
        ));
    }
    for (_, bridge) in objects(status, "steering") {
        let name = text(bridge, "bridge");
        if is_true(bridge, "standing_down") {
            problems.push(format!(
                "bridge {name} is left to others: {} flows of theirs stand where ours would",
                text(bridge, "foreign_flows")
            ));
        }
        if is_true(bridge, "contended") {
            problems.push(format!(
                "bridge {name} is contended: somebody has taken {} of our flows away",
                text(bridge, "flows_lost")
            ));
        }
    }
    for (_, group) in objects(status, "groups") {
        if let Some(reason) = group.get("no_mark").and_then(serde_json::Value::as_str) {
            problems.push(format!(
                "bridge {} is steered by headers, not by mark: {reason}",
                text(group, "bridge")
            ));
        }
        if let Some(reason) = group.get("no_drop").and_then(serde_json::Value::as_str) {
            problems.push(format!("bridge {}: {reason}", text(group, "bridge")));
        }
    }
    let steers = !is_false(status, "steering_gate") && !is_true(status, "paused");
    if steers && objects(status, "groups").next().is_none() {
        problems.push(
            "no bridge is steered: no gateway routers of this node share one, or what they need is missing (`takes no part` above)"
                .to_owned(),
        );
    }
    match status
        .get("mirror_lock")
        .and_then(serde_json::Value::as_str)
    {
        Some("waiting") => problems
            .push("somebody else holds the mirror's lock, such as another agent of this chassis; this one waits for it".to_owned()),
        Some("stolen") => problems.push(
            "somebody took the mirror's lock; nothing is mirrored until it comes back".to_owned(),
        ),
        _ => {}
    }
    for (_, datapath) in objects(status, "datapath") {
        if datapath.get("error").is_some_and(|error| !error.is_null()) {
            problems.push(format!(
                "interface {} is not attached: {}",
                text(datapath, "interface"),
                text(datapath, "error")
            ));
        }
    }
    problems.extend(nodes::problems(status));
    problems
}

/// Whether there are bridges, and all of them are left to others.
fn is_left_to_others(status: &serde_json::Value) -> bool {
    let mut bridges = objects(status, "steering").map(|(_, it)| is_true(it, "standing_down"));
    bridges
        .next()
        .is_some_and(|first| first && bridges.all(|it| it))
}

fn doing(status: &serde_json::Value) -> &'static str {
    match (is_false(status, "steering_gate"), is_true(status, "paused")) {
        (true, false) => "observing",
        (true, true) => "observing; paused by hand besides (`neighsteer resume` ends that)",
        (false, true) => "paused by hand (`neighsteer resume` ends that)",
        (false, false) if objects(status, "groups").next().is_none() => "nothing to steer",
        (false, false) if is_left_to_others(status) => "leaving every bridge to others",
        (false, false) => "steering and mirroring",
    }
}

fn print(status: &serde_json::Value, output: &mut Output<'_>) -> anyhow::Result<()> {
    let mode = match text(status, "mode").as_str() {
        "full" => String::new(),
        mode => format!("{mode}, "),
    };
    output.line(format_args!(
        "agent {} pid {}, {mode}{}",
        text(status, "version"),
        text(status, "pid"),
        doing(status)
    ))?;
    for (_, group) in objects(status, "groups") {
        output.line(format_args!(
            "bridge {} ({}): host {}, source {}, {} followers, {} external-ingress ports{}",
            text(group, "bridge"),
            text(group, "bridge_mac"),
            text(group, "host"),
            text(group, "source"),
            text(group, "followers"),
            text(group, "external_ingress_ports"),
            match group
                .get("steering_mark")
                .and_then(serde_json::Value::as_str)
            {
                Some(mark) => format!(", steered by mark {mark}"),
                None => String::new(),
            }
        ))?;
    }
    for (_, datapath) in objects(status, "datapath") {
        output.line(format_args!(
            "datapath {}: {}, validate {}",
            text(datapath, "interface"),
            text(datapath, "mode"),
            text(datapath, "validate")
        ))?;
    }
    for (_, bridge) in objects(status, "steering") {
        output.line(format_args!(
            "steering {}: {} flows, {} no-flood ports, {}; since the start {} flows added, {} deleted, {} lost to others",
            text(bridge, "bridge"),
            text(bridge, "flows"),
            text(bridge, "no_flood_ports"),
            if is_true(bridge, "watched") { "watched" } else { "not watched" },
            text(bridge, "flows_added"),
            text(bridge, "flows_deleted"),
            text(bridge, "flows_lost")
        ))?;
    }
    for (bridge, mirror) in objects(status, "mirror") {
        output.line(format_args!(
            "mirror {bridge}: {} bindings of {}, {} followers, {} rows known, lag {} ms",
            text(mirror, "bindings"),
            text(mirror, "source"),
            text(mirror, "followers"),
            text(mirror, "rows"),
            text(mirror, "lag_ms")
        ))?;
    }
    for line in nodes::lines(status) {
        output.line(line)?;
    }
    output.line(format_args!(
        "bindings that cannot be read: {}",
        text(status, "bad_bindings")
    ))?;
    for (_, skipped) in objects(status, "skipped") {
        output.line(format_args!(
            "takes no part: {}: {}",
            text(skipped, "object"),
            text(skipped, "reason")
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_shown_with_the_gate_off_too() {
        let of = |steering_gate, paused| {
            let groups = serde_json::json!([{}]);
            doing(&serde_json::json!({
                "steering_gate": steering_gate, "paused": paused, "groups": groups,
            }))
        };
        assert!(of(false, true).contains("paused by hand"));
        assert!(of(true, true).contains("paused by hand"));
        assert_eq!(of(false, false), "observing");
        assert_eq!(of(true, false), "steering and mirroring");
    }

    #[test]
    fn a_node_that_should_be_steered_and_is_not_is_a_problem() {
        let of = |gate, groups: &[u8]| serde_json::json!({ "steering_gate": gate, "paused": false, "groups": groups });
        assert_eq!(problems(&of(false, &[])), Vec::<String>::new());
        assert_eq!(problems(&of(true, &[1])), Vec::<String>::new());
        assert!(problems(&of(true, &[]))[0].contains("no bridge is steered"));
        assert_eq!(doing(&of(true, &[])), "nothing to steer");
    }
}
