//! Beside a manager that replaces the bridge's flows: what is not ARP or NDP goes as before.

use std::time::Duration;

use neighsteer_tests::lab::{Daemon, Lab, Manager, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);
const COOKIE: &str = "0x6e65696768737472";
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

fn ours(lab: &Lab) -> usize {
    let flows = lab.flows("br-ex").unwrap();
    flows.iter().filter(|flow| flow.contains(COOKIE)).count()
}

fn manage(lab: &Lab, interval: Duration) -> Manager {
    lab.manager(lab.manager_flows(130).unwrap(), interval)
        .unwrap()
}

#[test]
fn services_conntrack_and_egress_addresses_take_their_traffic_as_before() {
    let lab = Lab::builder().udns(2).start().unwrap();
    let manager = manage(&lab, Duration::from_secs(3600));
    let before = traces(&lab);
    assert!(before[0].contains("priority 110"), "{}", before[0]);
    assert!(before[5].contains("priority 105"), "{}", before[5]);
    let gates = [
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
        "--datapath=none",
    ];
    let agent = lab.agent(gates).unwrap();
    wait_until(PATIENCE, "our flows", || match ours(&lab) {
        0 => Err(agent.log()),
        _ => Ok(()),
    })
    .unwrap();
    assert_eq!(traces(&lab), before);
    manager.stop().unwrap();
}

#[test]
fn our_flows_come_back_each_time_that_a_manager_has_replaced_all() {
    let lab = Lab::builder().udns(2).start().unwrap();
    let gates = [
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
        "--datapath=none",
    ];
    let agent = lab.agent(gates).unwrap();
    wait_until(PATIENCE, "our flows", || match ours(&lab) {
        0 => Err(agent.log()),
        _ => Ok(()),
    })
    .unwrap();
    let complete = ours(&lab);
    for _ in 0..5 {
        // Each start replaces all flows once.
        let manager = manage(&lab, Duration::from_secs(3600));
        // Far below the periodic check: an event must have brought them back.
        wait_until(Duration::from_secs(5), "our flows again", || {
            match ours(&lab) {
                found if found == complete => Ok(()),
                found => Err(format!("{found} of {complete}")),
            }
        })
        .unwrap();
        let theirs = lab.flows("br-ex").unwrap();
        assert!(theirs.iter().filter(|flow| !flow.contains(COOKIE)).count() >= 130);
        manager.stop().unwrap();
    }
}
