//! The gateway's VLAN changes at run time: flows and the program's policy are swapped, and nothing
//! on the wire is missed meanwhile.

use std::{thread, time::Duration};

use neighsteer_tests::{
    frames::{Arp, Tag},
    lab::{
        AgentProcess, BRIDGE_MAC, Daemon, GATEWAY_IPV4, GATEWAY_MAC, NODE_IPV4, Network, wait_until,
    },
};
use serde_json::json;

use crate::{
    rig::{PATIENCE, Rig, packets},
    seen::{bare_rig, number, watching_agent},
};

const VLAN: u16 = 117;
/// What may become of a unicast reply.
const DECISIONS: [&str; 4] = ["steer-arp", "normal", "undecided", "flood"];

/// Puts all gateway routers into a VLAN in one transaction, as a change of the node's gateway
/// configuration does.
fn set_gateway_vlan(rig: &Rig, vlan: Option<u16>) {
    let tag = vlan.map_or_else(|| json!(["set", []]), |vlan| json!(vlan));
    let networks = [Network::DEFAULT].into_iter().chain(rig.lab.udns());
    let updates = networks.map(|network| {
        json!({
            "op": "update", "table": "Logical_Switch_Port",
            "where": [["name", "==", network.localnet_port()]], "row": {"tag": tag},
        })
    });
    let updates = updates.collect();
    rig.lab
        .with_database(Daemon::Northbound, |northbound| {
            northbound.transact(updates)
        })
        .unwrap();
}

fn reply(tag: Option<Tag>) -> Vec<u8> {
    let arp = Arp::reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4);
    let frame = arp.frame(BRIDGE_MAC);
    tag.into_iter()
        .fold(frame, |frame, tag| frame.tagged(tag))
        .to_bytes()
}

/// Waits until every unicast steering flow asks for the VLAN, or none does.
fn wait_for_vlan(rig: &Rig, flows: usize, vlan: Option<u16>) {
    wait_until(PATIENCE, format_args!("flows for {vlan:?}"), || {
        let ours = rig.our_flows();
        let wanted = vlan.map(|vlan| format!("dl_vlan={vlan}"));
        let steering = ours.iter().filter(|flow| flow.contains("priority=52"));
        let right = |flow: &&String| match &wanted {
            Some(vlan) => flow.contains(vlan),
            None => !flow.contains("dl_vlan"),
        };
        if ours.len() == flows
            && steering.clone().count() == 4
            && steering.clone().all(|it| right(&it))
        {
            return Ok(());
        }
        Err(format!("{ours:?}"))
    })
    .unwrap();
}

/// How often a program took its place on the uplink.
fn swaps(agent: &AgentProcess) -> usize {
    agent.log().matches("datapath attached").count()
}

/// Sends one reply and waits until it is counted; which decision took it.
fn decision(rig: &Rig, tag: Option<Tag>) -> &'static str {
    let counters = || DECISIONS.map(|decision| packets(rig, "arp-reply", decision));
    let before = counters();
    rig.lab
        .send_from_outside(&[reply(tag)], Duration::ZERO)
        .unwrap();
    let counted = wait_until(PATIENCE, "a frame that counts", || {
        let now = counters();
        (0..DECISIONS.len())
            .find(|index| now[*index] > before[*index])
            .ok_or_else(|| format!("{now:?}"))
    });
    DECISIONS[counted.unwrap()]
}

#[test]
fn a_gateway_vlan_that_comes_changes_and_goes_swaps_flows_and_policy() {
    let rig = bare_rig(2);
    let agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    for vlan in [Some(VLAN), Some(VLAN + 1), None] {
        let former = swaps(&agent);
        set_gateway_vlan(&rig, vlan);
        wait_for_vlan(&rig, flows, vlan);
        wait_until(PATIENCE, "another program", || match swaps(&agent) {
            now if now > former => Ok(()),
            _ => Err(agent.log()),
        })
        .unwrap();
        assert_eq!(decision(&rig, vlan.map(Tag::customer)), "steer-arp");
        // Without a gateway VLAN the flows match frames of any.
        let other = [None, Some(Tag::customer(VLAN + 2))];
        let elsewhere = if vlan.is_some() {
            "normal"
        } else {
            "steer-arp"
        };
        assert_eq!(other.map(|tag| decision(&rig, tag)), [elsewhere; 2]);
    }
    let log = agent.log();
    assert!(!log.contains("not attached"), "{log}");
}

#[test]
fn no_frame_goes_uncounted_while_the_policy_is_swapped() {
    const FRAMES: u64 = 4000;
    let rig = bare_rig(1);
    let agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    let counted = || {
        let counters = DECISIONS.map(|decision| packets(&rig, "arp-reply", decision));
        counters.iter().sum::<u64>()
    };
    let before = counted();
    let swapped = thread::scope(|scope| {
        let rig = &rig;
        let sender = scope.spawn(move || {
            let frames = vec![reply(None); usize::try_from(FRAMES).unwrap()];
            rig.lab.send_from_outside(&frames, Duration::from_millis(1))
        });
        let first = swaps(&agent);
        let mut vlan = VLAN;
        while !sender.is_finished() {
            let earlier = swaps(&agent);
            set_gateway_vlan(rig, Some(vlan));
            vlan += 1;
            wait_until(PATIENCE, "another policy", || match swaps(&agent) {
                now if now > earlier => Ok(()),
                now => Err(now),
            })
            .unwrap();
        }
        sender.join().unwrap().unwrap();
        swaps(&agent) - first
    });
    println!("{FRAMES} frames, the policy swapped {swapped} times meanwhile");
    assert!(swapped >= 2, "{swapped}");
    wait_until(PATIENCE, "every frame to be counted", || {
        match counted() - before {
            FRAMES => Ok(()),
            other => Err(other),
        }
    })
    .unwrap();
    set_gateway_vlan(&rig, None);
    wait_for_vlan(&rig, flows, None);
}
