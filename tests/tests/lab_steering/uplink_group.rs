//! A bridge with an uplink of its own, where one UDN is the source.

use std::time::{Duration, Instant};

use neighsteer_tests::{
    gaps::{Gaps, Report},
    lab::{Network, UPLINK_BRIDGE, wait_until},
};

use crate::{
    rig::{COOKIE, PATIENCE, Rig, STEER},
    seen::{bare_rig, bridge},
};

fn source(rig: &Rig) -> String {
    rig.wait_for_status("a group on the uplink's bridge", |status| {
        let groups = status["groups"].as_array()?;
        let group = groups
            .iter()
            .find(|group| group["bridge"] == UPLINK_BRIDGE)?;
        let steering = bridge(status, UPLINK_BRIDGE)?;
        let followers = group["followers"].as_array()?.len();
        (status["settled"] == true
            && steering["flows"] != 0
            && steering["no_flood_ports"] == followers)
            .then(|| group["source"].as_str().map(str::to_owned))?
    })
}

fn steered_to(rig: &Rig, network: Network) -> Result<(), String> {
    let number = rig
        .lab
        .ofport(&network.patch_port())
        .map_err(|error| error.to_string())?;
    let flows = rig
        .lab
        .flows(UPLINK_BRIDGE)
        .map_err(|error| error.to_string())?;
    let output = format!("output:{number},");
    let ours = flows.iter().filter(|flow| flow.contains(COOKIE));
    let to_source = ours.filter(|flow| flow.contains(&output)).count();
    if to_source >= 4 {
        Ok(())
    } else {
        Err(format!("{flows:?}"))
    }
}

#[test]
fn when_the_source_goes_flows_flags_and_source_move_and_a_restart_does_not_move_them() {
    let mut rig = bare_rig(4);
    rig.lab.move_to_uplink(&[2, 3, 4]).unwrap();
    let mut agent = rig.agent(&[&STEER[..], &["--check-interval", "600"]].concat());
    assert_eq!(source(&rig), Network(2).gateway_router());
    steered_to(&rig, Network(2)).unwrap();

    let gaps = Gaps::watch(&rig.lab, UPLINK_BRIDGE).unwrap();
    let removed = Instant::now();
    rig.lab.remove_udn(2).unwrap();
    wait_until(PATIENCE, "flows to the next source", || {
        steered_to(&rig, Network(3))
    })
    .unwrap();
    println!(
        "source removed: steered to the next one after {:?} (OVN's own work included)",
        removed.elapsed()
    );
    let report = gaps.finish().unwrap();
    assert_eq!(
        report.replaced.len(),
        4,
        "each flow that outputs to it, once and in place"
    );
    print_move("network removed", &report);
    assert_eq!(source(&rig), Network(3).gateway_router());

    // A router that joins before the source by name moves nothing, and neither does a restart.
    rig.lab.move_more_to_uplink(&[1]).unwrap();
    rig.wait_for_status("three routers on the uplink's bridge", |status| {
        (bridge(status, UPLINK_BRIDGE)?["no_flood_ports"] == 2).then_some(())
    });
    assert_eq!(source(&rig), Network(3).gateway_router());
    agent.terminate(Duration::from_secs(20)).unwrap();
    let _agent = rig.agent(&STEER);
    assert_eq!(source(&rig), Network(3).gateway_router());
    steered_to(&rig, Network(3)).unwrap();
    let status = rig.status();
    let steering = bridge(&status, UPLINK_BRIDGE).unwrap();
    assert_eq!(steering["flows_added"], 0, "{steering}");

    // OVN takes the port away first: here is a gap, as long as the rows take to reach us.
    let gaps = Gaps::watch(&rig.lab, UPLINK_BRIDGE).unwrap();
    rig.lab
        .vsctl([
            "--no-wait",
            "del-port",
            UPLINK_BRIDGE,
            &Network(3).patch_port(),
        ])
        .unwrap();
    wait_until(PATIENCE, "flows to the next source", || {
        steered_to(&rig, Network(1))
    })
    .unwrap();
    print_move("port removed", &gaps.finish().unwrap());
    assert_eq!(source(&rig), Network(1).gateway_router());
}

/// How the flows' move and the going of the source's port follow each other.
fn print_move(what: &str, report: &Report) {
    let (moved, gone) = (report.replaced[0], report.ports_gone.first());
    match gone {
        Some(gone) if *gone <= moved => {
            println!(
                "{what}: flows moved {:?} after the source's port went",
                moved - *gone
            );
        }
        Some(gone) => println!(
            "{what}: flows moved {:?} before the source's port went",
            *gone - moved
        ),
        None => println!("{what}: flows moved, the source's port is there"),
    }
}
