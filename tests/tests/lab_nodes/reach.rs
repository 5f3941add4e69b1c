//! Pods reach other nodes without a word on the wire.

use std::net::{IpAddr, Ipv4Addr};

use neighsteer::ids::Mac;
use neighsteer_tests::lab::{BRIDGE_MAC, Lab, Network, wait_until};

use crate::{
    rig::{PATIENCE, PING, Rig},
    support::Nodes,
};

const UDNS: u16 = 70;
const POD: Network = Network(UDNS);

/// Sends one ping from the last UDN's pod to each address; none may be lost, and none of the node's
/// routers may ask who has it.
fn reach(nodes: &Nodes, addresses: &[IpAddr]) {
    nodes.rig.lab.sync().unwrap();
    for address in addresses {
        let capture = nodes.rig.lab.capture_outside().unwrap();
        let answer = nodes.rig.lab.ping(POD, *address, PING).unwrap();
        assert!(answer.is_some(), "{address}: {}", nodes.rig.status());
        let asked = capture.count(|frame| asks_for(frame, *address));
        assert_eq!(asked, 0, "the router resolved {address} by itself");
    }
}

/// Whether a frame is the node's own who-has or Neighbor Solicitation for an address.
fn asks_for(frame: &[u8], address: IpAddr) -> bool {
    let from_node = frame.get(6..12) == Some(&BRIDGE_MAC.0);
    let asks = match address {
        IpAddr::V4(ip) => {
            frame.get(12..14) == Some(&[0x08, 0x06])
                && frame.get(20..22) == Some(&[0, 1])
                && frame.get(38..42) == Some(&ip.octets())
        }
        IpAddr::V6(ip) => {
            frame.get(12..14) == Some(&[0x86, 0xdd])
                && frame.get(54) == Some(&135)
                && frame.get(62..78) == Some(&ip.octets())
        }
    };
    from_node && asks
}

fn start() -> Nodes {
    let rig = Rig::build(Lab::builder(), UDNS, &[UDNS]);
    Nodes::on(rig, 3)
}

fn all(nodes: &Nodes) -> Vec<IpAddr> {
    nodes.addresses().into_iter().collect()
}

const NEW_MAC: Mac = Mac([0x02, 0xcc, 0, 0, 0, 1]);

#[test]
fn pods_reach_other_nodes_by_static_rows_through_a_new_mac_and_a_node_that_leaves() {
    let mut nodes = start();
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    reach(&nodes, &all(&nodes));

    nodes.peers[0].set_mac(NEW_MAC).unwrap();
    nodes.manifests.put(&nodes.peers[0]).unwrap();
    nodes.wait_for_static_rows();
    reach(&nodes, &nodes.peers[0].addresses());

    let gone = nodes.peers.pop().unwrap();
    nodes.manifests.remove(&gone.name()).unwrap();
    gone.remove().unwrap();
    nodes.wait_for_static_rows();
    reach(&nodes, &all(&nodes));
    nodes.masquerade_rows_are_untouched();
}

#[test]
fn pods_reach_other_nodes_by_dynamic_rows_through_a_new_mac_and_a_node_that_leaves() {
    let mut nodes = start();
    let _agent = nodes.agent(&["--node-bindings", "dynamic"]);
    nodes.wait_for_dynamic_rows();
    reach(&nodes, &all(&nodes));

    nodes.peers[0].set_mac(NEW_MAC).unwrap();
    nodes.manifests.put(&nodes.peers[0]).unwrap();
    nodes.wait_for_dynamic_rows();
    reach(&nodes, &nodes.peers[0].addresses());

    let gone = nodes.peers.pop().unwrap();
    nodes.manifests.remove(&gone.name()).unwrap();
    gone.remove().unwrap();
    // Its rows are left to age; those of the others stay right.
    nodes.wait_for_dynamic_rows();
    reach(&nodes, &all(&nodes));
    assert!(nodes.written().is_empty(), "{:?}", nodes.written());
    nodes.masquerade_rows_are_untouched();
}

#[test]
fn another_strategy_leaves_no_moment_in_which_a_follower_has_no_row() {
    let nodes = start();
    let mut agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    agent.terminate(PING).unwrap();

    let agent = nodes.agent(&["--node-bindings", "dynamic"]);
    let wanted = nodes.wanted();
    let addresses = nodes.addresses();
    wait_until(PATIENCE, "the static rows to go", || {
        // In this order: a row that goes meanwhile has its successor already.
        let written = nodes.written();
        let learnt = nodes.learnt(&addresses);
        let nowhere: Vec<_> = wanted
            .iter()
            .filter(|row| !written.contains(row) && !learnt.contains(row))
            .collect();
        assert!(nowhere.is_empty(), "{nowhere:?}");
        match written.len() {
            0 => Ok(()),
            left => Err(format!("{left} are there: {}", nodes.rig.status()["nodes"])),
        }
    })
    .unwrap();
    nodes.wait_for_dynamic_rows();
    reach(&nodes, &all(&nodes));
    drop(agent);

    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    nodes.masquerade_rows_are_untouched();
}

#[test]
fn without_a_word_of_nodes_the_agent_steers_and_mirrors_and_deletes_no_row() {
    let nodes = Nodes::on(Rig::build(Lab::builder(), 3, &[3]), 2);
    let agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    drop(agent);
    let rows = nodes.written();

    // Nobody listens there.
    let kubeconfig = nodes.rig.lab.directory().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let flags = ["--nodes", "kubernetes", "--kubeconfig", kubeconfig];
    let _agent = nodes.rig.agent(&[&crate::rig::STEER[..], &flags].concat());
    let host = IpAddr::V4(Ipv4Addr::new(172, 18, 7, 7));
    nodes.rig.lab.add_external_host(host).unwrap();
    nodes
        .rig
        .wait_for_status("steering without nodes", |status| {
            let source = &status["nodes"]["source"];
            let waits = source["synced"] == false && source["last_error"].is_string();
            let steers = status["settled"] == true && status["mirror"]["br-ex"]["synced"] == true;
            (waits && steers).then_some(())
        });
    assert!(
        nodes
            .rig
            .lab
            .ping(Network(3), host, PING)
            .unwrap()
            .is_some()
    );
    nodes.rig.wait_for_bindings(host, &[0, 1, 2, 3]);
    assert_eq!(nodes.written(), rows);
}

const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
";

#[test]
fn a_node_with_a_malformed_annotation_keeps_its_rows_and_the_others_go_on() {
    let mut nodes = Nodes::on(Rig::build(Lab::builder(), 2, &[]), 2);
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();

    let mut broken = nodes.peers[0].manifest();
    broken["metadata"]["annotations"]["k8s.ovn.org/l3-gateway-config"] = "{\"default\":".into();
    nodes
        .manifests
        .write(&nodes.peers[0].name(), &broken)
        .unwrap();
    nodes.peers[1].set_mac(NEW_MAC).unwrap();
    nodes.manifests.put(&nodes.peers[1]).unwrap();
    nodes.wait_for_static_rows();
    let named = nodes.rig.wait_for_status("a warning", |status| {
        let warnings = status["nodes"]["warnings"].as_array()?;
        warnings.iter().find_map(|it| Some(it.as_str()?.to_owned()))
    });
    assert!(named.contains(&nodes.peers[0].name()), "{named}");
    nodes.masquerade_rows_are_untouched();
}

#[test]
fn what_the_source_knows_of_nodes_by_itself_is_missing_at_no_follower() {
    let nodes = Nodes::on(Rig::build(Lab::builder(), 2, &[]), 1);
    let of_node = nodes.peers[0].ipv4().to_string();
    let bindings = || {
        let directory = nodes.rig.lab.state_directory().display().to_string();
        nodes.rig.run(&["bindings", "--state-dir", &directory])
    };
    for (strategy, pinned) in [("static", false), ("dynamic", true)] {
        let _agent = nodes.agent(&["--node-bindings", strategy]);
        match pinned {
            false => nodes.wait_for_static_rows(),
            true => nodes.wait_for_dynamic_rows(),
        }
        if !pinned {
            nodes.rig.source_learns(&of_node);
        }
        nodes
            .rig
            .source_learns(if pinned { "172.18.7.8" } else { "172.18.7.7" });
        wait_until(PATIENCE, "followers that lack nothing", || {
            let output = bindings();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match output.status.code() {
                Some(0) if text.contains("pinned") == pinned => Ok(()),
                code => Err(format!("{code:?}: {text}")),
            }
        })
        .unwrap();
    }
}

#[test]
fn a_node_that_claims_our_chassis_or_addresses_of_others_takes_nobodys_rows_away() {
    let nodes = Nodes::on(Rig::build(Lab::builder(), 2, &[]), 2);
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();

    // It comes first by name, is on this chassis, and has the first peer's address.
    let mut imposter = nodes.peers[0].manifest_with(NEW_MAC);
    imposter["metadata"]["name"] = "aaa".into();
    let chassis = nodes.rig.lab.chassis();
    imposter["metadata"]["annotations"]["k8s.ovn.org/node-chassis-id"] = chassis.into();
    nodes.manifests.write("aaa", &imposter).unwrap();
    let mut broadcast = nodes.peers[1].manifest_with(NEW_MAC);
    broadcast["metadata"]["name"] = "bbb".into();
    broadcast["status"]["addresses"] = serde_json::json!([
        {"type": "InternalIP", "address": "172.18.255.255"},
        {"type": "InternalIP", "address": "172.18.0.3"},
    ]);
    nodes.manifests.write("bbb", &broadcast).unwrap();
    nodes.rig.wait_for_status("warnings of both", |status| {
        let warnings = status["nodes"]["warnings"].to_string();
        let both = ["on this chassis", "172.18.255.255"];
        both.iter().all(|it| warnings.contains(it)).then_some(())
    });
    nodes.wait_for_static_rows();
    nodes.masquerade_rows_are_untouched();
}
