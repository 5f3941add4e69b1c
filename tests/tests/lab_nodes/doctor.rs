//! What `neighsteer doctor` says of a node, told the agent's flags.

use std::path::Path;

use neighsteer_tests::lab::Lab;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::{
    rig::{Rig, STEER},
    support::Nodes,
};

/// Its exit code, and of each check by its name the verdict and what was found.
fn doctor(rig: &Rig, flags: &[&str]) -> (Option<i32>, Vec<[String; 3]>) {
    let mut command = rig.command(&["doctor", "--output", "json"]);
    let output = command.args(flags).output().unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
    let checks = checks.iter().map(|it| {
        let [check, verdict, found] = ["check", "verdict", "found"].map(|field| text(it, field));
        [check, verdict, found]
    });
    (output.status.code(), checks.collect())
}

/// The checks that have a verdict.
fn with(verdict: &str, checks: &[[String; 3]]) -> Vec<[String; 2]> {
    let found = checks.iter().filter(|it| it[1] == verdict);
    found
        .map(|[check, _, found]| [check.clone(), found.clone()])
        .collect()
}

#[test]
fn doctor_is_content_with_a_node_that_has_all_that_the_agent_needs() {
    let nodes = Nodes::on(Rig::build(Lab::builder(), 2, &[]), 2);
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    let (code, checks) = doctor(&nodes.rig, &nodes.flags(&[]));
    assert_eq!(code, Some(0), "{checks:?}");
    assert_eq!(with("error", &checks), [[""; 2]; 0]);
    assert_eq!(with("warning", &checks), [[""; 2]; 0]);
    let known = nodes.peers.len() + 1;
    let wanted = ["nodes".to_owned(), format!("{known} nodes, 0 UplinkStates")];
    assert!(with("ok", &checks).contains(&wanted), "{checks:?}");
}

#[test]
fn doctor_names_what_the_agents_flags_ask_for_in_vain() {
    let nodes = Nodes::on(Rig::build(Lab::builder(), 1, &[]), 1);
    let agent = nodes.agent(&["--datapath", "none"]);
    nodes.rig.wait_for_status("steering", |status| {
        (status["settled"] == true).then_some(())
    });
    let missing = nodes.rig.lab.directory().join("no-manifests");
    let is_named = |flags: &[&str], check: &str, reason: &str| {
        let (code, checks) = doctor(&nodes.rig, &[&STEER[..], flags].concat());
        assert_eq!(code, Some(1), "{flags:?}: {checks:?}");
        let errors = with("error", &checks);
        let named = errors.iter();
        let mut named = named.filter(|error| error[0] == check && error[1].contains(reason));
        assert!(named.next().is_some(), "{flags:?}: {errors:?}");
        assert_eq!(errors.len(), 1, "and nothing else: {errors:?}");
    };
    is_named(
        &["--match", "mark"],
        "steering by mark on br-ex",
        "datapath type is netdev",
    );
    is_named(
        &["--validate", "drop"],
        "dropping on br-ex",
        "takes frames before tc",
    );
    is_named(
        &["--match", "mark", "--datapath", "xdp"],
        "flags",
        "--match mark needs --datapath tc",
    );
    is_named(
        &["--nodes", path(&missing)],
        "nodes",
        "no node is known from manifests in",
    );
    kill(pid(agent.pid()), Signal::SIGSTOP).unwrap();
    is_named(&[], "agent", "no answer in 5 s");
    kill(pid(agent.pid()), Signal::SIGCONT).unwrap();
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(pid.try_into().unwrap())
}
