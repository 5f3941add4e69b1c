//! The representor: found, followed, and where the shared address leads.

use std::{net::IpAddr, time::Duration};

use neighsteer_tests::{
    frames::who_has,
    lab::{
        BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_MAC, HOST_INTERFACE, NODE_IPV4, Namespace, Network,
        wait_until,
    },
};

use crate::{
    rig::{PATIENCE, Rig, STEER, now_ms},
    support::{
        agent, attached, counted, dpu, wait_for_attachments, wait_for_entry, wait_until_left_out,
        wait_until_steered,
    },
};

const REPRESENTOR: &str = "pf0hpf";

/// The host asks for the gateway until it is answered, with frames of ours and by `arping`.
fn host_is_answered(rig: &Rig) {
    let host = rig.lab.host_netns();
    let gateway = GATEWAY_IPV4.to_string();
    // One answer is all it waits for.
    let arguments = ["-I", HOST_INTERFACE, "-c", "1", "-w", "10", &gateway];
    let asked = host.command("arping").args(arguments).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let capture = rig.lab.capture(&host, HOST_INTERFACE).unwrap();
    let is_answer = |frame: &[u8]| {
        // An ARP reply from the gateway to the host.
        frame.get(..14) == Some(&[&BRIDGE_MAC.0[..], &GATEWAY_MAC.0, &[8, 6]].concat())
            && frame.get(20..22) == Some(&[0, 2])
    };
    wait_until(PATIENCE, "the gateway's answer to the host", || {
        let request = [who_has(BRIDGE_MAC, NODE_IPV4, GATEWAY_IPV4)];
        send(rig, &host, &request);
        match capture.count(is_answer) {
            0 => Err("no answer".to_owned()),
            _ => Ok(()),
        }
    })
    .unwrap();
}

fn send(rig: &Rig, host: &Namespace, frames: &[Vec<u8>]) {
    let sent = rig.lab.send(host, HOST_INTERFACE, frames, Duration::ZERO);
    sent.unwrap();
}

#[test]
fn the_host_behind_a_representor_is_steered_to_and_answered() {
    let rig = dpu(3, REPRESENTOR);
    let _agent = agent(&rig, &STEER);
    let status = wait_until_steered(&rig, REPRESENTOR);
    assert_eq!(status["mode"], "dpu");
    assert_eq!(status["groups"][0]["bridge_mac"], BRIDGE_MAC.to_string());
    let ingress = &status["groups"][0]["external_ingress_ports"];
    assert_eq!(ingress, &serde_json::json!([rig.lab.uplink()]));
    wait_for_entry(&rig, REPRESENTOR);
    let flows = rig.our_flows();
    assert!(
        flows.iter().all(|flow| flow.contains("arp,")),
        "no flow for IPv6: {flows:?}"
    );
    wait_for_attachments(&rig, &[&rig.lab.uplink(), REPRESENTOR]);
    host_is_answered(&rig);
    let counts = counted(&rig, REPRESENTOR, "arp-request");
    assert!(
        matches!(&*counts, [(direction, packets)] if direction == "egress" && *packets > 0),
        "{counts:?}"
    );
    let answers = counted(&rig, &rig.lab.uplink(), "arp-reply");
    assert!(
        answers
            .iter()
            .any(|(direction, packets)| direction == "ingress" && *packets > 0),
        "{answers:?}"
    );
}

#[test]
fn bindings_of_ipv4_are_mirrored_and_those_of_ipv6_are_not() {
    let rig = dpu(2, REPRESENTOR);
    let _agent = agent(&rig, &STEER);
    wait_until_steered(&rig, REPRESENTOR);
    let six: IpAddr = "fd00:18::99".parse().unwrap();
    rig.source_learns(&six.to_string());
    rig.source_learns("172.18.0.99");
    // What comes later is there: the earlier one would be, too.
    rig.wait_for_bindings("172.18.0.99".parse().unwrap(), &[0, 1, 2]);
    rig.lab
        .insert_mac_binding(
            Network::DEFAULT,
            "172.18.0.98",
            "02:aa:00:00:00:08",
            now_ms(),
        )
        .unwrap();
    rig.wait_for_bindings("172.18.0.98".parse().unwrap(), &[0, 1, 2]);
    rig.wait_for_bindings(six, &[0]);
}

#[test]
fn a_representor_that_goes_and_comes_back_is_followed_without_looking_in_intervals() {
    let rig = dpu(2, REPRESENTOR);
    let _agent = agent(&rig, &STEER);
    wait_until_steered(&rig, REPRESENTOR);
    wait_for_entry(&rig, REPRESENTOR);
    wait_for_attachments(&rig, &[&rig.lab.uplink(), REPRESENTOR]);
    rig.lab.remove_representor(REPRESENTOR).unwrap();
    wait_for_attachments(&rig, &[&rig.lab.uplink()]);
    // ovs-vswitchd keeps the port with a socket that leads nowhere until somebody makes it anew.
    rig.lab.vsctl(["del-port", "br-ex", REPRESENTOR]).unwrap();
    wait_until_left_out(&rig);
    assert_eq!(rig.our_flows(), Vec::<String>::new());
    rig.lab.make_representor(REPRESENTOR).unwrap();
    rig.lab.vsctl(["add-port", "br-ex", REPRESENTOR]).unwrap();
    wait_until_steered(&rig, REPRESENTOR);
    wait_for_entry(&rig, REPRESENTOR);
    wait_for_attachments(&rig, &[&rig.lab.uplink(), REPRESENTOR]);
    host_is_answered(&rig);
}

#[test]
fn a_representor_that_appears_after_the_agent_is_found() {
    let rig = dpu(1, REPRESENTOR);
    rig.lab.remove_representor(REPRESENTOR).unwrap();
    rig.lab.vsctl(["del-port", "br-ex", REPRESENTOR]).unwrap();
    let _agent = agent(&rig, &STEER);
    let reason = wait_until_left_out(&rig);
    assert!(
        reason.contains("none of its ports leads to the host"),
        "{reason}"
    );
    assert!(reason.contains("--host-representor"), "{reason}");
    rig.lab.make_representor(REPRESENTOR).unwrap();
    rig.lab.vsctl(["add-port", "br-ex", REPRESENTOR]).unwrap();
    wait_until_steered(&rig, REPRESENTOR);
    wait_for_entry(&rig, REPRESENTOR);
    host_is_answered(&rig);
}

#[test]
fn a_named_representor_is_followed_to_another_name_and_its_counters_with_it() {
    // A simulator's name: nothing but the flag tells that it is the one.
    let rig = dpu(2, "hostport");
    let _agent = agent(
        &rig,
        &[&STEER[..], &["--host-representor", "hostport"]].concat(),
    );
    wait_until_steered(&rig, "hostport");
    wait_for_attachments(&rig, &[&rig.lab.uplink(), "hostport"]);
    host_is_answered(&rig);
    let before = counted(&rig, "hostport", "arp-request")[0].1;
    rig.lab.rename_representor("hostport", "host0").unwrap();
    wait_until_steered(&rig, "host0");
    wait_for_entry(&rig, "host0");
    wait_for_attachments(&rig, &[&rig.lab.uplink(), "host0"]);
    host_is_answered(&rig);
    let after = counted(&rig, "host0", "arp-request")[0].1;
    assert!(after > before, "{after} after {before}");
    rig.lab.rename_representor("host0", "hostport").unwrap();
    wait_until_steered(&rig, "hostport");
    wait_for_entry(&rig, "hostport");
    host_is_answered(&rig);
}

#[test]
fn cleanup_takes_the_entry_to_the_representor_and_both_programs_off() {
    let rig = dpu(1, REPRESENTOR);
    let mut agent = agent(&rig, &STEER);
    wait_until_steered(&rig, REPRESENTOR);
    wait_for_entry(&rig, REPRESENTOR);
    wait_for_attachments(&rig, &[&rig.lab.uplink(), REPRESENTOR]);
    agent.terminate(PATIENCE).unwrap();
    let cleaned = rig.run(&["cleanup", "--mode", "dpu"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
    assert_eq!(rig.lab.static_fdb_entry().unwrap(), None);
    assert_eq!(rig.our_flows(), Vec::<String>::new());
    assert!(attached(&rig).is_empty());
}

#[test]
fn commands_that_look_once_know_the_representor() {
    let rig = dpu(1, REPRESENTOR);
    let _agent = agent(&rig, &STEER);
    wait_until_steered(&rig, REPRESENTOR);
    wait_for_entry(&rig, REPRESENTOR);
    let sysfs = rig.lab.sysfs().display().to_string();
    let run = |command: &str| {
        let output = rig.run(&[command, "--mode", "dpu", "--sysfs", &sysfs]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let topology = run("topology");
    let host = topology.lines().find(|line| line.starts_with("host"));
    assert!(
        host.is_some_and(|line| line.contains(REPRESENTOR)),
        "{topology}"
    );
    assert!(topology.contains(", IPv4, node 172.18.0.3"), "{topology}");
    let flows = run("flows");
    assert!(flows.contains("# bridge br-ex, 2 flows"), "{flows}");
    let audit = run("audit");
    assert!(!audit.contains("static entry"), "{audit}");
    let without = rig.run(&["topology"]);
    let without = String::from_utf8_lossy(&without.stdout).into_owned();
    assert!(without.contains("its uplink is one of"), "{without}");
}
