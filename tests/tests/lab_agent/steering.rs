//! Flows, flags and the static FDB entry.

use std::time::Duration;

use neighsteer_tests::{
    frames::{arp_reply, neighbor_advertisement},
    lab::{
        BRIDGE_MAC, Daemon, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab, NODE_IPV4,
        NODE_IPV6, Network, wait_until,
    },
};

use crate::rig::{COOKIE, PATIENCE, Rig, STEER};

fn reply() -> Vec<u8> {
    arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4)
}

fn advertisement() -> Vec<u8> {
    neighbor_advertisement(GATEWAY_MAC, GATEWAY_IPV6, BRIDGE_MAC, NODE_IPV6)
}

fn follower_patches(lab: &Lab) -> Vec<String> {
    let mut ports: Vec<String> = lab.udns().map(Network::patch_port).collect();
    ports.sort();
    ports
}

fn no_flood(lab: &Lab) -> Vec<String> {
    let mut ports = lab.no_flood_ports().unwrap();
    ports.sort();
    ports
}

#[test]
fn a_steered_frame_reaches_the_source_and_the_host_alone_however_many_networks_there_are() {
    let mut lookups = Vec::new();
    for udns in [1, 6] {
        let rig = Rig::start(udns, &[]);
        let _agent = rig.steering_agent();
        for frame in [reply(), advertisement()] {
            let trace = rig.lab.trace(&rig.lab.uplink(), &frame).unwrap();
            assert_eq!(trace.priority(), Some(52), "{}", trace.raw);
            assert_eq!(trace.entered, 1, "{}", trace.raw);
            let to_source = format!("output:\"{}\"", Network::DEFAULT.patch_port());
            assert!(trace.raw.contains(&to_source), "{}", trace.raw);
            assert!(
                trace.outputs_to("br-ex"),
                "the host gets it too: {}",
                trace.datapath_actions
            );
            lookups.push(trace.lookups);
        }
    }
    assert!(
        lookups[0].abs_diff(lookups[2]) <= 2 && lookups[1].abs_diff(lookups[3]) <= 2,
        "{lookups:?}"
    );
}

#[test]
fn no_flood_is_set_on_followers_and_only_there() {
    let rig = Rig::start(3, &[]);
    for network in rig.lab.udns() {
        rig.lab.set_no_flood(network, false).unwrap();
    }
    let _agent = rig.steering_agent();
    assert_eq!(no_flood(&rig.lab), follower_patches(&rig.lab));
    assert!(rig.lab.has_static_fdb_entry().unwrap());
}

#[test]
fn what_a_restart_of_vswitchd_takes_away_comes_back_without_a_restart_of_the_agent() {
    let mut rig = Rig::start(2, &[]);
    let _agent = rig.agent(&[&STEER[..], &["--check-interval", "1"]].concat());
    rig.wait_for_status("six flows", |status| {
        (status["steering"][0]["flows_added"] == 6).then_some(())
    });
    rig.lab.restart_daemon(Daemon::Vswitchd).unwrap();
    wait_until(PATIENCE, "flows, flags and entry", || {
        // The bridge is not there at first.
        let Ok(flows) = rig.lab.flows("br-ex") else {
            return Err("no bridge".to_owned());
        };
        let Ok(flags) = rig.lab.no_flood_ports() else {
            return Err("no bridge".to_owned());
        };
        let flows: Vec<_> = flows
            .into_iter()
            .filter(|flow| flow.contains(COOKIE))
            .collect();
        let entry = rig.lab.has_static_fdb_entry().unwrap_or(false);
        if flows.len() == 6 && flags.len() == 2 && entry {
            Ok(())
        } else {
            Err(format!("{flows:?} {flags:?} {entry}"))
        }
    })
    .unwrap();
}

#[test]
fn a_node_at_rest_gets_no_flow_no_flag_and_no_row_written() {
    let rig = Rig::start(2, &[]);
    let _agent = rig.agent(&[&STEER[..], &["--check-interval", "1"]].concat());
    rig.wait_for_status("six flows", |status| {
        (status["steering"][0]["flows_added"] == 6).then_some(())
    });
    let written = || {
        let status = rig.status();
        let steering = &status["steering"][0];
        let writes = status["mirror"]["br-ex"]["counters"]["transaction"]["count"].clone();
        (
            steering["flows_added"].clone(),
            steering["flags_changed"].clone(),
            steering["fdb_changed"].clone(),
            writes,
        )
    };
    let checks = || rig.status()["steering"][0]["checks"].as_u64().unwrap();
    // What the routers announce at their start is news, and is mirrored; after that there is none.
    wait_until(PATIENCE, "two checks that write nothing", || {
        let (before, first) = (written(), checks());
        rig.wait_for_status("two more checks", |status| {
            (status["steering"][0]["checks"].as_u64()? >= first + 2).then_some(())
        });
        let after = written();
        if after == before {
            Ok(())
        } else {
            Err(format!("{before:?} {after:?}"))
        }
    })
    .unwrap();
}

#[test]
fn flows_of_others_are_neither_deleted_nor_overwritten() {
    let rig = Rig::start(1, &[]);
    let switch = rig.lab.management_remote("br-ex");
    let theirs = format!(
        "cookie=0xdeff105,table=0,priority=52,in_port=1,dl_dst={BRIDGE_MAC},arp,actions=NORMAL"
    );
    let added = rig
        .lab
        .tool("ovs-ofctl")
        .args(["add-flow", &switch, &theirs])
        .status()
        .unwrap();
    assert!(added.success());
    let before = rig.lab.flows("br-ex").unwrap();
    let _agent = rig.agent(&STEER);
    let status = rig.wait_for_status("standing down", |status| {
        let bridge = &status["steering"][0];
        (bridge["standing_down"] == true).then(|| bridge.clone())
    });
    assert_eq!(
        status["foreign_flows"].as_array().unwrap().len(),
        1,
        "{status}"
    );
    assert_eq!(status["flows_added"], 0, "{status}");
    assert_eq!(rig.lab.flows("br-ex").unwrap(), before);
}

#[test]
fn with_the_gate_off_a_former_runs_flows_flags_and_entry_go_and_nothing_is_mirrored() {
    let rig = Rig::start(2, &[]);
    for network in rig.lab.udns() {
        rig.lab.set_no_flood(network, false).unwrap();
    }
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
    let mut agent = rig.steering_agent();
    assert_eq!(rig.our_flows().len(), 6);
    assert!(agent.terminate(PATIENCE).unwrap().success());
    assert_eq!(rig.our_flows().len(), 6, "SIGTERM leaves the flows");

    let _agent = rig.agent(&[]);
    rig.wait_for_status("a pass", |status| {
        (status["steering"][0]["converged"] == true).then_some(())
    });
    assert_eq!(rig.our_flows(), Vec::<String>::new());
    assert_eq!(no_flood(&rig.lab), Vec::<String>::new());
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
    rig.lab
        .send_from_outside(&[reply()], Duration::ZERO)
        .unwrap();
    assert_eq!(rig.status()["mirror"], serde_json::json!({}));
}

#[test]
fn without_an_agent_new_neighbours_fail_until_the_bridges_manager_restores_its_flows() {
    let rig = Rig::start(2, &[2]);
    let mut agent = rig.steering_agent();
    agent.kill().unwrap();
    assert_eq!(rig.our_flows().len(), 6, "the flows stay");
    let host = "172.18.9.9".parse().unwrap();
    rig.lab.add_external_host(host).unwrap();
    assert_eq!(
        rig.lab
            .ping(Network(2), host, Duration::from_secs(2))
            .unwrap(),
        None
    );
    rig.wait_for_bindings(host, &[0]);
    rig.lab.clear_mac_bindings().unwrap();
    rig.lab.set_flows(FlowSet::Legacy).unwrap();
    assert!(
        rig.lab
            .ping(Network(2), host, Duration::from_secs(10))
            .unwrap()
            .is_some()
    );
}
