//! Steering by the mark that the program sets, on the kernel's datapath.

use std::collections::BTreeMap;

use neighsteer::{datapath::Hook, plan::SteeringMark};
use neighsteer_tests::{
    frames::{BRIDGE_MAC, HOST_IP, HOST_MAC, NODE_IP, tcp::tcp_ipv4},
    packet_socket::PacketSocket,
};

use crate::{
    rig::*,
    steering::{SHAPE, unicast},
};

const MARK: SteeringMark = SteeringMark::DEFAULT;
const TIMES: usize = 10;

/// The kernel's own flows of frames with the mark.
async fn marked_flows(rig: &mut Rig) -> Vec<String> {
    let flows = rig.kernel_flows().await;
    let mark = format!("skb_mark({MARK})");
    let marked = flows.lines().filter(|line| line.contains(&mark));
    marked.map(str::to_owned).collect()
}

fn frames_on_the_host_and_a_router() -> [u64; 2] {
    [BRIDGE, SINK].map(Rig::delivered)
}

#[tokio::test]
async fn marked_frames_take_one_flow_to_the_source_and_the_host_and_unmarked_ones_the_next() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    rig.steer_by(Some(MARK)).await;
    let times = TIMES as u64;
    for attached in [true, false] {
        if attached {
            rig.attach(Hook::Tc);
        } else {
            rig.detach();
        }
        rig.receive(&[]).await;
        for (decision, frame) in unicast() {
            let before = (
                rig.marked().await,
                rig.steered().await,
                rig.received().await,
            );
            let delivered = frames_on_the_host_and_a_router();
            rig.receive_by_known_flows(&vec![frame; TIMES]).await;
            let flows = marked_flows(&mut rig).await;
            assert_eq!(flows.len(), usize::from(attached), "{decision}: {flows:?}");
            for flow in flows {
                let (_, actions) = flow.split_once("actions:").unwrap();
                let (clear, outputs) = actions.split_once("),").unwrap();
                assert_eq!(clear, "set(skb_mark(0)", "{flow}");
                let mut outputs: Vec<_> = outputs.split(',').collect();
                outputs.sort_unstable();
                assert_eq!(outputs, [BRIDGE, SINK], "{flow}");
            }
            rig.receive(&[]).await;
            let marked = rig.marked().await - before.0;
            let unmarked = growth(&before.1, &rig.steered().await);
            if attached {
                assert_eq!((marked, unmarked), (times, BTreeMap::new()), "{decision}");
            } else {
                assert_eq!((marked, unmarked), (0, [(decision, times)].into()));
            }
            assert_eq!(
                growth(&before.2, &rig.received().await),
                [(SOURCE.to_owned(), times)].into(),
                "routers, {decision}"
            );
            let now = frames_on_the_host_and_a_router();
            assert_eq!(now, delivered.map(|it| it + times), "{decision}");
        }
    }
}

/// A veth pair within one network namespace hands marks on.
#[tokio::test]
async fn a_frame_that_came_with_the_mark_and_is_none_to_steer_loses_it() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    rig.steer_by(Some(MARK)).await;
    let marking = PacketSocket::open(OUTSIDE).unwrap();
    let segment = tcp_ipv4((HOST_MAC, HOST_IP), (BRIDGE_MAC, NODE_IP), 10);
    let other = MARK.get() + 1;
    // Without the program, the mark alone decides: so this test can tell.
    for (attached, mark, taken) in [
        (false, MARK.get(), 1),
        (true, MARK.get(), 0),
        (true, other, 0),
    ] {
        if attached {
            rig.attach(Hook::Tc);
        }
        marking.set_mark(mark).unwrap();
        rig.receive(&[]).await;
        let (before, router) = (rig.marked().await, Rig::delivered(SINK));
        marking.send(&segment).unwrap();
        rig.receive_by_known_flows(&[]).await;
        let flows = rig.kernel_flows().await;
        let keeps = flows.contains(&format!("skb_mark({other:#x})"));
        assert_eq!(keeps, mark == other, "{flows}");
        rig.receive(&[]).await;
        assert_eq!(rig.marked().await - before, taken, "{attached} {mark:#x}");
        assert_eq!(Rig::delivered(SINK) - router, taken);
    }
    // One to steer is steered, whatever mark it came with.
    let (_, reply) = &unicast()[0];
    let before = rig.marked().await;
    marking.send(reply).unwrap();
    rig.receive(&[]).await;
    assert_eq!(rig.marked().await - before, 1);
}
