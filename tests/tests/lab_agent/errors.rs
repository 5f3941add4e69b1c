//! Each error is one clear line, an exit code other than 0, and nothing left attached.

use std::process::Output;

use crate::rig::{PATIENCE, Rig, STEER};

fn refused(output: &Output, says: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("error:"))
        .collect();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(lines.len(), 1, "{stderr}");
    for text in says {
        assert!(lines[0].contains(text), "{text:?} in {stderr}");
    }
}

fn nothing_attached(rig: &Rig) {
    let attached = rig.datapath(&["stats", "--output", "json"]);
    assert!(
        !String::from_utf8_lossy(&attached.stdout).contains(&rig.lab.uplink()),
        "{attached:?}"
    );
}

#[test]
fn the_second_gate_without_the_first_is_refused_at_start() {
    let rig = Rig::start(1, &[]);
    refused(
        &rig.run(&["agent", "--disable-udn-arp-ndp-flood"]),
        &["enable-network-segmentation"],
    );
    nothing_attached(&rig);
}

#[test]
fn a_missing_database_socket_is_named() {
    let rig = Rig::start(1, &[]);
    let state = rig.lab.state_directory().display().to_string();
    let output = rig
        .lab
        .neighsteer(&[
            "agent",
            "--ovs-db",
            "unix:/nonexistent/db.sock",
            "--state-dir",
            &state,
        ])
        .unwrap()
        .output()
        .unwrap();
    refused(&output, &["/nonexistent/db.sock", "ovsdb-server"]);
    nothing_attached(&rig);
}

#[test]
fn a_bridge_without_an_uplink_is_named() {
    let rig = Rig::start(1, &[]);
    rig.lab
        .vsctl(["remove", "bridge", "br-ex", "external_ids", "bridge-uplink"])
        .unwrap();
    rig.lab
        .vsctl(["del-port", "br-ex", &rig.lab.uplink()])
        .unwrap();
    refused(
        &rig.run(&[&["agent"], &STEER[..]].concat()),
        &["br-ex", "uplink"],
    );
    nothing_attached(&rig);
    assert_eq!(rig.our_flows(), Vec::<String>::new());
}

#[test]
fn an_uplink_that_is_not_in_this_namespace_is_named() {
    let rig = Rig::start(1, &[]);
    let flags = rig.lab.agent_flags();
    // The same command outside the node's namespace, where the uplink does not exist.
    let inside = rig.lab.neighsteer(&["agent"]).unwrap();
    let binary = inside
        .get_args()
        .find(|argument| argument.to_string_lossy().ends_with("neighsteer"))
        .unwrap()
        .to_owned();
    let output = std::process::Command::new(binary)
        .arg("agent")
        .args(flags)
        .output()
        .unwrap();
    refused(&output, &[&rig.lab.uplink()]);
}

#[test]
fn a_second_agent_is_refused_and_told_who_the_first_is() {
    let rig = Rig::start(1, &[]);
    let mut agent = rig.steering_agent();
    refused(&rig.run(&["agent"]), &[&format!("pid {}", agent.pid())]);
    assert!(agent.terminate(PATIENCE).unwrap().success());
}

#[test]
fn steering_by_mark_is_refused_where_no_frame_would_come_to_the_switch_with_a_mark_of_its_own() {
    let rig = Rig::start(1, &[]);
    // The lab's bridges have the userspace datapath.
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &["br-ex", "netdev", "--match header"]),
        (
            &["--datapath", "xdp"],
            &["--match mark needs --datapath tc"],
        ),
        (&["--tag", "7"], &["--tag", "--match mark"]),
        (
            &["--steering-mark", "0x3f0"],
            &["EgressService", "0x6e730034"],
        ),
    ];
    for (further, says) in cases {
        let flags = [&["agent", "--match", "mark"], &STEER[..], further].concat();
        refused(&rig.run(&flags), says);
        nothing_attached(&rig);
        assert_eq!(rig.our_flows(), Vec::<String>::new());
    }
}
