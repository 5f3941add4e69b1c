//! Generated frames by every ingress port of every bridge.

use neighsteer_common::{Bytes, Decision, Policy, classify};
use neighsteer_tests::{
    frames::BRIDGE_MAC,
    generate::{self, Case},
    oracle::{self, Datapath},
};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

use crate::{
    bridges::{Bridge, Flows, Lab, Receivers, ours},
    ingress,
};

/// How many generated frames are traced on each bridge.
const FRAMES: usize = 250;

/// VLAN IDs of the outermost tag, which is the VLAN that a switch puts the frame in, and of the one
/// below it; 0 for none.
fn vlans_of(frame: &[u8]) -> [u16; 2] {
    let tag_at = |at: usize| match frame.get(at..at + 4) {
        Some([0x81, 0x00, high, low] | [0x88, 0xa8, high, low]) => {
            Some(u16::from_be_bytes([*high, *low]) & 0x0fff)
        }
        _ => None,
    };
    match tag_at(12) {
        Some(outer) => [outer, tag_at(16).unwrap_or(0)],
        None => [0, 0],
    }
}

/// Who has to get a frame that is steered or flooded; `None` where the design leaves it to others.
fn expected(
    bridge: &Bridge,
    decision: Decision,
    port: neighsteer::ids::OfPort,
    frame: &[u8],
) -> Option<Receivers> {
    let ([vlan, inner], gateway) = (vlans_of(frame), bridge.group.gateway_vlan);
    let source = bridge.group.source.patch_port.clone();
    match decision {
        decision if decision.is_steered() => {
            let mut receivers = bridge.source_and_host();
            let from_shared = frame.get(6..12) == Some(&BRIDGE_MAC.0);
            if gateway.is_none() && vlan != 0 && from_shared {
                // Learned in a VLAN that the static entry is not in: the way to it is back.
                receivers.remove(&bridge.group.bridge);
            } else if gateway.is_none() && vlan != 0 {
                receivers = bridge.everybody_but_followers(port);
                receivers.insert(source, 2);
            }
            Some(receivers)
        }
        Decision::Flood => {
            let mut receivers = bridge.everybody_but_followers(port);
            if gateway.is_some_and(|id| id != vlan || inner != 0) {
                // The host's port is in the gateway's VLAN only, and no flood brings two tags to it.
                receivers.remove(&bridge.group.bridge);
            }
            Some(receivers)
        }
        _ => None,
    }
}

fn next(runner: &mut TestRunner, strategy: &impl Strategy<Value = Case>, bridge: &Bridge) -> Case {
    loop {
        let mut case = strategy.new_tree(runner).unwrap().current();
        case.policy = Policy {
            bridge_mac: BRIDGE_MAC.0,
            gateway_vlan: bridge.group.gateway_vlan,
            ..case.policy
        };
        // `ofproto/trace` wants an Ethernet header.
        if case.frame.len() >= 14 {
            return case;
        }
    }
}

#[derive(Debug, Default)]
struct Count {
    traced: usize,
    steered: usize,
    flooded: usize,
    read_differently: usize,
}

impl Count {
    async fn check(
        &mut self,
        lab: &mut Lab,
        bridge: &Bridge,
        port: neighsteer::ids::OfPort,
        case: &Case,
    ) {
        let (frame, tag) = (&case.frame, case.outer_tag);
        let bytes = Bytes {
            frame,
            outer_tag: tag,
        };
        let decision = classify(&bytes, Some(&case.policy)).decision;
        let [kernel, userspace] = [Datapath::Kernel, Datapath::Userspace]
            .map(|datapath| oracle::decision(frame, tag, &case.policy, datapath));
        let wire = case.on_the_wire();
        // Each frame for itself, whatever senders those before it had.
        lab.forget(bridge).await;
        let (trace, receivers) = lab.trace(bridge, port, &wire).await;
        let context = || format!("{case:?} on {}\n{}", bridge.name(), trace.raw);
        self.traced += 1;
        // `ofproto/trace` reads as the userspace datapath does, the classifier as the kernel.
        if kernel == userspace {
            assert_eq!(decision, userspace, "{}", context());
        } else {
            self.read_differently += 1;
        }
        let steered = trace.priority() == Some(52);
        assert_eq!(steered, userspace.is_steered(), "{}", context());
        self.steered += usize::from(steered);
        if steered || userspace == Decision::Flood || bridge.flows == Flows::Complete {
            let copies = bridge.copies_to_followers(&receivers);
            assert_eq!(copies, 0, "{}", context());
        }
        if let Some(mut expected) = expected(bridge, userspace, port, &wire) {
            self.flooded += usize::from(!steered);
            if trace.priority() == Some(12) {
                // NS for the node: the manager's flow gives the source two copies.
                expected.insert(bridge.group.source.patch_port.clone(), 2);
            }
            assert_eq!(receivers, expected, "{}", context());
        }
    }
}

#[tokio::test]
async fn decisions_agree_with_the_switch_on_generated_frames_and_receivers_with_the_design() {
    let mut runner = TestRunner::default();
    let strategy = generate::case();
    let mut count = Count::default();
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let ports = ingress(&bridge);
        for index in 0..FRAMES {
            let (_, port) = ports[index % ports.len()];
            let case = next(&mut runner, &strategy, &bridge);
            count.check(&mut lab, &bridge, port, &case).await;
        }
    }
    println!("{count:?}");
    assert!(count.steered > count.traced / 20, "{count:?}");
    assert!(count.flooded > count.traced / 20, "{count:?}");
    assert!(count.read_differently < count.traced / 10, "{count:?}");
}
