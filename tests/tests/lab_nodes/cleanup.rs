//! What stays of node IPs when the gate is off, the agent is paused, or has ended.

use std::{process::Command, time::Duration};

use neighsteer_tests::lab::{Lab, wait_until};

use crate::{
    rig::{PATIENCE, Rig},
    support::Nodes,
};

const DEADLINE: Duration = Duration::from_secs(30);

fn start() -> Nodes {
    Nodes::on(Rig::build(Lab::builder(), 3, &[]), 2)
}

fn wait_until_none_is_left(nodes: &Nodes) {
    wait_until(PATIENCE, "our static rows to go", || {
        let left = nodes.written();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}; {}", nodes.rig.status()["nodes"]))
        }
    })
    .unwrap();
    nodes.masquerade_rows_are_untouched();
}

fn succeed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rows_outlive_the_agent_and_cleanup_takes_ours_away() {
    let nodes = start();
    let mut agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    agent.kill().unwrap();
    let rows = nodes.written();
    assert_eq!(rows, nodes.wanted());

    succeed(nodes.rig.command(&["cleanup", "--keep-rows"]));
    assert_eq!(nodes.written(), rows);
    let said = succeed(nodes.rig.command(&["cleanup"]));
    assert!(said.contains("12 static bindings"), "{said}");
    assert!(nodes.written().is_empty());
    nodes.masquerade_rows_are_untouched();
}

#[test]
fn an_agent_that_starts_with_the_gate_off_takes_our_rows_away() {
    let nodes = start();
    let mut agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    agent.terminate(DEADLINE).unwrap();
    let directory = nodes.manifests.directory().to_str().unwrap();
    let _agent = nodes.rig.agent(&["--nodes", directory]);
    wait_until_none_is_left(&nodes);
}

#[test]
fn an_agent_with_the_gate_off_leaves_rows_that_it_is_to_keep() {
    let nodes = start();
    let mut agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    agent.terminate(DEADLINE).unwrap();
    let directory = nodes.manifests.directory().to_str().unwrap();
    for flags in [&["--keep-rows", "--nodes", directory][..], &["--keep-rows"]] {
        let mut keeper = nodes.rig.agent(flags);
        nodes.rig.wait_for_status("rows that are known", |status| {
            let rows = &status["nodes"]["static_rows"];
            let known = status["nodes"]["keep_rows"] == true && rows["synced"] == true;
            (known && rows["rows"].as_u64()? > 0).then_some(())
        });
        assert_eq!(nodes.written(), nodes.wanted(), "{flags:?}");
        succeed(control(&nodes, "pause"));
        succeed(control(&nodes, "resume"));
        assert_eq!(nodes.written(), nodes.wanted(), "{flags:?}, paused");
        keeper.terminate(DEADLINE).unwrap();
    }
    let mut dry_run = nodes.rig.command(&["agent"]);
    dry_run.args(["--dry-run", "--keep-rows", "--nodes", directory]);
    let said = succeed(dry_run);
    assert!(!said.contains("delete"), "{said}");
    // Without the flag they go, and nobody has forgotten whose they were.
    let _agent = nodes.rig.agent(&[]);
    wait_until_none_is_left(&nodes);
}

#[test]
fn a_paused_agent_has_no_rows_and_a_resumed_one_has_them_again() {
    let nodes = start();
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    succeed(control(&nodes, "pause"));
    wait_until_none_is_left(&nodes);
    succeed(control(&nodes, "resume"));
    nodes.wait_for_static_rows();
}

fn control(nodes: &Nodes, command: &str) -> Command {
    let directory = nodes.rig.lab.state_directory();
    let mut control = nodes.rig.lab.neighsteer(&[command]).unwrap();
    control.arg("--state-dir").arg(directory);
    control
}

#[test]
fn a_dry_run_says_which_rows_would_be_written_and_writes_none() {
    let nodes = start();
    let dry_run = |strategy: &str| {
        let flags = nodes.flags(&["--node-bindings", strategy, "--dry-run", "--output", "json"]);
        let mut command = nodes.rig.command(&["agent"]);
        command.args(flags);
        let text = succeed(command);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let rows =
        |report: &serde_json::Value| report["nodes"]["static_rows"].as_array().unwrap().len();
    let planned = dry_run("static");
    assert_eq!(rows(&planned), nodes.wanted().len(), "{planned}");
    assert_eq!(planned["nodes"]["strategy"], "static");
    // The same bindings, in the other database.
    let planned = dry_run("dynamic");
    let bindings = planned["bindings"].as_array().unwrap();
    let inserts = bindings.iter().filter(|row| row["change"] == "insert");
    assert_eq!(inserts.count(), nodes.wanted().len(), "{planned}");
    assert!(nodes.written().is_empty());

    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    assert_eq!(rows(&dry_run("static")), 0);
    // All of them would go.
    assert_eq!(rows(&dry_run("dynamic")), nodes.wanted().len());
}
