//! On OVN 23.03 a static row that is left for a deleted port stops northd.

use neighsteer::ids::Mac;
use neighsteer_tests::lab::{AgentProcess, Daemon, Lab, Network, OvnVersion, wait_until};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    rig::{PATIENCE, Rig, STEER},
    support::{Nodes, Said},
};

const UDNS: u16 = 8;

/// A node whose agent has written static rows, without those of OVN-Kubernetes itself, which would be its
/// own to delete.
fn started(version: OvnVersion, udns: u16) -> (Nodes, AgentProcess) {
    let rig = Rig::build(Lab::builder().version(version), udns, &[]);
    let nodes = Nodes::on_bare(rig, 2);
    let agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
    (nodes, agent)
}

/// Removes UDNs one after the other, each after `before`, while the MAC of a node changes each time;
/// northd has to follow every time.
fn northd_goes_on(before: impl Fn(&Lab, Network)) {
    let (mut nodes, _agent) = started(OvnVersion::V23_03, UDNS);
    for (id, last) in (1..UDNS).zip(1u8..) {
        let mac = Mac([0x02, 0xdd, 0, 0, 0, last]);
        nodes.peers[0].set_mac(mac).unwrap();
        nodes.manifests.put(&nodes.peers[0]).unwrap();
        before(&nodes.rig.lab, Network(id));
        // Waits until northd and ovn-controller have followed.
        nodes.rig.lab.remove_udn(id).unwrap();
    }
    nodes.rig.lab.add_udn(UDNS + 1).unwrap();
    nodes.wait_for_static_rows();
    nodes.rig.lab.sync().unwrap();
}

#[test]
fn northd_goes_on_when_a_router_goes_before_its_static_rows() {
    northd_goes_on(|_, _| {});
}

#[test]
fn northd_goes_on_when_a_routers_static_rows_go_first() {
    northd_goes_on(|lab, network| {
        let port = network.external_port();
        lab.delete_static_bindings(&port).unwrap();
    });
}

#[test]
fn rows_of_a_udn_that_went_while_the_agent_was_away_go_when_it_is_back() {
    let (mut nodes, mut agent) = started(OvnVersion::V25_03, 3);
    agent.kill().unwrap();
    nodes.rig.lab.remove_udn(2).unwrap();
    assert!(nodes.written().len() > nodes.wanted().len());
    let _agent = nodes.agent(&["--node-bindings", "static"]);
    nodes.wait_for_static_rows();
}

#[test]
fn rows_of_a_udn_that_went_go_although_the_state_file_is_lost() {
    let (mut nodes, mut agent) = started(OvnVersion::V25_03, 3);
    for by_cleanup in [false, true] {
        agent.kill().unwrap();
        let state = nodes.rig.lab.state_directory().join("state.json");
        std::fs::remove_file(state).unwrap();
        let id = if by_cleanup { 3 } else { 2 };
        nodes.rig.lab.remove_udn(id).unwrap();
        assert!(nodes.written().len() > nodes.wanted().len());
        if by_cleanup {
            let output = nodes.rig.run(&["cleanup"]);
            assert!(output.status.success(), "{output:?}");
            assert!(nodes.written().is_empty(), "{:?}", nodes.written());
        } else {
            agent = nodes.agent(&["--node-bindings", "static"]);
            nodes.wait_for_static_rows();
        }
    }
}

/// What becomes of an agent while a UDN is deleted and made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Runs,
    Hangs,
    IsKilled,
}

/// Deletes a UDN and makes it again under the same name before northd has seen it gone: northd has to
/// follow, and the new router gets its rows.
fn northd_follows_a_udn_made_again(meanwhile: Meanwhile) {
    let (mut nodes, mut agent) = started(OvnVersion::V23_03, 4);
    let signal = |agent: &AgentProcess, signal| {
        let pid = Pid::from_raw(agent.pid().try_into().unwrap());
        kill(pid, signal).unwrap();
    };
    for (id, last) in [(2, 1), (3, 2)] {
        let lab = &nodes.rig.lab;
        let former = rows_at(&nodes, id);
        lab.signal_daemon(Daemon::Northd, Signal::SIGSTOP).unwrap();
        match meanwhile {
            Meanwhile::Runs => {}
            Meanwhile::Hangs => signal(&agent, Signal::SIGSTOP),
            Meanwhile::IsKilled => agent.kill().unwrap(),
        }
        lab.recreate_udn(id).unwrap();
        if meanwhile == Meanwhile::Runs {
            // Neither the former port's rows nor new ones, while all others are written.
            let mac = Mac([0x02, 0xee, 0, 0, 0, last]);
            nodes.peers[0].set_mac(mac).unwrap();
            nodes.manifests.put(&nodes.peers[0]).unwrap();
            let port = Network(id).external_port();
            let mut others = nodes.wanted();
            others.retain(|(at, ..)| *at != port);
            wait_until(PATIENCE, "all rows but those of the new router", || {
                let written = nodes.written();
                (written == others)
                    .then_some(())
                    .ok_or(format!("{written:?}"))
            })
            .unwrap();
        } else {
            assert_eq!(rows_at(&nodes, id), former);
        }
        let lab = &nodes.rig.lab;
        lab.signal_daemon(Daemon::Northd, Signal::SIGCONT).unwrap();
        match meanwhile {
            Meanwhile::Runs => {}
            Meanwhile::Hangs => signal(&agent, Signal::SIGCONT),
            Meanwhile::IsKilled => agent = nodes.agent(&["--node-bindings", "static"]),
        }
        nodes.rig.lab.sync().unwrap();
        nodes.wait_for_static_rows();
        nodes.rig.lab.sync().unwrap();
    }
}

fn rows_at(nodes: &Nodes, id: u16) -> Vec<Said> {
    let port = Network(id).external_port();
    let rows = nodes.written().into_iter();
    rows.filter(|(at, ..)| *at == port).collect()
}

#[test]
fn a_udn_made_again_before_northd_saw_it_go_does_not_stop_northd() {
    northd_follows_a_udn_made_again(Meanwhile::Runs);
}

#[test]
fn a_udn_made_again_while_the_agent_hung_does_not_stop_northd_for_good() {
    northd_follows_a_udn_made_again(Meanwhile::Hangs);
}

#[test]
fn a_udn_made_again_while_the_agent_was_dead_does_not_stop_northd_for_good() {
    northd_follows_a_udn_made_again(Meanwhile::IsKilled);
}

#[test]
fn rows_of_which_no_record_is_left_stop_no_northd_when_their_port_goes() {
    let (mut nodes, mut agent) = started(OvnVersion::V23_03, 5);
    let mut made_again = Vec::new();
    for (flags, gone, again) in [(&["--keep-rows"][..], 2, 3), (&STEER, 4, 5)] {
        agent.kill().unwrap();
        // As a reboot empties /run.
        let state = nodes.rig.lab.state_directory().join("state.json");
        std::fs::remove_file(&state).unwrap();
        agent = nodes.rig.agent(flags);
        let rows = nodes.written().len();
        nodes
            .rig
            .wait_for_status("rows that are watched", |status| {
                let rows_status = &status["nodes"]["static_rows"];
                let known = rows_status["synced"] == true && rows_status["ours"] == rows;
                (known && status["nodes"]["lock"] == "held").then_some(())
            });
        // Waits until northd has followed.
        nodes.rig.lab.remove_udn(gone).unwrap();
        nodes.rig.lab.recreate_udn(again).unwrap();
        nodes.rig.lab.sync().unwrap();
        // Nobody has told the agent what the new router should have.
        made_again.push(Network(again).external_port());
        let mut wanted = nodes.wanted();
        wanted.retain(|(port, ..)| !made_again.contains(port));
        // northd may have followed before the agent knows of the new router.
        wait_until(PATIENCE, "all rows but those of routers that went", || {
            let written = nodes.written();
            (written == wanted)
                .then_some(())
                .ok_or(format!("{flags:?}: {written:?}"))
        })
        .unwrap();
        nodes.rig.lab.sync().unwrap();
        wait_until(PATIENCE, "no port to be kept for a later run", || {
            let kept = std::fs::read_to_string(&state).unwrap_or_default();
            (!kept.contains("rtoe-")).then_some(()).ok_or(kept)
        })
        .unwrap();
    }
}

#[test]
fn a_cleanup_that_keeps_rows_deletes_those_of_ports_that_are_gone() {
    let (mut nodes, mut agent) = started(OvnVersion::V25_03, 3);
    agent.kill().unwrap();
    nodes.rig.lab.remove_udn(2).unwrap();
    let output = nodes.rig.run(&["cleanup", "--keep-rows"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("4 static bindings deleted"), "{said}");
    assert!(said.contains("8 static bindings kept"), "{said}");
    assert_eq!(nodes.written(), nodes.wanted());
}
