//! The source's bindings reach every follower.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use neighsteer::ids::Mac;
use neighsteer_tests::{
    frames::{arp_announcement, unsolicited_advertisement},
    lab::{Daemon, GATEWAY_IPV4, GATEWAY_IPV6, Network, OvnVersion, wait_until},
};
use serde_json::{Value, json};

use crate::{
    rig,
    rig::{PATIENCE, PING, Rig},
};

const HOSTS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(172, 18, 7, 7)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 7, 7)),
];
const OTHER: Mac = Mac([0x02, 0xaa, 0, 0, 0, 9]);
const GATEWAYS: [IpAddr; 2] = [IpAddr::V4(GATEWAY_IPV4), IpAddr::V6(GATEWAY_IPV6)];

fn resolve(rig: &Rig, network: Network, address: IpAddr) {
    let answer = rig.lab.ping(network, address, PING).unwrap();
    assert!(answer.is_some(), "no answer of {address}: {}", rig.status());
}

/// Deletes the rows of all followers in one transaction, as ovn-northd does when they have aged.
fn delete_followers_rows(rig: &Rig, address: IpAddr) {
    let conditions = json!([
        ["ip", "==", address.to_string()],
        ["logical_port", "!=", Network::DEFAULT.external_port()],
    ]);
    let deleted = rig
        .lab
        .with_database(Daemon::Southbound, |southbound| {
            southbound.transact(vec![
                json!({"op": "delete", "table": "MAC_Binding", "where": conditions}),
            ])
        })
        .unwrap();
    let followers = rig.lab.udns().count();
    assert_eq!(deleted[0]["count"], followers, "{deleted:?}");
}

fn wait_for_mac(rig: &Rig, address: IpAddr, mac: Mac) {
    let routers = rig.lab.networks().count();
    wait_until(
        PATIENCE,
        format_args!("{address} at {mac} on {routers} routers"),
        || {
            let rows = rig.lab.mac_bindings(address).unwrap();
            let right = rows.iter().filter(|row| row.mac == mac.to_string()).count();
            match right == routers {
                true => Ok(()),
                false => Err(format!("{rows:?}")),
            }
        },
    )
    .unwrap();
}

pub fn the_first_packet_of_a_pod_to_an_unresolved_host_is_answered(version: OvnVersion) {
    let rig = rig(version, 3);
    let _agent = rig.steering_agent();
    for host in HOSTS {
        rig.lab.add_external_host(host).unwrap();
        assert!(rig.lab.mac_bindings(host).unwrap().is_empty());
        resolve(&rig, Network(3), host);
        rig.wait_for_bindings(host, &[0, 1, 2, 3]);
    }
}

pub fn a_gateway_with_another_mac_reaches_every_follower(version: OvnVersion) {
    let rig = rig(version, 3);
    let _agent = rig.steering_agent();
    for gateway in GATEWAYS {
        resolve(&rig, Network(3), gateway);
        rig.wait_for_bindings(gateway, &[0, 1, 2, 3]);
    }
    let announcements = [
        arp_announcement(OTHER, GATEWAY_IPV4),
        unsolicited_advertisement(OTHER, GATEWAY_IPV6),
    ];
    rig.lab
        .send_from_outside(&announcements, Duration::ZERO)
        .unwrap();
    for gateway in GATEWAYS {
        wait_for_mac(&rig, gateway, OTHER);
    }
}

pub fn a_followers_row_that_vanishes_under_a_live_source_is_put_back(version: OvnVersion) {
    let rig = rig(version, 2);
    let _agent = rig.steering_agent();
    for gateway in GATEWAYS {
        resolve(&rig, Network(2), gateway);
        rig.wait_for_bindings(gateway, &[0, 1, 2]);
        rig.lab
            .delete_mac_binding(Network(2), &gateway.to_string())
            .unwrap();
        rig.wait_for_bindings(gateway, &[0, 1, 2]);
        resolve(&rig, Network(2), gateway);
    }
}

pub fn one_sign_of_the_source_restores_the_rows_of_all_followers(version: OvnVersion) {
    let rig = rig(version, 6);
    let _agent = rig.steering_agent();
    let gateway = IpAddr::V4(GATEWAY_IPV4);
    let all = [0, 1, 2, 3, 4, 5, 6];
    resolve(&rig, Network(6), gateway);
    rig.wait_for_bindings(gateway, &all);
    delete_followers_rows(&rig, gateway);
    rig.wait_for_bindings(gateway, &all);
    let put_back = |status: &Value| {
        let writes = &status["mirror"]["br-ex"]["counters"]["writes"];
        writes["put_back"].as_u64()
    };
    rig.wait_for_status("six rows put back", |status| {
        (put_back(status)? == 6).then_some(())
    });
    // Put back a moment ago, they are not put back again before the cooldown is over: now it is the
    // source's sign of life that does it.
    delete_followers_rows(&rig, gateway);
    let announcement = arp_announcement(OTHER, GATEWAY_IPV4);
    rig.lab
        .send_from_outside(&[announcement], Duration::ZERO)
        .unwrap();
    wait_for_mac(&rig, gateway, OTHER);
    let status = rig.status();
    assert_eq!(put_back(&status), Some(6), "{status}");
}
