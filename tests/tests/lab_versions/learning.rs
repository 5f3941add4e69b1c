//! What OVN itself learns from.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use neighsteer::ids::Mac;
use neighsteer_tests::{
    frames::{
        Arp, arp_reply, neighbor_advertisement, neighbor_solicitation, unicast_solicitation,
        who_has,
    },
    lab::{BRIDGE_MAC, NODE_IPV4, NODE_IPV6, Network, OvnVersion},
};

use crate::{rig, rig::Rig};

/// Addresses on the external network that nobody has.
const NOBODY: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(172, 18, 0, 77),
    Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 0x77),
);

#[derive(Debug, Clone, Copy)]
struct Neighbour {
    mac: Mac,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
}

impl Neighbour {
    const fn new(number: u8) -> Self {
        Self {
            mac: Mac([0x02, 0xbb, 0, 0, 0, number]),
            ipv4: Ipv4Addr::new(172, 18, 9, number),
            ipv6: Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 9, number as u16),
        }
    }

    const fn at(self, mac: Mac) -> Self {
        Self { mac, ..self }
    }
}

/// Sends frames, and then a reply and an advertisement of `last`: OVN takes frames in order, so that
/// the last one's bindings come after whatever the frames teach.
fn send(rig: &Rig, frames: &[Vec<u8>], last: Neighbour) {
    let closing = [
        arp_reply(last.mac, last.ipv4, BRIDGE_MAC, NODE_IPV4),
        neighbor_advertisement(last.mac, last.ipv6, BRIDGE_MAC, NODE_IPV6),
    ];
    for frame in frames.iter().chain(&closing) {
        let frame = std::slice::from_ref(frame);
        rig.lab.send_from_outside(frame, Duration::ZERO).unwrap();
    }
    rig.wait_for_bindings(last.ipv4.into(), &[0, 1]);
    rig.wait_for_bindings(last.ipv6.into(), &[0, 1]);
}

/// The source's MACs for a neighbour, IPv4 and IPv6.
fn known(rig: &Rig, neighbour: Neighbour) -> [Option<String>; 2] {
    [neighbour.ipv4.into(), neighbour.ipv6.into()].map(|address| {
        let source = Network::DEFAULT.external_port();
        let mut rows = rig.lab.mac_bindings(address).unwrap().into_iter();
        rows.find(|row| row.logical_port == source)
            .map(|row| row.mac)
    })
}

pub fn a_request_for_the_routers_address_makes_a_binding_and_a_solicitation_only_changes_one(
    version: OvnVersion,
) {
    let rig = rig(version, 1);
    let _agent = rig.steering_agent();
    let [by_broadcast, by_unicast, by_others] = [1, 2, 3].map(Neighbour::new);
    let [by_reply, by_reply_too, last] = [4, 5, 6].map(Neighbour::new);
    let first = [
        who_has(by_broadcast.mac, by_broadcast.ipv4, NODE_IPV4),
        neighbor_solicitation(by_broadcast.mac, by_broadcast.ipv6, NODE_IPV6),
        Arp::request(by_unicast.mac, by_unicast.ipv4, NODE_IPV4)
            .frame(BRIDGE_MAC)
            .to_bytes(),
        unicast_solicitation(by_unicast.mac, by_unicast.ipv6, BRIDGE_MAC, NODE_IPV6),
        who_has(by_others.mac, by_others.ipv4, NOBODY.0),
        neighbor_solicitation(by_others.mac, by_others.ipv6, NOBODY.1),
    ];
    send(&rig, &first, by_reply);
    for neighbour in [by_broadcast, by_unicast] {
        let expected = [Some(neighbour.mac.to_string()), None];
        assert_eq!(known(&rig, neighbour), expected, "{neighbour:?}");
    }
    assert_eq!(known(&rig, by_others), [None, None]);

    // Who is known already is believed whatever he asks for.
    send(&rig, &[], by_reply_too);
    let moved = by_reply.at(Mac([0x02, 0xcc, 0, 0, 0, 1]));
    let moved_too = by_reply_too.at(Mac([0x02, 0xcc, 0, 0, 0, 2]));
    let then = [
        who_has(moved.mac, moved.ipv4, NOBODY.0),
        neighbor_solicitation(moved.mac, moved.ipv6, NOBODY.1),
        who_has(moved_too.mac, moved_too.ipv4, NODE_IPV4),
        unicast_solicitation(moved_too.mac, moved_too.ipv6, BRIDGE_MAC, NODE_IPV6),
    ];
    send(&rig, &then, last);
    for neighbour in [moved, moved_too] {
        let mac = Some(neighbour.mac.to_string());
        assert_eq!(known(&rig, neighbour), [mac.clone(), mac]);
    }
}
