//! The complete set of flows, on a bridge that nobody else manages and on one that gets a manager.

use std::time::Duration;

use neighsteer_tests::{
    frames::{arp_reply, who_has},
    lab::{AgentProcess, BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_MAC, NODE_IPV4, wait_until},
};

use crate::{
    rig::{PATIENCE, Rig, STEER},
    seen::{bare_rig, bridge},
};

/// A bridge without a flow, and an agent that brings the whole of them.
fn agent_of_all(rig: &Rig, gates: &[&str]) -> AgentProcess {
    rig.lab.ofctl_on("br-ex", &["del-flows"], &[]).unwrap();
    let flags = ["--flows", "complete", "--check-interval", "600"];
    let agent = rig.agent(&[gates, &flags].concat());
    wait_for_all(rig);
    agent
}

fn wait_for_all(rig: &Rig) {
    rig.wait_for_status("the complete set in place", |status| {
        let bridge = bridge(status, "br-ex")?;
        (bridge["converged"] == true && bridge["watched"] == true && bridge["flows"] != 0)
            .then_some(())
    });
}

fn reply() -> Vec<u8> {
    arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4)
}

/// How many gateway routers a frame from the uplink goes to.
fn receivers(rig: &Rig, frame: &[u8]) -> usize {
    let trace = rig.lab.trace(&rig.lab.uplink(), frame).unwrap();
    assert!(trace.outputs_to("br-ex"), "the host gets it: {}", trace.raw);
    trace.entered
}

#[test]
fn on_a_bridge_without_a_manager_the_complete_set_steers_alone_and_without_the_gate_fans_out() {
    let rig = bare_rig(3);
    let mut agent = agent_of_all(&rig, &STEER);
    let all = rig.lab.flows("br-ex").unwrap();
    assert_eq!(all.len(), rig.our_flows().len(), "all are ours: {all:?}");
    assert_eq!(receivers(&rig, &reply()), 1);
    let question = who_has(GATEWAY_MAC, GATEWAY_IPV4, NODE_IPV4);
    assert_eq!(receivers(&rig, &question), 1);
    agent.terminate(Duration::from_secs(10)).unwrap();

    let _agent = agent_of_all(&rig, &STEER[..1]);
    assert_eq!(receivers(&rig, &reply()), 4);
}

#[test]
fn a_manager_that_comes_to_a_bridge_with_the_complete_set_finds_it_left_to_him() {
    let rig = bare_rig(2);
    let agent = agent_of_all(&rig, &STEER);
    let flows = rig.lab.manager_flows(0).unwrap();
    let manager = rig.lab.manager(flows, Duration::from_millis(500)).unwrap();
    rig.wait_for_status("a managed bridge", |status| {
        let error = bridge(status, "br-ex")?["last_error"].as_str()?.to_owned();
        error.contains("managed by OVN-Kubernetes").then_some(())
    });
    wait_until(PATIENCE, "a bridge without anything of ours", || {
        let entry = rig
            .lab
            .has_static_fdb_entry()
            .map_err(|it| it.to_string())?;
        match (rig.our_flows(), entry) {
            (ours, false) if ours.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        }
    })
    .unwrap();
    let log = agent.log();
    assert!(log.contains("managed by OVN-Kubernetes"), "{log}");
    manager.stop().unwrap();
    assert_eq!(rig.our_flows(), Vec::<String>::new());

    // He goes, and takes his flows along.
    rig.lab.ofctl_on("br-ex", &["del-flows"], &[]).unwrap();
    wait_for_all(&rig);
    assert_eq!(receivers(&rig, &reply()), 1);
}
