//! What happens on the switch and in OVN, found without the periodic check.

use std::time::{Duration, Instant};

use neighsteer_tests::{
    frames::arp_reply,
    lab::{BRIDGE_MAC, Daemon, GATEWAY_IPV4, GATEWAY_MAC, NODE_IPV4, Network, wait_until},
};

use crate::{
    rig::{PATIENCE, STEER, packets},
    seen::{bare_rig, bridge, complete, number, wait_complete, watching_agent},
};

#[test]
fn what_a_killed_vswitchd_takes_away_comes_back_without_a_restart_of_the_agent() {
    let mut rig = bare_rig(3);
    let _agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    wait_complete(&rig, flows, &[1, 2, 3]);
    rig.lab.kill_daemon(Daemon::Vswitchd).unwrap();
    let started = Instant::now();
    rig.lab.start_daemon(Daemon::Vswitchd).unwrap();
    let there = started.elapsed();
    wait_complete(&rig, flows, &[1, 2, 3]);
    println!(
        "vswitchd killed: bridges there {there:?} after its start, all of ours after {:?}",
        started.elapsed()
    );
}

#[test]
fn no_flood_that_somebody_clears_by_hand_is_set_again() {
    let rig = bare_rig(2);
    let _agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    rig.lab.set_no_flood(Network(2), false).unwrap();
    wait_complete(&rig, flows, &[1, 2]);
    // And on the source, where it must not be.
    rig.lab.set_no_flood(Network::DEFAULT, true).unwrap();
    wait_complete(&rig, flows, &[1, 2]);
}

#[test]
fn ports_that_come_back_with_another_number_are_followed() {
    let rig = bare_rig(2);
    let _agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    for (network, number) in [(Network(1), "71"), (Network::DEFAULT, "72")] {
        let request = format!("ofport_request={number}");
        rig.lab
            .vsctl(["set", "interface", &network.patch_port(), &request])
            .unwrap();
        assert_eq!(
            rig.lab.ofport(&network.patch_port()).unwrap().to_string(),
            number
        );
    }
    wait_complete(&rig, flows, &[1, 2]);
    wait_until(PATIENCE, "flows to the source's new number", || {
        let ours = rig.our_flows();
        let to_source = ours.iter().filter(|flow| flow.contains("output:72"));
        if to_source.count() >= 4 && ours.len() == flows {
            return Ok(());
        }
        Err(format!("{ours:?}"))
    })
    .unwrap();
}

#[test]
fn a_network_that_joins_gets_no_flood_and_one_that_leaves_leaves_nothing() {
    let mut rig = bare_rig(2);
    let _agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    rig.lab.add_udn(3).unwrap();
    wait_complete(&rig, flows, &[1, 2, 3]);
    rig.lab.remove_udn(1).unwrap();
    wait_complete(&rig, flows, &[2, 3]);
    let state = std::fs::read_to_string(rig.lab.state_directory().join("state.json")).unwrap();
    assert!(!state.contains(&Network(1).patch_port()), "{state}");
}

#[test]
fn a_secondary_localnet_is_an_ingress_port_while_it_is_there() {
    let mut rig = bare_rig(1);
    let _agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    let secondary = rig.lab.add_secondary_localnet("office").unwrap();
    wait_complete(&rig, 2 * flows, &[1]);
    let number = rig.lab.ofport(&secondary.patch_port()).unwrap();
    let by_port = format!("in_port={number}");
    let ours = rig.our_flows();
    assert!(ours.iter().any(|flow| flow.contains(&by_port)), "{ours:?}");
    rig.lab.vsctl(["del-port", "br-int", "sec0"]).unwrap();
    rig.lab
        .with_database(Daemon::Northbound, |northbound| {
            northbound.transact(vec![serde_json::json!({
                "op": "delete", "table": "Logical_Switch",
                "where": [["external_ids", "includes", ["map", [["k8s.ovn.org/network", secondary.network()]]]]],
            })])
        })
        .unwrap();
    wait_until(PATIENCE, "flows for the uplink alone", || {
        rig.lab.sync().map_err(|error| error.to_string())?;
        complete(&rig, flows, &[1])
    })
    .unwrap();
}

#[test]
fn a_node_at_rest_is_sent_no_flow_and_no_port_change() {
    let rig = bare_rig(3);
    let _agent = rig.agent(&[&STEER[..], &["--check-interval", "1"]].concat());
    rig.wait_for_status("all in place", |status| {
        (status["settled"] == true).then_some(())
    });
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    wait_complete(&rig, flows, &[1, 2, 3]);
    rig.lab
        .appctl(Daemon::Vswitchd, &["vlog/set", "vconn:file:dbg"])
        .unwrap();
    let log = || rig.lab.daemon_log(Daemon::Vswitchd).unwrap_or_default();
    let before = log().len();
    let checks = number(&rig, "checks");
    rig.wait_for_status("three checks", |status| {
        (bridge(status, "br-ex")?["checks"].as_u64()? >= checks + 3).then_some(())
    });
    let log = log();
    let new = &log[before..];
    assert!(
        new.contains("OFPST_FLOW"),
        "the log has the messages: {new}"
    );
    let changes = ["OFPT_FLOW_MOD", "OFPT_PORT_MOD", "OFPT_BUNDLE"];
    // ovn-controller speaks OpenFlow 1.5.
    let ours = |line: &&str| ["(OF1.3)", "(OF1.0)"].iter().any(|it| line.contains(it));
    let sent: Vec<&str> = new
        .lines()
        .filter(ours)
        .filter(|line| changes.iter().any(|change| line.contains(change)))
        .collect();
    assert_eq!(sent, Vec::<&str>::new());
}

#[test]
fn a_bridge_with_another_address_gets_other_flows_and_the_programs_policy_is_swapped() {
    let rig = bare_rig(1);
    let agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    let mac = "02:42:ac:12:00:33";
    let reply = |to: &str| arp_reply(GATEWAY_MAC, GATEWAY_IPV4, to.parse().unwrap(), NODE_IPV4);
    rig.lab
        .send_from_outside(&[reply(&BRIDGE_MAC.to_string())], Duration::ZERO)
        .unwrap();
    let steered = || packets(&rig, "arp-reply", "steer-arp");
    let before = wait_until(PATIENCE, "a frame that counts", || match steered() {
        0 => Err(0),
        counted => Ok(counted),
    })
    .unwrap();

    let address = format!("other_config:hwaddr=\"{mac}\"");
    rig.lab.vsctl(["set", "bridge", "br-ex", &address]).unwrap();
    wait_until(PATIENCE, "flows and entry for the new address", || {
        let ours = rig.our_flows();
        let to_new = ours.iter().filter(|flow| flow.contains(mac)).count();
        let to_old = ours
            .iter()
            .any(|flow| flow.contains(&BRIDGE_MAC.to_string()));
        let entries = rig
            .lab
            .appctl(Daemon::Vswitchd, &["fdb/show", "br-ex"])
            .map_err(|error| error.to_string())?;
        let entry = entries
            .lines()
            .any(|line| line.contains(mac) && line.contains("static"));
        if to_new >= 4 && !to_old && entry && ours.len() == flows {
            return Ok(());
        }
        Err(format!("{ours:?} {entries}"))
    })
    .unwrap();
    wait_until(PATIENCE, "a program in the former one's place", || {
        let log = agent.log();
        let attached = log.matches("datapath attached").count();
        if attached == 2 && !log.contains("not attached") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .unwrap();
    rig.lab
        .send_from_outside(&[reply(mac)], Duration::ZERO)
        .unwrap();
    wait_until(
        PATIENCE,
        "a frame to the new address that counts on",
        || {
            let counted = steered();
            if counted > before {
                Ok(())
            } else {
                Err(counted)
            }
        },
    )
    .unwrap();
}
