//! What `neighsteer status` says of node IPs.

use serde_json::Value;

use super::{is_false, text};

/// A part of the agent's word about nodes; `Null` where there is none.
fn part<'a>(status: &'a Value, keys: &[&str]) -> &'a Value {
    let nodes = status.get("nodes").unwrap_or(&Value::Null);
    let mut part = nodes;
    for key in keys {
        part = part.get(key).unwrap_or(&Value::Null);
    }
    part
}

/// The lines about node IPs.
pub(super) fn lines(status: &Value) -> Vec<String> {
    if part(status, &[]).is_null() {
        return Vec::new();
    }
    let source = part(status, &["source"]);
    let kept = part(status, &["keep_rows"]) == &Value::Bool(true);
    let mut lines = Vec::new();
    if source.is_null() {
        let what = match (kept, part(status, &["withdraws"]) == &Value::Bool(true)) {
            (true, _) => "stays (--keep-rows)",
            (false, true) => "goes",
            (false, false) if has_none(status) => return lines,
            (false, false) => "and is not known as ours stays",
        };
        lines.push(format!(
            "nodes: no source; what an earlier run wrote for them {what}"
        ));
    } else {
        lines.push(format!(
            "nodes: {} of {}, {} uplink states",
            text(part(status, &["source", "nodes"]), "known"),
            text(source, "source"),
            text(part(status, &["source", "uplink_states"]), "known"),
        ));
    }
    if is_false(status, "steering_gate") || status.get("paused") == Some(&Value::Bool(true)) {
        lines.push(match kept {
            true => "node IPs: static bindings that are there stay as they are, since steering is off (--keep-rows)".to_owned(),
            false => "node IPs: no bindings, since steering is off or paused".to_owned(),
        });
    } else if let Some(strategy) = part(status, &["strategy"]).as_str() {
        let why = text(part(status, &[]), "why");
        lines.push(format!("node IPs: {strategy} bindings, since {why}"));
    }
    let rows = part(status, &["static_rows"]);
    let counters = part(status, &["static_rows", "counters"]);
    lines.push(format!(
        "static bindings: {} of ours among {} rows known; since the start {} transactions",
        text(rows, "ours"),
        text(rows, "rows"),
        text(counters, "transactions"),
    ));
    lines
}

/// Whether there are no static rows that could be ours.
fn has_none(status: &Value) -> bool {
    part(status, &["static_rows", "ours"]).as_u64() == Some(0)
}

/// What is not as it should be about nodes.
pub(super) fn problems(status: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let source = part(status, &["source"]);
    let nodes = part(status, &["source", "nodes"]);
    if is_false(source, "synced") {
        problems.push(format!(
            "no node is known yet, so that followers have no bindings of nodes: {}",
            text(source, "last_error")
        ));
    } else if is_false(nodes, "current") {
        problems.push(format!(
            "nodes may have changed meanwhile; what was known stays: {}",
            text(source, "last_error")
        ));
    }
    let number = |keys: &[&str], key: &str| {
        let number = part(status, keys).get(key).and_then(Value::as_u64);
        number.unwrap_or(0)
    };
    let bad = number(&["source", "nodes"], "bad_objects")
        + number(&["source", "uplink_states"], "bad_objects");
    if bad > 0 {
        problems.push(format!(
            "{bad} objects could not be told from others: {}",
            text(source, "last_error")
        ));
    }
    let held = number(&["static_rows"], "held");
    if held > 0 {
        problems.push(format!(
            "{held} static bindings are left alone for a while: the server refused them, or somebody else writes them too"
        ));
    }
    let unreadable = number(&["static_rows"], "unreadable");
    if unreadable > 0 {
        problems.push(format!(
            "{unreadable} static bindings at our ports have an address that cannot be read: they are left alone"
        ));
    }
    let warnings = part(status, &["warnings"]).as_array();
    problems
        .extend((warnings.into_iter().flatten()).filter_map(|it| Some(it.as_str()?.to_owned())));
    if let Some(error) = part(status, &["state_error"]).as_str() {
        problems.push(format!("no static binding is written: {error}"));
    }
    match part(status, &["lock"]).as_str() {
        Some("waiting") => problems.push(
            "somebody else holds the lock of the static bindings, such as another agent of this chassis; this one waits for it"
                .to_owned(),
        ),
        Some("stolen") => problems.push(
            "somebody took the lock of the static bindings; none is written until it comes back"
                .to_owned(),
        ),
        _ => {}
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_without_a_source_of_nodes_says_nothing_of_them() {
        for status in [json!({}), json!({ "nodes": null })] {
            assert!(lines(&status).is_empty());
            assert!(problems(&status).is_empty());
        }
    }

    #[test]
    fn nodes_that_are_not_known_and_what_is_wrong_with_them_are_problems() {
        let status = json!({"nodes": {
            "source": {"source": "manifests in /nodes", "synced": false, "last_error": "no such file",
                "nodes": {"known": 0, "current": false}, "uplink_states": {"known": 0}},
            "strategy": null, "warnings": ["node a has no binding"], "lock": "waiting",
            "static_rows": {"ours": 0, "rows": 4, "counters": {"transactions": 0}},
        }});
        let problems = problems(&status);
        assert!(problems[0].contains("no such file"), "{problems:?}");
        assert!(problems[1].contains("node a"), "{problems:?}");
        assert!(problems[2].contains("waits for it"), "{problems:?}");
        assert_eq!(lines(&status).len(), 2);
    }

    #[test]
    fn the_strategy_is_shown_with_its_reason() {
        let status = json!({"nodes": {
            "source": null, "strategy": "static", "why": "it is configured", "warnings": [],
            "lock": "held", "static_rows": {"ours": 6, "rows": 10, "counters": {"transactions": 1}},
        }});
        let lines = lines(&status);
        assert_eq!(
            lines[1],
            "node IPs: static bindings, since it is configured"
        );
        assert!(lines[2].contains("6 of ours among 10"), "{lines:?}");
        assert!(problems(&status).is_empty());
    }

    #[test]
    fn no_strategy_is_in_force_while_nothing_is_written() {
        let nodes = json!({"source": null, "withdraws": true, "strategy": "static",
            "why": "it is configured", "lock": "held", "static_rows": {"ours": 0, "rows": 0}});
        for (gate, paused) in [(true, true), (false, false)] {
            let status = json!({"steering_gate": gate, "paused": paused, "nodes": nodes});
            assert!(lines(&status)[1].starts_with("node IPs: no bindings"));
        }
        let nobodys = json!({"nodes": {"source": null, "withdraws": false,
            "static_rows": {"ours": 0, "rows": 4}}});
        assert!(lines(&nobodys).is_empty());
    }
}
