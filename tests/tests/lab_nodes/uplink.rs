//! Node IPs at an uplink, where one UDN is the source.

use std::{collections::BTreeSet, net::IpAddr};

use neighsteer::ids::Mac;
use neighsteer_tests::lab::{
    BRIDGE_MAC, Lab, NODE, NODE_IPV4, NODE_IPV6, Network, PeerNode, UPLINK_BRIDGE, uplink_manifest,
    wait_until,
};

use crate::{
    rig::{PATIENCE, Rig},
    support::{Nodes, Said},
};

/// What these networks' routers should say of a node at the uplink: its addresses with its MAC.
fn said(networks: &[u16], nodes: &[(&PeerNode, Mac)]) -> BTreeSet<Said> {
    let ports = networks.iter().map(|id| Network(*id).external_port());
    ports
        .flat_map(|port| {
            nodes.iter().flat_map(move |(node, mac)| {
                let port = port.clone();
                node.addresses().map(|ip: IpAddr| (port.clone(), ip, *mac))
            })
        })
        .collect()
}

fn wait_for(nodes: &Nodes, wanted: &BTreeSet<Said>) {
    wait_until(PATIENCE, "the static bindings at the uplink", || {
        let written = nodes.written();
        if written == *wanted {
            Ok(())
        } else {
            Err(format!(
                "{written:?}, wanted {wanted:?}; {}",
                nodes.rig.status()["nodes"]
            ))
        }
    })
    .unwrap();
}

fn tell(nodes: &Nodes, node: &PeerNode, mac: Mac) {
    let state = uplink_manifest(&node.name(), "br-there", mac, node.ipv4(), node.ipv6());
    nodes
        .manifests
        .write(&format!("up.{}", node.name()), &state)
        .unwrap();
}

#[test]
fn a_follower_that_becomes_the_source_keeps_its_rows_right_and_gets_no_new_one() {
    let rig = Rig::build(Lab::builder(), 4, &[]);
    rig.lab.move_to_named_uplink(&[2, 3, 4]).unwrap();
    // At the uplink nodes have other MACs than on the default network, where this test has none.
    let mut nodes = Nodes::on_bare(rig, 0);
    let [first, second] = [1, 2].map(|number| nodes.rig.lab.add_peer_node(number).unwrap());
    let [one, other, third] = [1, 2, 3].map(|last| Mac([0x02, 0xee, 0, 0, 0, last]));
    let own = uplink_manifest(NODE, UPLINK_BRIDGE, BRIDGE_MAC, NODE_IPV4, NODE_IPV6);
    nodes.manifests.write(&format!("up.{NODE}"), &own).unwrap();
    tell(&nodes, &first, one);
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    // The first by name is the source.
    wait_for(&nodes, &said(&[3, 4], &[(&first, one)]));

    nodes.rig.lab.remove_udn(2).unwrap();
    tell(&nodes, &first, other);
    tell(&nodes, &second, third);
    let mut wanted = said(&[3, 4], &[(&first, other)]);
    wanted.extend(said(&[4], &[(&second, third)]));
    wait_for(&nodes, &wanted);

    nodes
        .manifests
        .remove(&format!("up.{}", first.name()))
        .unwrap();
    wait_for(&nodes, &said(&[4], &[(&second, third)]));
}
