//! What is invalid is not handed to the source where dropping it was asked for.

use std::collections::BTreeMap;

use neighsteer::datapath::Hook;
use neighsteer_common::{Decision, Validate};
use neighsteer_tests::frames::{BRIDGE_MAC, HOST_IP6, HOST_MAC, Ipv6, NODE_IP6, Ndp};

use crate::rig::*;

const SHAPE: Shape = Shape {
    followers: 2,
    mac: BRIDGE_MAC,
    gateway_vlan: None,
};

/// A Neighbor Solicitation for the node, as a router would have forwarded it or as a neighbour sends it.
fn solicitation(hop_limit: u8) -> Vec<u8> {
    Ipv6 {
        hop_limit,
        ..Ndp::solicitation(NODE_IP6, HOST_MAC).packet(HOST_IP6, NODE_IP6)
    }
    .frame(HOST_MAC, BRIDGE_MAC)
    .to_bytes()
}

#[tokio::test]
async fn the_switch_steers_an_invalid_solicitation_and_gets_none_where_it_is_dropped() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    for hook in [Hook::Tc, Hook::Xdp] {
        for (validate, hop_limit, arrives) in [
            (Validate::Count, 64, true),
            (Validate::Drop, 64, false),
            (Validate::Drop, 255, true),
            (Validate::Off, 64, true),
        ] {
            rig.attach_to(hook, validate);
            let what = format!("{hook} {validate} {hop_limit}");
            let (steered, received) = (rig.steered().await, rig.received().await);
            rig.receive(&[solicitation(hop_limit)]).await;
            let (expected, at_routers) = if arrives {
                (
                    BTreeMap::from([(Decision::SteerNs, 1)]),
                    BTreeMap::from([(SOURCE.to_owned(), 1)]),
                )
            } else {
                Default::default()
            };
            assert_eq!(growth(&steered, &rig.steered().await), expected, "{what}");
            let routers = growth(&received, &rig.received().await);
            assert_eq!(routers, at_routers, "{what}");
        }
    }
}
