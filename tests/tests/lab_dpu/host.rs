//! The host of a DPU: it observes, and that is all.

use neighsteer_tests::lab::{BRIDGE_MAC, wait_until};

use crate::{
    rig::{PATIENCE, Rig, STEER},
    support::{attached, wait_for_attachments},
};

#[test]
fn the_gate_is_refused_on_the_host_with_the_reason() {
    let rig = Rig::start(1, &[]);
    let mut agent = rig.agent(&[&STEER[..], &["--mode", "dpu-host"]].concat());
    let status = agent.wait(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(2));
    let log = agent.log();
    assert!(
        log.contains("disable-udn-arp-ndp-flood is not for --mode dpu-host"),
        "{log}"
    );
    assert!(attached(&rig).is_empty());
}

#[test]
fn an_interface_of_the_host_is_followed_when_it_comes_and_gets_another_name() {
    let rig = Rig::start(1, &[]);
    let _agent = rig.agent(&[
        "--mode",
        "dpu-host",
        "--host-interface",
        "later",
        "--check-interval",
        "3600",
    ]);
    rig.wait_for_status("an agent that waits", |status| {
        (status["mode"] == "dpu-host").then_some(())
    });
    assert!(attached(&rig).is_empty());
    let ip = |arguments: &str| {
        let mut command = rig.lab.node_netns().command("ip");
        let status = command.args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "{arguments}");
    };
    ip("link add later type veth peer name later-peer");
    ip(&format!("link set later address {BRIDGE_MAC}"));
    wait_for_attachments(&rig, &["later"]);
    ip("link del later");
    wait_until(
        PATIENCE,
        "the program to go with its interface",
        || match attached(&rig) {
            none if none.is_empty() => Ok(()),
            some => Err(format!("{some:?}")),
        },
    )
    .unwrap();
    ip("link add later type veth peer name later-peer");
    wait_for_attachments(&rig, &["later"]);
    // The next name has the pins of an interface that is gone.
    ip("link add taken type veth peer name taken-peer");
    let attach = rig.datapath(&["attach", "taken"]);
    assert!(attach.status.success(), "{attach:?}");
    ip("link del taken");
    ip("link set later name taken");
    wait_for_attachments(&rig, &["taken"]);
}

#[test]
fn commands_that_would_open_a_database_say_that_the_host_has_none() {
    let rig = Rig::start(1, &[]);
    for command in ["flows", "topology", "bindings", "audit"] {
        let output = rig.run(&[command, "--mode", "dpu-host"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {text}");
        assert!(text.contains("run this on the DPU"), "{command}: {text}");
    }
    let cleaned = rig.run(&["cleanup", "--mode", "dpu-host"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
}
