//! Steering by mark beside steering by headers: the same receivers, with and without the mark.
//!
//! On these bridges nothing marks frames: a trace says what would become of a marked one.

use neighsteer::{ids::OfPort, plan::SteeringMark};
use neighsteer_common::{Bytes, NodeAddresses, Policy, classify};
use neighsteer_tests::{
    corpus,
    frames::BRIDGE_MAC,
    generate::{self, Case},
};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::TestRunner,
};

use crate::{
    bridges::{Bridge, Lab, Receivers, ours},
    ingress,
};

/// How many generated frames are traced on each pair of bridges, beside the corpus.
const FRAMES: usize = 15;

/// The port's number for its name, which has the bridge's in it.
fn numbered(bridge: &Bridge, receivers: &Receivers) -> Vec<(String, usize)> {
    let name = |port: &str| port.trim_start_matches(bridge.name()).to_owned();
    let mut receivers: Vec<_> = receivers
        .iter()
        .map(|(port, copies)| (name(port), *copies))
        .collect();
    receivers.sort();
    receivers
}

/// The corpus' frames for a policy, and some generated ones.
fn frames(runner: &mut TestRunner, policy: Policy) -> Vec<(String, Case)> {
    let entries = corpus::load().unwrap().into_iter();
    let mut frames: Vec<_> = entries
        .filter(|entry| entry.case.policy == policy && entry.case.on_the_wire().len() >= 14)
        .map(|entry| (entry.name, entry.case))
        .collect();
    let count = frames.len();
    while frames.len() < count + FRAMES {
        let mut case = generate::case().new_tree(runner).unwrap().current();
        case.policy = policy;
        if case.frame.len() >= 14 {
            frames.push((format!("{case:?}"), case));
        }
    }
    frames
}

#[tokio::test]
async fn by_mark_each_frame_reaches_whom_it_reaches_by_headers_marked_or_not() {
    let mark = SteeringMark::DEFAULT;
    let mut by_header = ours();
    by_header.retain(|bridge| bridge.group.secondary.len() <= 1);
    let by_mark: Vec<Bridge> = by_header.iter().map(|it| it.by_mark(mark)).collect();
    let bridges = [by_header.clone(), by_mark.clone()].concat();
    let Some(mut lab) = Lab::start(bridges).await else {
        return;
    };
    let mut runner = TestRunner::default();
    let (mut marked, mut others) = (0, 0);
    for (by_header, by_mark) in by_header.iter().zip(&by_mark) {
        let policy = Policy {
            bridge_mac: BRIDGE_MAC.0,
            gateway_vlan: by_header.group.gateway_vlan,
            node_addresses: NodeAddresses::NONE,
        };
        let uplink: OfPort = by_mark.group.uplink.ofport;
        for (name, case) in frames(&mut runner, policy) {
            let frame = case.on_the_wire();
            let bytes = Bytes {
                frame: &case.frame,
                outer_tag: case.outer_tag,
            };
            let decision = classify(&bytes, Some(&policy)).decision;
            for (_, port) in ingress(by_header) {
                lab.forget(by_header).await;
                let (trace, expected) = lab.trace(by_header, port, &frame).await;
                let expected = numbered(by_header, &expected);
                // Whether these flows steer it, which read as the userspace datapath does.
                let steers = trace.priority() == Some(52);
                lab.forget(by_mark).await;
                let (unmarked, receivers) = lab.trace(by_mark, port, &frame).await;
                let context = || format!("{name} on {}\n{}", by_mark.name(), unmarked.raw);
                assert_eq!(numbered(by_mark, &receivers), expected, "{}", context());
                let priority = match trace.priority() {
                    Some(52) if port == uplink => Some(51),
                    priority => priority,
                };
                assert_eq!(unmarked.priority(), priority, "{}", context());
                if port != uplink || !decision.is_steered() {
                    others += 1;
                    continue;
                }
                marked += 1;
                lab.forget(by_mark).await;
                let (trace, receivers) = lab.trace_marked(by_mark, &frame).await;
                let context = || format!("{name} on {}\n{}", by_mark.name(), trace.raw);
                assert_eq!(trace.priority(), Some(52), "{}", context());
                assert!(trace.raw.contains("set(skb_mark(0))"), "{}", context());
                if steers {
                    assert_eq!(numbered(by_mark, &receivers), expected, "{}", context());
                }
                assert_eq!(by_mark.copies_to_followers(&receivers), 0, "{}", context());
            }
        }
    }
    println!("{marked} marked, {others} others");
    assert!(marked > 100 && others > 100, "{marked} {others}");
}
