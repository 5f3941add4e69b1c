//! `neighsteer pause` and `neighsteer resume`.

use crate::{
    rig::{PATIENCE, Rig, STEER, packets},
    seen::{bare_rig, number, wait_bare, wait_complete, watching_agent},
};
use neighsteer_tests::{
    frames::arp_reply,
    lab::{BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_MAC, NODE_IPV4},
};
use serde_json::Value;
use std::time::Duration;

fn command(rig: &Rig, name: &str) -> std::process::Output {
    let directory = rig.lab.state_directory().display().to_string();
    let arguments = [name, "--output", "json", "--state-dir", &directory];
    rig.lab.neighsteer(&arguments).unwrap().output().unwrap()
}

fn carried_out(rig: &Rig, name: &str) -> Value {
    let output = command(rig, name);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn paused_nothing_of_ours_is_there_frames_are_counted_and_a_restart_changes_nothing() {
    let rig = bare_rig(2);
    let mut agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();

    let report = carried_out(&rig, "pause");
    assert_eq!(
        (&report["paused"], &report["changed"]),
        (&true.into(), &true.into())
    );
    wait_bare(&rig);
    assert_eq!(carried_out(&rig, "pause")["changed"], false);
    assert_eq!(rig.status()["paused"], true);
    assert!(agent.log().contains("paused"));

    // Counted, and not mirrored.
    let counted = packets(&rig, "arp-reply", "steer-arp");
    let reply = arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4);
    rig.lab.send_from_outside(&[reply], Duration::ZERO).unwrap();
    neighsteer_tests::lab::wait_until(PATIENCE, "one more frame", || {
        let now = packets(&rig, "arp-reply", "steer-arp");
        if now > counted { Ok(()) } else { Err(now) }
    })
    .unwrap();
    rig.source_learns("172.18.7.7");
    assert_eq!(rig.status()["mirror"], serde_json::json!({}));

    agent.terminate(PATIENCE).unwrap();
    let dry = rig.run(&[&["agent", "--dry-run", "--output", "json"], &STEER[..]].concat());
    let dry: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(dry["paused"], true);
    assert_eq!(dry["bindings"], serde_json::json!([]));
    let _agent = rig.agent(&[&STEER[..], &["--check-interval", "600"]].concat());
    rig.wait_for_status("a start that stays paused", |status| {
        (status["paused"] == true && status["settled"] == true).then_some(())
    });
    wait_bare(&rig);
    let seven = "172.18.7.7".parse().unwrap();
    assert_eq!(
        rig.lab.mac_bindings(seven).unwrap().len(),
        1,
        "nothing is mirrored"
    );

    let report = carried_out(&rig, "resume");
    assert_eq!(
        (&report["paused"], &report["changed"]),
        (&false.into(), &true.into())
    );
    wait_complete(&rig, flows, &[1, 2]);
    rig.wait_for_bindings(seven, &[0, 1, 2]);
    assert_eq!(carried_out(&rig, "resume")["changed"], false);
}

#[test]
fn without_an_agent_pause_says_so() {
    let rig = Rig::start(1, &[]);
    let output = command(&rig, "pause");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("no agent answers"), "{stderr}");
}
