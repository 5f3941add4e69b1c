//! The corpus of odd frames on the wire: the kernel's own parser beside the classifier's verdict.

use std::collections::BTreeMap;

use neighsteer::datapath::Hook;
use neighsteer_common::{Decision, Kind};
use neighsteer_tests::{
    corpus::{self, Entry},
    frames::{
        HOST_IP, HOST_IP6, HOST_MAC, Mac, NODE_IP, NODE_IP6, arp_reply, neighbor_advertisement,
    },
};

use crate::rig::*;

fn is_steered(decision: Decision) -> bool {
    matches!(
        decision,
        Decision::SteerArp | Decision::SteerNs | Decision::SteerNa | Decision::SteerRa
    )
}

/// Whether a frame gets past the kernel's untagging, which wants the type behind the tag and two
/// bytes more, to tc and to Open vSwitch.
fn arrives(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x81, 0x00] | [0x88, 0xa8]) => frame.len() >= 20,
        Some(_) => true,
        None => false,
    }
}

/// The rig's policies in turn, each with its part of the corpus.
fn by_policy() -> Vec<(Shape, Vec<Entry>)> {
    let mut parts: BTreeMap<_, Vec<Entry>> = BTreeMap::new();
    for entry in corpus::load().unwrap() {
        // A packet socket takes no shorter one.
        if entry.case.on_the_wire().len() >= 14 {
            let policy = entry.case.policy;
            let key = (Mac(policy.bridge_mac), policy.gateway_vlan);
            parts.entry(key).or_default().push(entry);
        }
    }
    let shape = |(mac, gateway_vlan)| Shape {
        followers: 1,
        mac,
        gateway_vlan,
    };
    parts
        .into_iter()
        .map(|(key, entries)| (shape(key), entries))
        .collect()
}

fn counted(rig: &Rig) -> BTreeMap<(Kind, Decision), u64> {
    let counters = rig.counters().into_iter();
    counters.map(|(key, (packets, _))| (key, packets)).collect()
}

#[tokio::test]
async fn a_frame_that_the_kernel_has_no_flow_for_is_steered_as_vswitchd_reads_it() {
    let parts = by_policy();
    let Some(mut rig) = Rig::start(parts[0].0, &[]).await else {
        return;
    };
    let mut wrong = Vec::new();
    let mut steered = 0;
    for (shape, entries) in parts {
        rig.steer(shape).await;
        rig.attach(Hook::Tc);
        let mut before = (rig.steered().await, counted(&rig));
        for entry in entries {
            let frame = entry.case.on_the_wire();
            let verdict = entry.verdict;
            let read = entry.userspace.as_ref().map_or(verdict.decision, |it| it.0);
            let (mut took, mut counts) = (vec![], vec![]);
            if arrives(&frame) {
                took.extend(Some(read).filter(|it| is_steered(*it)));
                let key = (verdict.kind, verdict.decision);
                counts.extend(Some(key).filter(|it| it.0 != Kind::NotNeighbour));
            }
            rig.receive(&[frame]).await;
            let now = (rig.steered().await, counted(&rig));
            let seen = (
                growth(&before.0, &now.0).into_keys().collect::<Vec<_>>(),
                growth(&before.1, &now.1).into_keys().collect::<Vec<_>>(),
            );
            before = now;
            steered += seen.0.len();
            if seen != (took.clone(), counts.clone()) {
                wrong.push(format!("{}: {seen:?}, not {took:?} {counts:?}", entry.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(steered > 40, "{steered}");
}

#[tokio::test]
async fn a_frame_whose_kind_the_kernel_has_a_flow_for_is_steered_as_the_kernel_reads_it() {
    let mut parts = by_policy();
    for (_, entries) in &mut parts {
        // Where the two agree the other test has said it.
        entries.retain(|it| it.userspace.is_some() && is_steered(it.verdict.decision));
    }
    parts.retain(|(_, entries)| !entries.is_empty());
    let Some(mut rig) = Rig::start(parts[0].0, &[]).await else {
        return;
    };
    for (shape, entries) in parts {
        rig.steer(shape).await;
        for entry in entries {
            let decision = entry.verdict.decision;
            let well_formed = match decision {
                Decision::SteerArp => arp_reply(HOST_MAC, HOST_IP, shape.mac, NODE_IP),
                Decision::SteerNa => {
                    neighbor_advertisement(HOST_MAC, HOST_IP6, shape.mac, NODE_IP6)
                }
                other => panic!("{}: no frame to be steered by {other}", entry.name),
            };
            rig.receive(&[]).await;
            rig.receive_by_known_flows(&[well_formed]).await;
            let before = (rig.steered().await, Rig::delivered(SINK));
            let frames = vec![entry.case.on_the_wire(); 3];
            rig.receive_by_known_flows(&frames).await;
            let steered = growth(&before.0, &rig.steered().await);
            assert_eq!(steered, [(decision, 3)].into(), "{}", entry.name);
            assert_eq!(Rig::delivered(SINK) - before.1, 3, "{}", entry.name);
        }
    }
}
