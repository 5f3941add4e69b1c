//! The lab itself: it comes up, carries pods' packets, and leaves nothing behind.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use neighsteer_tests::frames::{arp_reply, who_has};
use neighsteer_tests::lab::{
    BRIDGE_MAC, Daemon, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab, NODE_IPV4, Network,
    OvnVersion, labs, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const TOOL: &str = env!("CARGO_BIN_EXE_neighsteer-lab");
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
    // One that no parent has waited for yet is gone all the same.
    let runs = |pid: &&u32| {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    remains.extend(
        processes
            .iter()
            .filter(runs)
            .map(|pid| format!("process {pid}")),
    );
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

/// Starts the tool that brings a lab up, and signals it once ovs-vswitchd runs. Returns how it
/// ended, and the lab's ID, directory and that daemon's process.
fn signal_while_starting(signal: Signal) -> (ExitStatus, String, PathBuf, u32) {
    let mut owner = Command::new(TOOL)
        .args(["up", "--udns", "1"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = wait_until(PATIENCE, "the lab to start ovs-vswitchd", || {
        let lab = labs()
            .into_iter()
            .find(|(state, ..)| state.owner.is_some_and(|(pid, _)| pid == owner.id()));
        let (state, directory, _) = lab.ok_or("no directory")?;
        let pid = fs::read_to_string(directory.join("ovs-vswitchd.pid")).map_err(|_| "no pid")?;
        let pid: u32 = pid.trim().parse().map_err(|_| "no number")?;
        Ok::<_, &str>((state.id, directory, pid))
    });
    kill(Pid::from_raw(owner.id().try_into().unwrap()), signal).unwrap();
    let status = owner.wait().unwrap();
    let (id, directory, vswitchd) = started.unwrap();
    (status, id, directory, vswitchd)
}

#[test]
fn what_a_killed_owner_left_is_taken_down() {
    let (_, id, directory, vswitchd) = signal_while_starting(Signal::SIGKILL);
    assert!(directory.exists());
    let down = Command::new(TOOL).args(["down", &id]).output().unwrap();
    assert!(down.status.success(), "{down:?}");
    assert_eq!(remains(&id, &directory, &[vswitchd]), Vec::<String>::new());
}

#[test]
fn an_interrupted_owner_leaves_nothing() {
    let (status, id, directory, vswitchd) = signal_while_starting(Signal::SIGINT);
    assert_eq!(status.code(), Some(1));
    assert_eq!(remains(&id, &directory, &[vswitchd]), Vec::<String>::new());
}

#[test]
fn a_lab_ends_with_the_panic_of_its_owner() {
    for version in OvnVersion::ALL {
        ends_with_the_panic_of_its_owner(version);
    }
}

fn ends_with_the_panic_of_its_owner(version: OvnVersion) {
    let (sender, receiver) = mpsc::channel();
    let owner = thread::spawn(move || {
        let lab = Lab::builder().version(version).udns(1).start().unwrap();
        let found = (
            lab.state().id.clone(),
            lab.directory().to_owned(),
            processes(&lab),
        );
        sender.send(found).unwrap();
        panic!("a test that fails");
    });
    assert!(owner.join().is_err());
    let (id, directory, processes) = receiver.recv().unwrap();
    assert_eq!(remains(&id, &directory, &processes), Vec::<String>::new());
}

#[test]
fn a_udn_comes_and_goes_while_the_lab_runs() {
    let mut lab = Lab::builder().udns(1).start().unwrap();
    let network = lab.add_udn(7).unwrap();
    lab.add_pod(network).unwrap();
    lab.set_flows(FlowSet::Legacy).unwrap();
    assert!(
        lab.ping(network, GATEWAY_IPV4.into(), PATIENCE)
            .unwrap()
            .is_some()
    );
    lab.remove_udn(7).unwrap();
    lab.set_flows(FlowSet::Legacy).unwrap();
    let trace = lab.trace(&lab.uplink(), &reply()).unwrap();
    assert_eq!(trace.entered, 2, "{}", trace.raw);
}

#[test]
fn a_secondary_localnet_port_appears_beside_the_others() {
    let mut lab = Lab::builder().udns(1).start().unwrap();
    let secondary = lab.add_secondary_localnet("storage-1").unwrap();
    assert_eq!(
        secondary.patch_port(),
        "patch-cluster_udn_storage.1_ovn_localnet_port-to-br-int"
    );
    assert!(
        lab.openflow_ports()
            .unwrap()
            .contains_key(&secondary.patch_port())
    );
}

#[test]
fn a_restarted_switch_has_lost_flows_flags_and_static_entries() {
    let mut lab = Lab::builder().udns(1).pods([1]).start().unwrap();
    lab.restart_daemon(Daemon::Vswitchd).unwrap();
    assert!(!lab.has_static_fdb_entry().unwrap());
    assert!(lab.no_flood_ports().unwrap().is_empty());
    assert_eq!(lab.flows("br-ex").unwrap().len(), 1);
    lab.set_flows(FlowSet::Legacy).unwrap();
    assert!(
        lab.ping(Network(1), GATEWAY_IPV4.into(), PATIENCE)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_request_for_the_nodes_address_is_answered_by_the_default_router_and_the_host_only() {
    let lab = Lab::builder().udns(3).start().unwrap();
    let is_answer =
        |frame: &[u8]| frame.starts_with(&GATEWAY_MAC.0) && frame.get(20..22) == Some(&[0, 2]);
    // Today's flows hand the request to the default router twice: by name and by flooding.
    for (flows, expected) in [(FlowSet::Legacy, 3), (FlowSet::Base, 2)] {
        lab.set_flows(flows).unwrap();
        let capture = lab.capture_outside().unwrap();
        let question = who_has(GATEWAY_MAC, GATEWAY_IPV4, NODE_IPV4);
        lab.send_from_outside(&[question], Duration::ZERO).unwrap();
        wait_until(PATIENCE, "an answer", || match capture.count(is_answer) {
            0 => Err("none"),
            _ => Ok(()),
        })
        .unwrap();
        let quiet = Duration::from_secs(1);
        let answers = capture.count_when_quiet(quiet, is_answer).unwrap();
        assert_eq!(answers, expected, "{flows:?}: {:02x?}", capture.frames());
    }
}

#[test]
fn pods_reach_the_outside_again_after_each_daemon_was_restarted() {
    let mut lab = Lab::builder().udns(1).pods([1]).start().unwrap();
    for daemon in Daemon::ALL {
        let before = lab.pid(daemon).unwrap();
        lab.restart_daemon(daemon).unwrap();
        assert_ne!(lab.pid(daemon).unwrap(), before);
    }
    lab.set_flows(FlowSet::Legacy).unwrap();
    lab.sync().unwrap();
    wait_until(PATIENCE * 3, "the pod to reach the outside", || {
        match lab.ping(Network(1), GATEWAY_IPV4.into(), Duration::from_secs(1)) {
            Ok(Some(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .unwrap();
}
