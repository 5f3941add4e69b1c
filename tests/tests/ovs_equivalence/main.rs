//! The design's flows on real bridges of every kind: decisions and `ofproto/trace` agree, and each
//! frame reaches those whom the design names and nobody else.

mod bridges;
mod generated;
mod manager;
mod marked;

use std::time::{Duration, Instant};

use neighsteer::{ids::OfPort, openflow::unixctl::FdbPort};
use neighsteer_tests::frames::{
    Arp, BRIDGE_MAC, BROADCAST, EthernetFrame, HOST_IP, HOST_IP6, HOST_MAC, Mac, NODE_IP, NODE_IP6,
    Ndp, Tag, ethernet::multicast_mac, ndp,
};

use bridges::{Bridge, Flows, GATEWAY_VLAN, Lab, every_kind, ours};

/// How long the switch may take over a frame.
const PATIENCE: Duration = Duration::from_secs(10);

/// The frame as it is on a bridge: with the gateway's tag, if it has one.
fn on(bridge: &Bridge, frame: &EthernetFrame) -> Vec<u8> {
    let mut frame = frame.clone();
    frame
        .tags
        .extend(bridge.group.gateway_vlan.map(Tag::customer));
    frame.to_bytes()
}

fn ndp_frame(
    from: Mac,
    source: std::net::Ipv6Addr,
    to: std::net::Ipv6Addr,
    message: &Ndp,
) -> EthernetFrame {
    message.packet(source, to).frame(from, multicast_mac(to))
}

/// What hosts say to everybody on the link, and which flow of the legacy ones would take it.
fn announcements() -> Vec<(&'static str, EthernetFrame)> {
    let node_group = ndp::solicited_node(NODE_IP6);
    let host_group = ndp::solicited_node(HOST_IP6);
    let arp = |arp: Arp| arp.frame(BROADCAST);
    vec![
        ("announcement", arp(Arp::announcement(HOST_MAC, HOST_IP))),
        ("probe", arp(Arp::probe(HOST_MAC, HOST_IP))),
        (
            "who has the node",
            arp(Arp::request(HOST_MAC, HOST_IP, NODE_IP)),
        ),
        (
            "unsolicited NA",
            ndp_frame(
                HOST_MAC,
                HOST_IP6,
                ndp::ALL_NODES,
                &Ndp::advertisement(HOST_IP6, false, HOST_MAC),
            ),
        ),
        (
            "RA",
            ndp_frame(
                HOST_MAC,
                HOST_IP6,
                ndp::ALL_NODES,
                &Ndp::router_advertisement(HOST_MAC),
            ),
        ),
        (
            "NS for another host",
            ndp_frame(
                HOST_MAC,
                HOST_IP6,
                host_group,
                &Ndp::solicitation(HOST_IP6, HOST_MAC),
            ),
        ),
        (
            "NS for the node",
            ndp_frame(
                HOST_MAC,
                HOST_IP6,
                node_group,
                &Ndp::solicitation(NODE_IP6, HOST_MAC),
            ),
        ),
    ]
}

/// What hosts send to the shared address.
fn unicast(from: Mac) -> Vec<EthernetFrame> {
    let to = BRIDGE_MAC;
    let ndp = |message: Ndp| message.packet(HOST_IP6, NODE_IP6).frame(from, to);
    vec![
        Arp::reply(from, HOST_IP, to, NODE_IP).frame(to),
        Arp::request(from, HOST_IP, NODE_IP).frame(to),
        ndp(Ndp::solicitation(NODE_IP6, from)),
        ndp(Ndp::advertisement(HOST_IP6, true, from)),
        ndp(Ndp::router_advertisement(from)),
    ]
}

fn ingress(bridge: &Bridge) -> Vec<(String, OfPort)> {
    let ports = bridge.group.ingress_ports();
    ports.map(|it| (it.name.to_string(), it.ofport)).collect()
}

#[tokio::test]
async fn unicast_from_outside_reaches_source_and_host_alone() {
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        for (_, port) in ingress(&bridge) {
            for frame in unicast(HOST_MAC) {
                let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &frame)).await;
                assert_eq!(trace.priority(), Some(52), "{}", trace.raw);
                assert_eq!(receivers, bridge.source_and_host(), "{}", trace.raw);
            }
        }
    }
}

#[tokio::test]
async fn broadcast_and_multicast_from_outside_reach_everybody_but_followers() {
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let default = bridge.group.source.network.is_none();
        for (_, port) in ingress(&bridge) {
            for (what, frame) in announcements() {
                let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &frame)).await;
                let mut expected = bridge.everybody_but_followers(port);
                let mut priority = match (bridge.flows, what) {
                    (
                        Flows::Overlay,
                        "announcement" | "probe" | "who has the node" | "unsolicited NA",
                    ) => 13,
                    _ => 0,
                };
                if (bridge.flows, what, default) == (Flows::Overlay, "NS for the node", true) {
                    // The flow of the manager that is not shadowed: one router gets it twice.
                    priority = 12;
                    expected.insert(bridge.group.source.patch_port.clone(), 2);
                }
                assert_eq!(trace.priority(), Some(priority), "{what}: {}", trace.raw);
                assert_eq!(receivers, expected, "{what}: {}", trace.raw);
            }
        }
    }
}

#[tokio::test]
async fn without_ours_todays_flows_bring_every_follower_a_copy() {
    let Some(mut lab) = Lab::start(every_kind(Flows::Today)).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let port = bridge.group.uplink.ofport;
        let count = bridge.group.followers.len();
        let frames = [
            Arp::reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP).frame(BRIDGE_MAC),
            Arp::announcement(HOST_MAC, HOST_IP).frame(BROADCAST),
        ];
        for frame in frames {
            let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &frame)).await;
            assert!(
                bridge.copies_to_followers(&receivers) >= count,
                "{}",
                trace.raw
            );
        }
    }
}

#[tokio::test]
async fn with_the_gate_off_the_complete_set_does_what_todays_flows_do() {
    let Some(mut lab) = Lab::start(every_kind(Flows::GateOff)).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let port = bridge.group.uplink.ofport;
        let source = bridge.group.source.patch_port.clone();
        let followers = bridge.group.followers.iter();
        let followers: Vec<_> = followers.map(|it| (it.patch_port.clone(), 1)).collect();
        // The switch sees the shared address come from a router.
        let question = Arp::request(BRIDGE_MAC, NODE_IP, HOST_IP).frame(BROADCAST);
        let asking = bridge.group.followers[0].ofport;
        lab.trace(&bridge, asking, &on(&bridge, &question)).await;

        let reply = Arp::reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP).frame(BRIDGE_MAC);
        let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &reply)).await;
        let mut expected = bridge.source_and_host();
        expected.extend(followers.clone());
        assert_eq!(receivers, expected, "{}", trace.raw);

        let announcement = Arp::announcement(HOST_MAC, HOST_IP).frame(BROADCAST);
        let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &announcement)).await;
        let mut expected = bridge.everybody_but_followers(port);
        expected.extend(followers.clone());
        assert_eq!(receivers, expected, "{}", trace.raw);

        let request = Arp::request(HOST_MAC, HOST_IP, NODE_IP).frame(BROADCAST);
        let (trace, receivers) = lab.trace(&bridge, port, &on(&bridge, &request)).await;
        if bridge.group.source.network.is_none() {
            // The filter for the node's addresses: the default network's router twice, no other.
            expected = bridge.everybody_but_followers(port);
            expected.insert(source, 2);
        }
        assert_eq!(receivers, expected, "{}", trace.raw);
    }
}

#[tokio::test]
async fn what_a_follower_asks_everybody_reaches_no_other_follower() {
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let host_group = ndp::solicited_node(HOST_IP6);
        let questions = [
            Arp::request(BRIDGE_MAC, NODE_IP, HOST_IP).frame(BROADCAST),
            ndp_frame(
                BRIDGE_MAC,
                NODE_IP6,
                host_group,
                &Ndp::solicitation(HOST_IP6, BRIDGE_MAC),
            ),
        ];
        for follower in bridge.group.followers.clone() {
            for frame in &questions {
                let (trace, receivers) = lab
                    .trace(&bridge, follower.ofport, &on(&bridge, frame))
                    .await;
                assert_eq!(trace.priority(), Some(10), "{}", trace.raw);
                let expected = bridge.everybody_but_followers(follower.ofport);
                assert_eq!(receivers, expected, "{}", trace.raw);
                let forged = EthernetFrame {
                    source: HOST_MAC,
                    ..frame.clone()
                };
                let (trace, receivers) = lab
                    .trace(&bridge, follower.ofport, &on(&bridge, &forged))
                    .await;
                assert_eq!(trace.priority(), Some(9), "{}", trace.raw);
                assert!(receivers.is_empty(), "{}", trace.raw);
            }
        }
    }
}

/// The static entry is in VLAN 0, so that `NORMAL` floods the frame's VLAN: the source gets a second
/// copy (whose integration bridge drops it), and the secondary localnets see it.
#[tokio::test]
async fn a_tagged_unicast_frame_without_a_gateway_vlan_is_steered_and_floods_its_vlan() {
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        for (_, port) in ingress(&bridge) {
            for mut frame in unicast(HOST_MAC) {
                frame.tags = vec![Tag::customer(GATEWAY_VLAN + 2)];
                let (trace, receivers) = lab.trace(&bridge, port, &frame.to_bytes()).await;
                if bridge.group.gateway_vlan.is_some() {
                    assert_ne!(trace.priority(), Some(52), "{}", trace.raw);
                    continue;
                }
                assert_eq!(trace.priority(), Some(52), "{}", trace.raw);
                let mut expected = bridge.everybody_but_followers(port);
                expected.insert(bridge.group.source.patch_port.clone(), 2);
                assert_eq!(receivers, expected, "{}", trace.raw);
            }
        }
    }
}

#[tokio::test]
async fn the_sender_of_a_steered_frame_is_learned_at_the_port_that_it_came_in_by() {
    let Some(mut lab) = Lab::start(ours()).await else {
        return;
    };
    for bridge in lab.bridges.clone() {
        let vlan = bridge.group.gateway_vlan.unwrap_or(0);
        let mut sender = HOST_MAC;
        for (name, port) in ingress(&bridge) {
            for index in 0..unicast(sender).len() {
                sender.0[4] += 1;
                let frame = on(&bridge, &unicast(sender)[index]);
                lab.receive(&name, &frame).await;
                let deadline = Instant::now() + PATIENCE;
                loop {
                    let entries = lab.fdb(&bridge).await;
                    let learned = entries.iter().find(|it| it.mac == sender);
                    if let Some(entry) = learned {
                        let at = (entry.port, entry.vlan, entry.is_static);
                        assert_eq!(at, (FdbPort::Number(port), vlan, false));
                        break;
                    }
                    assert!(Instant::now() < deadline, "{sender} in {entries:?}");
                    tokio::task::yield_now().await;
                }
            }
        }
        let entries = lab.fdb(&bridge).await;
        let shared = entries.iter().find(|it| it.mac == BRIDGE_MAC).unwrap();
        let at = (shared.port, shared.vlan, shared.is_static);
        assert_eq!(at, (FdbPort::Local, vlan, true));
    }
}
