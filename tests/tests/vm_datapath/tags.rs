//! Tags that are metadata on arrival, as a network card leaves them, and not in the frame.

use std::collections::BTreeMap;

use neighsteer::datapath::Hook;
use neighsteer_common::Decision;
use neighsteer_tests::{
    frames::{BRIDGE_MAC, HOST_IP, HOST_MAC, NODE_IP, arp_reply},
    packet_socket::PacketSocket,
};

use crate::rig::*;

/// `(TPID, VID)` as `ip link` takes them.
const TAGS: [(&str, &str); 3] = [("802.1Q", "5"), ("802.1Q", "7"), ("802.1ad", "5")];

/// The other end's VLAN interfaces, whose driver hands tags over beside the frame.
fn tagging_interfaces() -> Vec<PacketSocket> {
    let interfaces = TAGS.iter().enumerate().map(|(index, (protocol, id))| {
        let name = format!("tagged{index}");
        ip(&[
            "link", "add", "link", OUTSIDE, "name", &name, "type", "vlan", "protocol", protocol,
            "id", id,
        ]);
        ip(&["link", "set", &name, "up"]);
        PacketSocket::open(&name).unwrap()
    });
    interfaces.collect()
}

fn reply() -> Vec<u8> {
    arp_reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP)
}

#[tokio::test]
async fn a_tag_beside_the_frame_is_steered_and_counted_as_one_in_it() {
    let shape = |gateway_vlan| Shape {
        followers: 2,
        mac: BRIDGE_MAC,
        gateway_vlan,
    };
    let Some(mut rig) = Rig::start(shape(None), &[]).await else {
        return;
    };
    let sockets = tagging_interfaces();
    // How many of the three tagged frames and an untagged one are steered.
    for (gateway_vlan, expected) in [(None, 4), (Some(5), 2)] {
        rig.steer(shape(gateway_vlan)).await;
        rig.attach(Hook::Tc);
        let before = rig.counters();
        for socket in &sockets {
            socket.send(&reply()).unwrap();
        }
        rig.receive(&[reply()]).await;
        let steered = [(Decision::SteerArp, expected)].into();
        assert_eq!(rig.steered().await, steered, "{gateway_vlan:?}");
        let (mut packets, mut bytes) = (BTreeMap::new(), 0);
        for (key, (frames, length)) in rig.counters() {
            let before = before.get(&key).copied().unwrap_or_default();
            packets.insert(key.1, frames - before.0);
            bytes += length - before.1;
        }
        packets.retain(|_, frames| *frames > 0);
        let mut counted = BTreeMap::from([(Decision::SteerArp, expected)]);
        if expected < 4 {
            counted.insert(Decision::Normal, 4 - expected);
        }
        assert_eq!(packets, counted, "{gateway_vlan:?}");
        assert_eq!(bytes, 3 * 46 + 42, "the tags count");
    }
}
