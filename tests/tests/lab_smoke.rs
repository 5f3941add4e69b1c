//! The lab itself: it comes up, carries pods' packets, and leaves nothing behind.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use neighsteer_tests::frames::arp_reply;
use neighsteer_tests::lab::{
    BRIDGE_MAC, Daemon, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab, NODE_IPV4, Network,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A unicast ARP reply that resolves the external host's first address.
fn reply() -> Vec<u8> {
    arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4)
}

/// What a lab left on the machine: processes, namespaces, its directory.
fn remains(lab_id: &str, directory: &Path, processes: &[u32]) -> Vec<String> {
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let namespaces = String::from_utf8(namespaces.stdout).unwrap();
    let mut remains: Vec<String> = namespaces
        .lines()
        .filter(|line| line.contains(lab_id))
        .map(str::to_owned)
        .collect();
    let alive = processes
        .iter()
        .filter(|pid| PathBuf::from(format!("/proc/{pid}")).exists());
    remains.extend(alive.map(|pid| format!("process {pid}")));
    if directory.exists() {
        remains.push(directory.display().to_string());
    }
    remains
}

fn processes(lab: &Lab) -> Vec<u32> {
    Daemon::ALL
        .iter()
        .map(|daemon| lab.pid(*daemon).unwrap())
        .collect()
}

#[test]
fn a_pod_of_the_default_network_reaches_the_outside_over_both_families() {
    let lab = Lab::builder().udns(3).pods([0, 3]).start().unwrap();
    for address in [IpAddr::from(GATEWAY_IPV4), IpAddr::from(GATEWAY_IPV6)] {
        for network in [Network::DEFAULT, Network(3)] {
            let answer = lab.ping(network, address, PATIENCE).unwrap();
            assert!(
                answer.is_some(),
                "no answer from {address} to the pod of {network:?}"
            );
        }
    }
}

#[test]
fn a_unicast_reply_fans_out_to_all_routers_with_the_legacy_flows_only() {
    let lab = Lab::builder().udns(3).start().unwrap();
    let legacy = lab.trace(&lab.uplink(), &reply()).unwrap();
    assert_eq!(
        (legacy.priority(), legacy.entered),
        (Some(10), 4),
        "{}",
        legacy.raw
    );
    assert_eq!(lab.no_flood_ports().unwrap().len(), 3);
    assert!(lab.has_static_fdb_entry().unwrap());

    lab.set_flows(FlowSet::Base).unwrap();
    let base = lab.trace(&lab.uplink(), &reply()).unwrap();
    assert_eq!(
        (base.priority(), base.entered),
        (Some(0), 0),
        "{}",
        base.raw
    );
    assert!(base.outputs_to("br-ex"), "{}", base.datapath_actions);
}

#[test]
fn two_labs_at_once_do_not_know_of_each_other_and_leave_nothing() {
    let first = Lab::builder().udns(1).pods([1]).start().unwrap();
    let second = Lab::builder().udns(2).pods([1]).start().unwrap();
    let learned = first
        .ping(Network(1), GATEWAY_IPV4.into(), PATIENCE)
        .unwrap();
    assert!(learned.is_some());
    assert_eq!(first.mac_bindings(GATEWAY_IPV4.into()).unwrap().len(), 2);
    assert!(second.mac_bindings(GATEWAY_IPV4.into()).unwrap().is_empty());

    for lab in [first, second] {
        let id = lab.state().id.clone();
        let (directory, processes) = (lab.directory().to_owned(), processes(&lab));
        drop(lab);
        assert_eq!(remains(&id, &directory, &processes), Vec::<String>::new());
    }
}
