//! The kernel's datapath with the design's flows and many followers.

use std::collections::BTreeMap;

use neighsteer::datapath::Hook;
use neighsteer_common::Decision;
use neighsteer_tests::frames::{
    Arp, BRIDGE_MAC, HOST_IP, HOST_IP6, HOST_MAC, NODE_IP, NODE_IP6, Ndp, arp_announcement,
};

use crate::rig::*;

const FOLLOWERS: u16 = 70;
const TIMES: usize = 10;

pub const SHAPE: Shape = Shape {
    followers: FOLLOWERS,
    mac: BRIDGE_MAC,
    gateway_vlan: None,
};

/// What a host sends to the shared address, and what steers it.
pub fn unicast() -> [(Decision, Vec<u8>); 5] {
    let ndp = |message: Ndp| {
        message
            .packet(HOST_IP6, NODE_IP6)
            .frame(HOST_MAC, BRIDGE_MAC)
            .to_bytes()
    };
    let arp = |arp: Arp| arp.frame(BRIDGE_MAC).to_bytes();
    [
        (
            Decision::SteerArp,
            arp(Arp::reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP)),
        ),
        (
            Decision::SteerArp,
            arp(Arp::request(HOST_MAC, HOST_IP, NODE_IP)),
        ),
        (
            Decision::SteerNs,
            ndp(Ndp::solicitation(NODE_IP6, HOST_MAC)),
        ),
        (
            Decision::SteerNa,
            ndp(Ndp::advertisement(HOST_IP6, true, HOST_MAC)),
        ),
        (Decision::SteerRa, ndp(Ndp::router_advertisement(HOST_MAC))),
    ]
}

#[tokio::test]
async fn steered_and_flooded_frames_reach_the_source_and_the_host_and_no_follower() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    rig.attach(Hook::Tc);
    rig.receive(&[]).await;
    let times = TIMES as u64;
    let announcement = arp_announcement(HOST_MAC, HOST_IP);
    let frames = unicast()
        .into_iter()
        .chain([(Decision::Flood, announcement)]);
    for (decision, frame) in frames {
        let before = (rig.steered().await, rig.received().await, counted(&rig));
        let delivered = [BRIDGE, SINK].map(Rig::delivered);
        rig.receive_by_known_flows(&vec![frame; TIMES]).await;
        if decision != Decision::Flood {
            assert_eq!(
                outputs(&mut rig, decision).await,
                [BRIDGE, SINK],
                "{decision}"
            );
        }
        rig.receive(&[]).await;
        let steered = growth(&before.0, &rig.steered().await);
        match decision {
            Decision::Flood => assert_eq!(steered, BTreeMap::new()),
            _ => assert_eq!(steered, [(decision, times)].into()),
        }
        assert_eq!(
            growth(&before.1, &rig.received().await),
            [(SOURCE.to_owned(), times)].into(),
            "routers, {decision}"
        );
        let now = [BRIDGE, SINK].map(Rig::delivered);
        assert_eq!(
            now,
            delivered.map(|before| before + times),
            "one copy each for the host and a router, {decision}"
        );
        // The program beside it saw the same.
        assert_eq!(
            growth(&before.2, &counted(&rig)),
            [(decision, times)].into()
        );
    }
}

/// The ports that the kernel's own flow of such frames leads to.
async fn outputs(rig: &mut Rig, decision: Decision) -> Vec<String> {
    let kind = match decision {
        Decision::SteerArp => "eth_type(0x0806)",
        Decision::SteerNs => "icmpv6(type=135",
        Decision::SteerNa => "icmpv6(type=136",
        _ => "icmpv6(type=134",
    };
    let flows = rig.kernel_flows().await;
    let of_kind: Vec<_> = flows
        .lines()
        .filter(|line| line.contains(kind) && line.contains(UPLINK))
        .collect();
    let [flow] = of_kind[..] else {
        panic!("not one flow of {kind}: {flows}");
    };
    let (_, actions) = flow.split_once("actions:").unwrap();
    let mut outputs: Vec<_> = actions.trim().split(',').map(str::to_owned).collect();
    outputs.sort_unstable();
    outputs
}

/// What the program has counted, by decision.
fn counted(rig: &Rig) -> BTreeMap<Decision, u64> {
    let mut counted = BTreeMap::new();
    for ((_, decision), (packets, _)) in rig.counters() {
        *counted.entry(decision).or_default() += packets;
    }
    counted
}
