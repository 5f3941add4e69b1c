//! What each mode does with the gate off and on: the table of docs/dpu.md.

use std::{collections::BTreeSet, net::IpAddr};

use neighsteer_tests::lab::{AgentProcess, wait_until};

use crate::{
    rig::{PATIENCE, Rig, STEER},
    support::{attached, dpu, wait_for_attachments},
};

const REPRESENTOR: &str = "pf0hpf";
/// A neighbour that the source learns.
const NEIGHBOUR: &str = "172.18.0.77";

/// One row of the table.
#[derive(Clone, Copy)]
struct Cell {
    mode: &'static str,
    gate: bool,
    /// Interfaces with a program; `UPLINK` is the uplink's name.
    datapath: &'static [&'static str],
    flows: usize,
    databases: &'static [&'static str],
    mirrors: bool,
    static_rows: bool,
}

const UPLINK: &str = "uplink";
const ALL: &[&str] = &["db.sock", "nb.sock", "sb.sock"];

#[test]
fn full_with_the_gate_off_observes() {
    check(Cell {
        mode: "full",
        gate: false,
        datapath: &[UPLINK],
        flows: 0,
        databases: ALL,
        mirrors: false,
        static_rows: false,
    });
}

#[test]
fn full_with_the_gate_on_does_everything() {
    check(Cell {
        mode: "full",
        gate: true,
        datapath: &[UPLINK],
        flows: 6,
        databases: ALL,
        mirrors: true,
        static_rows: true,
    });
}

#[test]
fn a_dpu_with_the_gate_off_observes_both_sides() {
    check(Cell {
        mode: "dpu",
        gate: false,
        datapath: &[UPLINK, REPRESENTOR],
        flows: 0,
        databases: ALL,
        mirrors: false,
        static_rows: false,
    });
}

#[test]
fn a_dpu_with_the_gate_on_does_everything_for_ipv4() {
    check(Cell {
        mode: "dpu",
        gate: true,
        datapath: &[UPLINK, REPRESENTOR],
        flows: 2,
        databases: ALL,
        mirrors: true,
        static_rows: true,
    });
}

#[test]
fn a_dpus_host_observes_and_opens_nothing() {
    check(Cell {
        mode: "dpu-host",
        gate: false,
        datapath: &[UPLINK],
        flows: 0,
        databases: &[],
        mirrors: false,
        static_rows: false,
    });
}

fn check(cell: Cell) {
    let rig = match cell.mode {
        "dpu" => dpu(2, REPRESENTOR),
        _ => Rig::start(2, &[]),
    };
    let peer = rig.lab.add_peer_node(1).unwrap();
    let manifests = rig.lab.manifests().unwrap();
    manifests.put(&peer).unwrap();
    let agent = start(&rig, cell, &manifests.directory().display().to_string());
    let uplink = rig.lab.uplink();
    let datapath: Vec<&str> = cell
        .datapath
        .iter()
        .map(|it| if *it == UPLINK { &*uplink } else { *it })
        .collect();
    wait_for_attachments(&rig, &datapath);
    wait_until(PATIENCE, format_args!("{} flows", cell.flows), || {
        let flows = rig.our_flows();
        if flows.len() == cell.flows {
            Ok(())
        } else {
            Err(format!("{flows:?}"))
        }
    })
    .unwrap();
    wait_for_connections(&rig, &agent, cell.databases);
    rig.source_learns(NEIGHBOUR);
    let neighbour: IpAddr = NEIGHBOUR.parse().unwrap();
    if cell.mirrors {
        rig.wait_for_bindings(neighbour, &[0, 1, 2]);
    }
    if cell.static_rows {
        wait_until(PATIENCE, "static rows of the peer", || {
            let rows = rig.lab.static_bindings().unwrap();
            let ours: BTreeSet<IpAddr> = rows
                .iter()
                .filter(|row| !row.is_masquerade())
                .filter_map(|row| row.ip.parse().ok())
                .collect();
            let wanted: BTreeSet<IpAddr> = peer
                .addresses()
                .into_iter()
                .filter(|ip| cell.mode == "full" || ip.is_ipv4())
                .collect();
            if ours == wanted {
                Ok(())
            } else {
                Err(format!("{ours:?} instead of {wanted:?}"))
            }
        })
        .unwrap();
    }
    // What does not happen is looked at once all that does has: each part has had its turn by then.
    if !cell.mirrors {
        rig.wait_for_bindings(neighbour, &[0]);
        let status = rig.status();
        assert!(status["mirror_lock"].is_null(), "{status}");
    }
    if !cell.static_rows {
        assert_eq!(rig.lab.static_bindings().unwrap(), []);
    }
    assert_eq!(rig.our_flows().len(), cell.flows);
    assert_eq!(attached(&rig).len(), cell.datapath.len());
    wait_for_connections(&rig, &agent, cell.databases);
}

fn start(rig: &Rig, cell: Cell, nodes: &str) -> AgentProcess {
    let sysfs = rig.lab.sysfs().display().to_string();
    let uplink = rig.lab.uplink();
    let mut flags = vec!["--mode", cell.mode, "--sysfs", &sysfs, "--nodes", nodes];
    flags.extend(["--node-bindings", "static", "--node-gather", "10"]);
    if cell.mode == "dpu-host" {
        flags.extend(["--host-interface", &uplink]);
    }
    if cell.gate {
        flags.extend(STEER);
    }
    let agent = rig.agent(&flags);
    rig.wait_for_status("an agent of that mode", |status| {
        let gate = status["steering_gate"].as_bool()?;
        (status["mode"] == cell.mode && gate == cell.gate).then_some(())
    });
    agent
}

/// The databases among the servers that the agent is connected to: these, and no others.
fn wait_for_connections(rig: &Rig, agent: &AgentProcess, wanted: &[&str]) {
    let wanted: BTreeSet<&str> = wanted.iter().copied().collect();
    wait_until(PATIENCE, format_args!("connections to {wanted:?}"), || {
        let connections = rig.lab.connections(agent.pid()).unwrap();
        let servers = connections
            .iter()
            .filter_map(|path| path.rsplit('/').next());
        let databases: BTreeSet<&str> = servers.filter(|name| !name.ends_with(".mgmt")).collect();
        if databases == wanted {
            Ok(())
        } else {
            Err(format!("{databases:?} of {connections:?}"))
        }
    })
    .unwrap();
    if wanted.is_empty() {
        // No bridge either.
        let connections = rig.lab.connections(agent.pid()).unwrap();
        assert_eq!(connections, BTreeSet::new());
    }
}
