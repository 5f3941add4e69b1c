//! Start, stop, restart, clean up.

use neighsteer_tests::lab::{Daemon, Network};
use serde_json::Value;

use crate::rig::{PATIENCE, Rig, STEER};

#[test]
fn sigterm_ends_the_agent_with_0_and_a_restart_writes_nothing_again() {
    let rig = Rig::start(2, &[]);
    let mut agent = rig.steering_agent();
    let status = agent.terminate(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(0), "{}", agent.log());
    let _agent = rig.steering_agent();
    let bridge = &rig.status()["steering"][0];
    assert_eq!(
        (
            &bridge["flows_added"],
            &bridge["flags_changed"],
            &bridge["fdb_changed"]
        ),
        (&0.into(), &0.into(), &0.into())
    );
}

#[test]
fn cleanup_takes_everything_of_ours_off_and_nothing_else() {
    let rig = Rig::start(3, &[]);
    // One flag is somebody else's.
    for network in rig.lab.udns() {
        rig.lab
            .set_no_flood(network, network == Network(1))
            .unwrap();
    }
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
    let flows = rig.lab.flows("br-ex").unwrap().len();
    let mut agent = rig.steering_agent();
    let refused = rig.run(&["cleanup"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&format!("pid {}", agent.pid())));
    agent.terminate(PATIENCE).unwrap();

    let cleaned = rig.run(&["cleanup"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
    assert_eq!(rig.lab.flows("br-ex").unwrap().len(), flows);
    assert_eq!(rig.lab.no_flood_ports().unwrap(), [Network(1).patch_port()]);
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
    let attached = rig
        .lab
        .node_netns()
        .command("tc")
        .args(["filter", "show", "dev", &rig.lab.uplink(), "ingress"])
        .output()
        .unwrap();
    assert!(attached.stdout.is_empty(), "{attached:?}");
    let again = rig.run(&["cleanup"]);
    assert!(
        String::from_utf8_lossy(&again.stdout).contains("nothing of ours"),
        "{again:?}"
    );
}

#[test]
fn cleanup_puts_somebody_elses_static_entry_back_where_ours_took_its_place() {
    let rig = Rig::start(1, &[]);
    let uplink = rig.lab.uplink();
    rig.lab.add_static_fdb_entry_to(&uplink).unwrap();
    let theirs = rig.lab.static_fdb_entry().unwrap();
    let mut agent = rig.steering_agent();
    let ours = rig.lab.static_fdb_entry().unwrap();
    assert_eq!(ours.as_deref(), Some("LOCAL"));
    agent.terminate(PATIENCE).unwrap();
    for _ in 0..2 {
        let cleaned = rig.run(&["cleanup"]);
        assert!(cleaned.status.success(), "{cleaned:?}");
        assert_eq!(rig.lab.static_fdb_entry().unwrap(), theirs);
    }
}

#[test]
fn cleanup_forgets_what_was_changed_on_a_bridge_that_is_gone() {
    let rig = Rig::start(1, &[]);
    let directory = rig.lab.state_directory();
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("state.json");
    let gone = serde_json::json!({
        "no_flood_set": ["patch-x"], "no_flood_cleared": [], "static_fdb": []
    });
    let state = serde_json::json!({ "format": 2, "bridges": { "br-gone": gone }, "paused": true });
    std::fs::write(&file, state.to_string()).unwrap();
    let cleaned = rig.run(&["cleanup"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
    let state = std::fs::read(&file).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    assert_eq!(state["bridges"], serde_json::json!({}));
    assert_eq!(state["paused"], true, "it is not for cleanup to resume");
}

#[test]
fn cleanup_takes_our_flows_off_although_the_state_file_is_damaged() {
    let rig = Rig::start(1, &[]);
    let mut agent = rig.steering_agent();
    agent.terminate(PATIENCE).unwrap();
    let file = rig.lab.state_directory().join("state.json");
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    let cleaned = rig.run(&["cleanup"]);
    assert_eq!(cleaned.status.code(), Some(2), "{cleaned:?}");
    assert_eq!(rig.our_flows(), Vec::<String>::new());
    assert_eq!(
        std::fs::read(&file).unwrap(),
        b"{",
        "it is evidence, and is left"
    );
    std::fs::write(&file, good).unwrap();
    let cleaned = rig.run(&["cleanup"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
}

#[test]
fn a_dry_run_says_what_it_would_write_and_writes_nothing() {
    let rig = Rig::start(2, &[]);
    for network in rig.lab.udns() {
        rig.lab.set_no_flood(network, false).unwrap();
    }
    rig.source_learns("172.18.7.7");
    let flows = rig.lab.flows("br-ex").unwrap();
    let output = rig.run(&[&["agent", "--dry-run", "--output", "json"], &STEER[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bridge = report["bridges"]
        .as_array()
        .unwrap()
        .iter()
        .find(|bridge| bridge["bridge"] == "br-ex")
        .unwrap();
    assert_eq!(bridge["add_flows"].as_array().unwrap().len(), 6, "{report}");
    assert_eq!(bridge["no_flood"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["attach"], serde_json::json!([rig.lab.uplink()]));
    assert_eq!(rig.lab.flows("br-ex").unwrap().len(), flows.len());
    assert_eq!(rig.lab.no_flood_ports().unwrap(), Vec::<String>::new());
    assert_eq!(
        rig.lab
            .mac_bindings("172.18.7.7".parse().unwrap())
            .unwrap()
            .len(),
        1
    );
    assert!(!rig.lab.state_directory().exists());
}

#[test]
fn the_commands_that_look_agree_with_what_the_agent_did() {
    let rig = Rig::start(2, &[]);
    let before = rig.run(&["flows", "--diff"]);
    assert_eq!(before.status.code(), Some(1), "{before:?}");
    let _agent = rig.steering_agent();
    let after = rig.run(&["flows", "--diff"]);
    assert_eq!(after.status.code(), Some(0), "{after:?}");
    rig.source_learns("172.18.7.7");
    rig.wait_for_bindings("172.18.7.7".parse().unwrap(), &[0, 1, 2]);
    let bindings = rig.run(&["bindings", "--output", "json"]);
    assert_eq!(bindings.status.code(), Some(0), "{bindings:?}");
}

#[test]
fn a_lost_connection_is_counted_by_what_ended_it() {
    let mut rig = Rig::start(1, &[]);
    let _agent = rig.agent(&[]);
    let southbound = |status: &Value| status["databases"]["OVN_Southbound"].clone();
    rig.wait_for_status("a connection", |status| {
        (southbound(status)["connected"] == true).then_some(())
    });
    rig.lab.kill_daemon(Daemon::Southbound).unwrap();
    rig.wait_for_status("no connection", |status| {
        (southbound(status)["connected"] == false).then_some(())
    });
    rig.lab.start_daemon(Daemon::Southbound).unwrap();
    let causes = rig.wait_for_status("a connection again", |status| {
        let southbound = southbound(status);
        (southbound["connected"] == true).then(|| southbound["reconnects"].clone())
    });
    let of = |cause: &str| causes[cause].as_u64().unwrap_or(0);
    assert!(of("closed") + of("broken") >= 1, "{causes}");
}
