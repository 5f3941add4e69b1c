//! The datapath on the uplink of a real node.

use std::time::Duration;

use neighsteer_tests::{
    frames::{arp_reply, neighbor_advertisement, who_has},
    lab::{BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, NODE_IPV4, NODE_IPV6, wait_until},
};

use crate::rig::{PATIENCE, Rig, packets};

fn frames() -> [Vec<u8>; 3] {
    [
        arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4),
        neighbor_advertisement(GATEWAY_MAC, GATEWAY_IPV6, BRIDGE_MAC, NODE_IPV6),
        who_has(GATEWAY_MAC, GATEWAY_IPV4, NODE_IPV4),
    ]
}

fn counted(rig: &Rig) -> [u64; 3] {
    [
        packets(rig, "arp-reply", "steer-arp"),
        packets(rig, "neighbor-advertisement", "steer-na"),
        packets(rig, "arp-request", "flood"),
    ]
}

fn send_and_wait(rig: &Rig, times: usize) {
    let before = counted(rig);
    let sent: Vec<_> = std::iter::repeat_n(frames(), times).flatten().collect();
    rig.lab.send_from_outside(&sent, Duration::ZERO).unwrap();
    wait_until(PATIENCE, format_args!("{times} more of each kind"), || {
        let now = counted(rig);
        let more: Vec<u64> = now
            .iter()
            .zip(before)
            .map(|(now, before)| now - before)
            .collect();
        if more.iter().all(|more| *more >= times as u64) {
            Ok(())
        } else {
            Err(format!("{more:?}"))
        }
    })
    .unwrap();
}

#[test]
fn an_observing_agent_counts_and_changes_nothing() {
    let rig = Rig::start(2, &[]);
    let (flows, flags) = (
        rig.lab.flows("br-ex").unwrap().len(),
        rig.lab.no_flood_ports().unwrap(),
    );
    let rows = rig.lab.all_mac_bindings().unwrap().len();
    let _agent = rig.agent(&[]);
    rig.wait_for_status("an attached datapath", |status| {
        status["datapath"][0]["mode"].as_str().map(str::to_owned)
    });
    send_and_wait(&rig, 10);
    assert_eq!(rig.lab.flows("br-ex").unwrap().len(), flows);
    assert_eq!(rig.lab.no_flood_ports().unwrap(), flags);
    assert!(rig.lab.all_mac_bindings().unwrap().len() >= rows);
}

#[test]
fn the_datapath_goes_on_counting_and_steering_when_the_agent_is_killed_and_the_next_one_takes_over()
{
    let rig = Rig::start(2, &[]);
    let mut agent = rig.steering_agent();
    send_and_wait(&rig, 5);
    agent.kill().unwrap();
    send_and_wait(&rig, 5);
    let before = counted(&rig);
    let _agent = rig.steering_agent();
    let status = rig.status();
    assert_eq!(
        status["steering"][0]["flows_added"], 0,
        "flows that are right are not written again: {status}"
    );
    let after = counted(&rig);
    assert!(
        after
            .iter()
            .zip(before)
            .all(|(after, before)| *after >= before),
        "{before:?} {after:?}"
    );
    send_and_wait(&rig, 5);
}

#[test]
fn a_datapath_that_somebody_detached_is_attached_again() {
    let rig = Rig::start(1, &[]);
    let _agent = rig.agent(&["--check-interval", "1"]);
    rig.wait_for_status("an attached datapath", |status| {
        status["datapath"][0]["mode"].as_str().map(str::to_owned)
    });
    let detached = rig.datapath(&["detach", &rig.lab.uplink()]);
    assert!(detached.status.success(), "{detached:?}");
    wait_until(PATIENCE, "frames to be counted again", || {
        rig.lab
            .send_from_outside(&frames(), Duration::ZERO)
            .unwrap();
        let counted = counted(&rig);
        if counted.iter().all(|packets| *packets > 0) {
            Ok(())
        } else {
            Err(format!("{counted:?}"))
        }
    })
    .unwrap();
}
