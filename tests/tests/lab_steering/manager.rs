//! Beside a manager that replaces all flows, as ovnkube-node does.

use std::time::{Duration, Instant};

use neighsteer_tests::{
    gaps::Gaps,
    lab::{Daemon, FlowSet, Lab},
};

use crate::{
    rig::COOKIE,
    seen::{bare_rig, bridge, number, wait_complete, watching_agent},
};

const ROUNDS: u32 = 12;
/// Longer than a test: such a manager replaces the flows once.
const NEVER: Duration = Duration::from_secs(3600);

fn flows_of_others(lab: &Lab) -> Vec<String> {
    let mut flows = lab.flows("br-ex").unwrap();
    flows.retain(|flow| !flow.contains(COOKIE));
    flows.sort();
    flows
}

/// Replaces all flows, at least so many, every second.
fn beside_a_manager(at_least: usize) {
    let rig = bare_rig(5);
    let flows = rig.lab.manager_flows(at_least).unwrap();
    rig.lab
        .manager(flows.clone(), NEVER)
        .unwrap()
        .stop()
        .unwrap();
    let theirs = flows_of_others(&rig.lab);
    assert!(theirs.len() >= at_least, "{}", theirs.len());

    let agent = watching_agent(&rig);
    let added = number(&rig, "flows_added");
    let gaps = Gaps::watch(&rig.lab, "br-ex").unwrap();
    let (cpu, start) = (agent.cpu().unwrap(), Instant::now());
    let manager = rig.lab.manager(flows, Duration::from_secs(1)).unwrap();
    rig.wait_for_status("so many rounds", |status| {
        let lost = bridge(status, "br-ex")?["flows_lost"].as_u64()?;
        (lost >= u64::from(ROUNDS) * added).then_some(())
    });
    let rounds = manager.stop().unwrap();
    let (cpu, elapsed) = (agent.cpu().unwrap() - cpu, start.elapsed());
    let all = u64::from(rounds) * added;
    rig.wait_for_status("all that was lost put back", |status| {
        let bridge = bridge(status, "br-ex")?;
        (bridge["flows_lost"] == all && bridge["flows_added"] == all + added).then_some(())
    });
    wait_complete(&rig, usize::try_from(added).unwrap(), &[1, 2, 3, 4, 5]);
    let report = gaps.finish().unwrap();
    println!(
        "manager with {} flows: {}; agent's CPU (this build): {:.2} %",
        theirs.len(),
        report.summary(),
        100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64()
    );
    assert_eq!(report.missing, 0);
    assert_eq!(report.gaps.len() as u64, all);
    assert_eq!(
        flows_of_others(&rig.lab),
        theirs,
        "the manager's own flows stay"
    );
}

#[test]
fn beside_a_manager_that_replaces_all_flows_every_second_ours_come_back_and_its_own_stay() {
    beside_a_manager(130);
}

#[test]
fn beside_a_manager_with_five_thousand_flows_ours_come_back_and_its_own_stay() {
    beside_a_manager(5_000);
}

#[test]
fn a_manager_that_finds_nothing_to_replace_but_ours_makes_no_endless_passes() {
    const ROUNDS: u64 = 5;
    let rig = bare_rig(2);
    let _agent = watching_agent(&rig);
    let flows = number(&rig, "flows");
    let first = number(&rig, "checks");
    for round in 1..=ROUNDS {
        let before = number(&rig, "checks");
        rig.lab.set_flows(FlowSet::Base).unwrap();
        rig.wait_for_status("the comparison after the repair", |status| {
            let bridge = bridge(status, "br-ex")?;
            let repaired = bridge["flows_lost"] == round * flows
                && bridge["flows_added"] == (round + 1) * flows;
            (repaired && bridge["checks"].as_u64()? > before).then_some(())
        });
    }
    let checks = number(&rig, "checks") - first;
    assert!(checks <= 2 * ROUNDS, "{checks} passes for {ROUNDS} repairs");
    wait_complete(&rig, usize::try_from(flows).unwrap(), &[1, 2]);
}

/// Of traffic that services, conntrack, egress addresses and encapsulation take.
const TRAFFIC: [(&str, &str); 8] = [
    (
        "uplink",
        "tcp,dl_dst=02:42:ac:12:00:03,nw_src=172.18.0.9,nw_dst=172.18.0.3,tcp_dst=30001",
    ),
    (
        "uplink",
        "tcp,dl_dst=02:42:ac:12:00:03,nw_src=172.18.0.9,nw_dst=172.18.0.3,tcp_dst=22",
    ),
    (
        "uplink",
        "tcp6,dl_dst=02:42:ac:12:00:03,ipv6_src=fd00:18::9,ipv6_dst=fd00:18::3,tcp_dst=22",
    ),
    (
        "uplink",
        "icmp6,dl_dst=02:42:ac:12:00:03,ipv6_src=fd00:18::9,ipv6_dst=fd00:18::3,icmpv6_type=128",
    ),
    (
        "uplink",
        "udp,dl_dst=02:42:ac:12:00:03,nw_src=172.18.0.9,nw_dst=172.18.0.3,udp_dst=6081",
    ),
    (
        "patch",
        "tcp,dl_src=02:42:ac:12:00:03,pkt_mark=0xc351,nw_src=172.18.0.3,nw_dst=172.18.0.9,tcp_dst=80",
    ),
    (
        "patch",
        "tcp,dl_src=02:42:ac:12:00:03,nw_src=172.18.0.3,nw_dst=172.18.0.9,tcp_src=30001,tcp_dst=80",
    ),
    (
        "LOCAL",
        "tcp,dl_src=02:42:ac:12:00:03,nw_src=172.18.0.3,nw_dst=10.96.0.10,tcp_dst=443",
    ),
];

/// Which flows take the traffic, and what becomes of it.
fn traces(lab: &Lab) -> Vec<String> {
    let ports = lab.openflow_ports().unwrap();
    let patch = lab.networks().next().unwrap().patch_port();
    let traces = TRAFFIC.map(|(port, flow)| {
        let number = match port {
            "uplink" => ports[&lab.uplink()].to_string(),
            "patch" => ports[&patch].to_string(),
            other => other.to_owned(),
        };
        let flow = format!("in_port={number},{flow}");
        let trace = lab
            .appctl(Daemon::Vswitchd, &["ofproto/trace", "br-ex", &flow])
            .unwrap();
        path(&trace)
    });
    traces.to_vec()
}

/// The flows of a trace, and its outcome without the numbers of recirculations, which count up.
fn path(trace: &str) -> String {
    let lines = trace
        .lines()
        .filter_map(|line| match line.strip_prefix("Datapath actions: ") {
            Some(actions) => actions
                .split_once("recirc")
                .map_or(Some(actions), |(it, _)| Some(it)),
            None => line.contains(", priority ").then_some(line),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn services_conntrack_and_egress_addresses_take_their_traffic_as_before() {
    let rig = bare_rig(2);
    let flows = rig.lab.manager_flows(130).unwrap();
    rig.lab.manager(flows, NEVER).unwrap().stop().unwrap();
    let before = traces(&rig.lab);
    assert!(before[0].contains("priority 110"), "{}", before[0]);
    assert!(before[5].contains("priority 105"), "{}", before[5]);
    let _agent = watching_agent(&rig);
    assert_eq!(traces(&rig.lab), before);
}
