//! Steering by mark by a real agent, beside one that dies and a switch that gets in the way.

use neighsteer_tests::lab::Daemon;

use super::*;

const BY_MARK: [&str; 4] = ["--match", "mark", "--check-interval", "1"];
const OFFLOAD: &str = "other_config:hw-offload=true";

/// Frames that took our flows which are meant.
fn packets(lab: &Lab, is_meant: impl Fn(&str) -> bool) -> u64 {
    let flows = lab
        .ofctl_on(BRIDGE, &["dump-flows", "--no-names"], &[])
        .unwrap();
    let ours = flows.lines().filter(|line| line.contains(COOKIE));
    let packets = ours.filter(|line| is_meant(line)).filter_map(|line| {
        let (_, rest) = line.split_once("n_packets=")?;
        rest.split(',').next()?.parse::<u64>().ok()
    });
    packets.sum()
}

fn is_steer(counter: &Value) -> bool {
    let decision = counter["decision"].as_str().unwrap_or_default();
    decision.starts_with("steer-")
}

/// Waits until the program has counted so many advertisements, and every frame that it counted as
/// one to steer took the flow for marked ones.
fn wait_until_marked(lab: &Lab, advertisements: u64) {
    wait_until(PATIENCE, "every frame to take the flow for marks", || {
        let seen = (
            counted(lab),
            packets(lab, |flow| flow.contains("pkt_mark=")),
            counted_as(lab, is_steer),
            packets(lab, |flow| flow.contains("priority=51,")),
        );
        match seen {
            (counted, marked, steered, 0) if counted == advertisements && marked == steered => {
                Ok(())
            }
            seen => Err(format!("{seen:?}, {advertisements} advertisements")),
        }
    })
    .unwrap();
}

/// Waits until the bridge is steered by mark, or by headers for a reason, and the program knows.
fn wait_until_steered_by(lab: &Lab, mark: bool) {
    wait_until(PATIENCE, "flows and program for that", || {
        let status = status(lab);
        let (group, bridge) = (&status["groups"][0], &status["steering"][0]);
        let program = &status["datapath"][0];
        let flows = if mark { 7 } else { 6 };
        let right = group["steering_mark"].is_string() == mark
            && group["no_mark"].is_string() != mark
            && program["steering_mark"].is_string() == mark
            && program["mode"].is_string()
            && bridge["converged"] == true
            && bridge["flows"] == flows;
        if right { Ok(()) } else { Err(status) }
    })
    .unwrap();
}

#[test]
fn steering_by_mark_outlives_the_agent_and_gives_way_to_hardware_offload() {
    let Some(lab) = start() else { return };
    accept_no_routes(&lab);
    let mut first = agent_with(&lab, &BY_MARK, 7);
    let (mut sent, ()) = in_a_stream(&lab, || first.kill().unwrap());
    wait_until_marked(&lab, sent);
    let (more, mut second) = in_a_stream(&lab, || agent_with(&lab, &BY_MARK, 7));
    sent += more;
    wait_until_marked(&lab, sent);
    assert_eq!(status(&lab)["steering"][0]["flows_added"], 0);

    // At run time the agent goes on by headers.
    lab.vsctl(["set", "Open_vSwitch", ".", OFFLOAD]).unwrap();
    wait_until_steered_by(&lab, false);
    second
        .wait_for_log("steering by headers, not by mark", PATIENCE)
        .unwrap();

    // An agent that starts so is told no.
    second.terminate(vm::patience(PATIENCE)).unwrap();
    let refused = lab.neighsteer(&["agent"]).unwrap();
    let output = refuse(refused, &lab);
    assert!(output.contains("hw-offload=true"), "{output}");
    assert!(output.contains("--match header"), "{output}");
    let remove = ["remove", "Open_vSwitch", ".", "other_config", "hw-offload"];
    lab.vsctl(remove).unwrap();
    let _third = agent_with(&lab, &BY_MARK, 7);
    wait_until_steered_by(&lab, true);
}

/// An ovs-vswitchd that starts takes off the ingress qdisc of a former one, and the filter in it.
#[test]
fn a_filter_that_vswitchd_takes_away_is_attached_again_at_the_next_check() {
    let Some(mut lab) = start() else { return };
    accept_no_routes(&lab);
    lab.vsctl(["set", "Open_vSwitch", ".", OFFLOAD]).unwrap();
    lab.restart_daemon(Daemon::Vswitchd).unwrap();
    let mut agent = agent_with(&lab, &["--check-interval", "1"], 6);
    lab.restart_daemon(Daemon::Vswitchd).unwrap();
    if vm::kernel().as_deref() == Some("6.1") {
        agent
            .wait_for_log("datapath is not attached any more", PATIENCE)
            .unwrap();
    }
    let before = counted(&lab);
    wait_until(PATIENCE, "a frame to be counted", || {
        lab.send_from_outside(&[advertisement()], Duration::ZERO)
            .unwrap();
        match counted(&lab) {
            now if now > before => Ok(()),
            now => Err(now),
        }
    })
    .unwrap();
}

/// What an agent by mark says that does not start.
fn refuse(mut agent: std::process::Command, lab: &Lab) -> String {
    let gates = [
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
    ];
    agent.args(lab.agent_flags()).args(gates);
    let output = agent.args(BY_MARK).args(pins(lab)).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
