//! The source's bindings reach every follower.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use neighsteer::ids::Mac;
use neighsteer_tests::{
    frames::{arp_announcement, arp_reply},
    lab::{BRIDGE_MAC, GATEWAY_IPV4, NODE_IPV4, Network, wait_until},
};

use crate::rig::{PATIENCE, PING, Rig, now_ms};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 18, 7, 7));
const HOST6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 7, 7));
const OTHER: Mac = Mac([0x02, 0xaa, 0, 0, 0, 9]);

#[test]
fn the_first_packet_of_a_pod_to_a_host_that_nobody_had_resolved_is_answered() {
    let rig = Rig::start(3, &[3]);
    let _agent = rig.steering_agent();
    for host in [HOST, HOST6] {
        rig.lab.add_external_host(host).unwrap();
        assert!(rig.lab.mac_bindings(host).unwrap().is_empty());
        let answer = rig.lab.ping(Network(3), host, PING).unwrap();
        assert!(
            answer.is_some(),
            "the packet to {host} that OVN buffered was not answered: {}",
            rig.status()
        );
        rig.wait_for_bindings(host, &[0, 1, 2, 3]);
    }
    let mirror = &rig.status()["mirror"]["br-ex"];
    assert_eq!(mirror["lag_ms"], serde_json::Value::Null);
    assert!(
        mirror["counters"]["latency"]["count"].as_u64().unwrap() >= 2,
        "{mirror}"
    );
}

#[test]
fn a_new_follower_gets_every_binding_of_the_source_at_once() {
    let mut rig = Rig::start(1, &[]);
    let _agent = rig.steering_agent();
    rig.lab
        .send_from_outside(
            &[arp_reply(
                OTHER,
                Ipv4Addr::new(172, 18, 7, 7),
                BRIDGE_MAC,
                NODE_IPV4,
            )],
            Duration::ZERO,
        )
        .unwrap();
    rig.wait_for_bindings(HOST, &[0, 1]);
    rig.lab.add_udn(2).unwrap();
    rig.wait_for_bindings(HOST, &[0, 1, 2]);
}

#[test]
fn a_neighbour_that_announces_another_mac_is_corrected_on_every_follower() {
    let rig = Rig::start(2, &[2]);
    let _agent = rig.steering_agent();
    assert!(
        rig.lab
            .ping(Network(2), IpAddr::V4(GATEWAY_IPV4), PING)
            .unwrap()
            .is_some()
    );
    rig.wait_for_bindings(IpAddr::V4(GATEWAY_IPV4), &[0, 1, 2]);
    rig.lab
        .send_from_outside(&[arp_announcement(OTHER, GATEWAY_IPV4)], Duration::ZERO)
        .unwrap();
    wait_until(PATIENCE, "the new MAC on every router", || {
        let rows = rig.lab.mac_bindings(IpAddr::V4(GATEWAY_IPV4)).unwrap();
        if rows.len() == 3 && rows.iter().all(|row| row.mac == OTHER.to_string()) {
            Ok(())
        } else {
            Err(format!("{rows:?}"))
        }
    })
    .unwrap();
}

#[test]
fn a_followers_row_that_vanishes_under_a_live_source_is_put_back_and_pings_go_on() {
    let rig = Rig::start(2, &[2]);
    let _agent = rig.steering_agent();
    let gateway = IpAddr::V4(GATEWAY_IPV4);
    assert!(rig.lab.ping(Network(2), gateway, PING).unwrap().is_some());
    rig.wait_for_bindings(gateway, &[0, 1, 2]);
    rig.lab
        .delete_mac_binding(Network(2), &gateway.to_string())
        .unwrap();
    rig.wait_for_bindings(gateway, &[0, 1, 2]);
    assert!(rig.lab.ping(Network(2), gateway, PING).unwrap().is_some());
}

#[test]
fn a_source_row_that_goes_leaves_the_followers_rows() {
    let rig = Rig::start(2, &[]);
    let _agent = rig.steering_agent();
    rig.lab
        .insert_mac_binding(Network::DEFAULT, "172.18.7.7", &OTHER.to_string(), now_ms())
        .unwrap();
    rig.wait_for_bindings(HOST, &[0, 1, 2]);
    rig.lab
        .delete_mac_binding(Network::DEFAULT, "172.18.7.7")
        .unwrap();
    // What the mirror would do about it, it would do before it serves the next binding.
    rig.lab
        .insert_mac_binding(Network::DEFAULT, "172.18.7.8", &OTHER.to_string(), now_ms())
        .unwrap();
    rig.wait_for_bindings("172.18.7.8".parse().unwrap(), &[0, 1, 2]);
    rig.wait_for_bindings(HOST, &[1, 2]);
}

#[test]
fn rows_that_cannot_be_read_are_counted_and_the_good_ones_are_mirrored() {
    let rig = Rig::start(1, &[]);
    let _agent = rig.steering_agent();
    for (ip, mac) in [
        ("", "02:aa:00:00:00:09"),
        ("not-an-address", "02:aa:00:00:00:09"),
        ("172.18.7.9", ""),
        ("172.18.7.10", "zz"),
    ] {
        rig.lab
            .insert_mac_binding(Network::DEFAULT, ip, mac, now_ms())
            .unwrap();
    }
    rig.lab
        .insert_mac_binding(
            Network::DEFAULT,
            "172.18.7.7",
            "02:AA:00:00:00:09",
            now_ms(),
        )
        .unwrap();
    rig.wait_for_bindings(HOST, &[0, 1]);
    let rows = rig.lab.all_mac_bindings().unwrap();
    let followers: Vec<&str> = rows
        .iter()
        .filter(|row| row.logical_port == Network(1).external_port())
        .map(|row| row.ip.as_str())
        .collect();
    assert!(
        !followers
            .iter()
            .any(|ip| ["", "not-an-address", "172.18.7.9", "172.18.7.10"].contains(ip)),
        "{followers:?}"
    );
    let bad = rig.status()["bad_bindings"].as_u64().unwrap();
    assert_eq!(bad, 4, "{}", rig.status());
}

#[test]
fn a_refreshed_source_row_fills_a_follower_that_lacks_it() {
    let rig = Rig::start(2, &[]);
    rig.lab
        .insert_mac_binding(Network::DEFAULT, "172.18.7.7", &OTHER.to_string(), now_ms())
        .unwrap();
    rig.lab
        .insert_mac_binding(Network(1), "172.18.7.7", &OTHER.to_string(), now_ms())
        .unwrap();
    rig.wait_for_bindings(HOST, &[0, 1]);
    let _agent = rig.steering_agent();
    // A start fills what is missing and leaves what is right.
    rig.wait_for_bindings(HOST, &[0, 1, 2]);
    let writes = &rig.status()["mirror"]["br-ex"]["counters"]["writes"];
    let written: u64 = writes
        .as_object()
        .unwrap()
        .values()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    let rows = rig.lab.mac_bindings(HOST).unwrap();
    assert_eq!(rows.len(), 3);
    // The gateway's own binding may have been mirrored to both followers meanwhile.
    assert!(written <= 3, "{writes}");
}
