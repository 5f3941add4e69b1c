//! `neighsteer topology`, `audit` and `trace` on a real node, from today's flows to a steered bridge
//! that somebody has tampered with.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use neighsteer::datapath::{DEFAULT_BPFFS, bpffs};
use neighsteer_tests::lab::{
    BRIDGE, BRIDGE_MAC, Daemon, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab, Network,
    wait_until,
};
use serde_json::Value;

const UDNS: u16 = 5;
const PATIENCE: Duration = Duration::from_secs(30);
/// The table, priority and match of the steering flow for ARP by the uplink.
const FIND_ARP: &str = "priority=52,arp,in_port=";

/// A lab, and a directory for the agent's pins.
struct Node {
    lab: Lab,
    bpffs: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.bpffs));
    }
}

impl Node {
    fn start() -> Self {
        let lab = Lab::builder().udns(UDNS).start().unwrap();
        let mount = Path::new(DEFAULT_BPFFS);
        bpffs::ensure(mount).unwrap();
        let bpffs = mount.join(format!("neighsteer-audit-{}", lab.state().id));
        fs::create_dir(&bpffs).unwrap();
        Self { lab, bpffs }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.lab.neighsteer(arguments).unwrap();
        for pair in self.lab.agent_flags().chunks(2) {
            if pair[0] != "--state-dir" {
                command.args(pair);
            }
        }
        command.stdin(std::process::Stdio::null()).output().unwrap()
    }

    /// Exit code and JSON output.
    fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[arguments, &["--output", "json"]].concat());
        let document = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), document)
    }

    /// The findings about the bridge; the exit code must fit them.
    fn findings(&self) -> Vec<Value> {
        let (code, audits) = self.json(&["audit"]);
        assert_eq!(audits[0]["bridge"], BRIDGE, "{audits}");
        let findings = audits[0]["findings"].as_array().unwrap().clone();
        assert_eq!(code, Some(i32::from(!findings.is_empty())), "{audits}");
        findings
    }

    /// The only finding.
    fn finding(&self) -> Value {
        let findings = self.findings();
        assert_eq!(findings.len(), 1, "{findings:#?}");
        findings[0].clone()
    }

    fn ofctl(&self, command: &str, flow: &str) {
        let status = self
            .lab
            .tool("ovs-ofctl")
            .args([
                command,
                "--strict",
                &self.lab.management_remote(BRIDGE),
                flow,
            ])
            .status();
        assert!(status.unwrap().success(), "{command} {flow}");
    }

    /// Lets an agent steer the bridge, and ends it: what it has set stays.
    fn steer(&self) {
        let bpffs = self.bpffs.display().to_string();
        let flags = [
            "--enable-network-segmentation",
            "--disable-udn-arp-ndp-flood",
            "--bpffs",
            &bpffs,
        ];
        let mut agent = self.lab.agent(flags).unwrap();
        wait_until(PATIENCE, "an audit without a finding", || {
            let output = self.run(&["audit"]);
            match output.status.code() {
                Some(0) => Ok(()),
                _ => Err(format!("{output:?}\n{}", agent.log())),
            }
        })
        .unwrap();
        assert!(agent.terminate(PATIENCE).unwrap().success());
    }

    fn arp_reply(&self, more: &[&str]) -> (Option<i32>, Value) {
        let from = format!("{GATEWAY_IPV4}/{GATEWAY_MAC}");
        self.json(&[&["trace", "--arp-reply", "--from", &from], more].concat())
    }
}

fn kinds(findings: &[Value]) -> Vec<&str> {
    let kinds = findings.iter().map(|it| it["finding"].as_str().unwrap());
    kinds.collect()
}

fn routers(trace: &Value) -> Vec<&str> {
    let sights = trace["seen_by"].as_array().unwrap().iter();
    sights.filter_map(|it| it["router"].as_str()).collect()
}

#[test]
fn a_node_is_audited_from_todays_flows_to_tampered_steering() {
    let mut node = Node::start();
    let secondary = node.lab.add_secondary_localnet("office").unwrap();
    the_topology_is_shown(&node, &secondary.patch_port());
    todays_flows_fan_out(&node);

    // Over today's flows, which stay; then without them.
    node.steer();
    steered_frames_reach_the_source_alone(&node, &secondary.patch_port());
    node.lab.set_flows(FlowSet::Base).unwrap();
    assert_eq!(kinds(&node.findings()), ["not-steered"]);
    node.steer();
    steered_frames_reach_the_source_alone(&node, &secondary.patch_port());
    tampering_is_found(&node);
    garbage_is_no_frame(&node);

    node.lab.stop_daemon(Daemon::Vswitchd).unwrap();
    let output = node.run(&["audit"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("is ovs-vswitchd running"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(output.stdout.is_empty());
}

fn the_topology_is_shown(node: &Node, secondary: &str) {
    let elsewhere = serde_json::json!({
        "op": "insert", "table": "Logical_Router",
        "row": {"name": "GR_elsewhere", "options": ["map", [["chassis", "another"]]]},
    });
    node.lab
        .with_database(Daemon::Northbound, |northbound| {
            northbound.transact(vec![elsewhere])
        })
        .unwrap();
    let (code, topology) = node.json(&["topology"]);
    assert_eq!(code, Some(0));
    let group = &topology["groups"][0];
    assert_eq!(group["source"]["name"], Network::DEFAULT.gateway_router());
    assert_eq!(group["followers"].as_array().unwrap().len(), 5);
    assert_eq!(group["secondary"][0]["name"], secondary);
    assert_eq!(group["bridge_mac"], BRIDGE_MAC.to_string());
    assert_eq!(topology["skipped"][0]["object"], "GR_elsewhere");
    let output = node.run(&["topology"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let elsewhere = "1 router";
    let router = Network(5).gateway_router();
    for wanted in [secondary, &node.lab.uplink(), &router, elsewhere] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

fn todays_flows_fan_out(node: &Node) {
    let findings = node.findings();
    assert_eq!(
        kinds(&findings),
        [
            "not-steered",
            "fan-out",
            "fan-out",
            "fan-out",
            "fan-out",
            "fan-out"
        ],
        "{findings:#?}"
    );
    let fan_outs: Vec<_> = findings[1..]
        .iter()
        .map(|it| {
            let number = |key: &str| it[key].as_u64().unwrap();
            let flow = |key: &str| it["flow"][key].as_u64().unwrap();
            (
                flow("table"),
                flow("priority"),
                number("outputs"),
                number("routers"),
            )
        })
        .collect();
    // By number to the UDNs, to the default network by number or by the flood.
    assert_eq!(
        fan_outs,
        [
            (0, 11, 5, 6),
            (0, 11, 5, 6),
            (0, 10, 6, 6),
            (1, 14, 5, 6),
            (1, 14, 5, 6)
        ]
    );
    let (code, trace) = node.arp_reply(&[]);
    assert_eq!(code, Some(1), "{trace}");
    assert_eq!(trace["classifier"]["decision"], "steer-arp");
    assert_eq!(trace["disagreements"][0]["disagreement"], "not-steered");
    assert_eq!(trace["disagreements"][0]["priority"], 10);
    let mut expected: Vec<String> = node.lab.networks().map(|it| it.gateway_router()).collect();
    expected.sort();
    let mut seen = routers(&trace);
    seen.sort_unstable();
    assert_eq!(seen, expected);
    let (_, audits) = node.json(&["audit"]);
    let arp = &audits[0]["lookups"][0];
    assert_eq!(
        (arp["routers"].as_u64(), &arp["over_limit"]),
        (Some(6), &Value::Bool(false))
    );
}

fn steered_frames_reach_the_source_alone(node: &Node, secondary: &str) {
    let source = Network::DEFAULT.gateway_router();
    let from_v6 = format!("{GATEWAY_IPV6}/{GATEWAY_MAC}");
    for in_port in [node.lab.uplink(), secondary.to_owned()] {
        let (code, reply) = node.arp_reply(&["--in-port", &in_port]);
        let arguments = ["trace", "--na", "--from", &from_v6, "--in-port", &in_port];
        let (na_code, advertisement) = node.json(&arguments);
        assert_eq!(
            (code, na_code),
            (Some(0), Some(0)),
            "{reply}\n{advertisement}"
        );
        for trace in [&reply, &advertisement] {
            assert_eq!(routers(trace), [source.as_str()], "{trace}");
            assert_eq!(trace["in_port"], in_port);
            let step = &trace["translation"]["visits"][0]["steps"][0];
            assert_eq!(step["priority"], 52, "{trace}");
            // Behind the router's learning: the host, and nothing else.
            let actions = trace["translation"]["datapath_actions"][0]
                .as_str()
                .unwrap();
            assert!(actions.ends_with(BRIDGE), "{actions}");
            assert!(!actions.contains(&node.lab.uplink()), "{actions}");
            assert_eq!(trace["translation"]["over_limit"], false);
        }
    }
    let from = format!("{GATEWAY_IPV4}/{GATEWAY_MAC}");
    let gratuitous = GATEWAY_IPV4.to_string();
    let (code, announced) = node.json(&[
        "trace",
        "--arp-request",
        "--from",
        &from,
        "--to",
        &gratuitous,
    ]);
    assert_eq!(code, Some(0), "{announced}");
    assert_eq!(announced["classifier"]["decision"], "flood");
    assert_eq!(routers(&announced), [source.as_str()]);

    let output = node.run(&["trace", "--arp-reply", "--from", &from]);
    let text = String::from_utf8(output.stdout).unwrap();
    for wanted in [
        "arp-reply: steer-arp",
        "priority 52",
        "(ours)",
        "gateway routers: 1",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

fn tampering_is_found(node: &Node) {
    let flows = node.lab.flows(BRIDGE).unwrap();
    let arp = flows.iter().find(|flow| flow.contains(FIND_ARP)).unwrap();
    let (matched, _) = arp.split_once(" actions=").unwrap();
    let (_, matched) = matched.split_once(", ").unwrap();
    node.ofctl("del-flows", matched);
    let finding = node.finding();
    assert_eq!(finding["finding"], "missing-flow", "{finding}");
    assert!(finding["flow"]["match"].as_str().unwrap().contains("arp"));
    node.ofctl("add-flow", arp);

    node.ofctl(
        "add-flow",
        &arp.replace("actions=output:", "actions=output:1,output:"),
    );
    assert_eq!(node.finding()["finding"], "wrong-source");
    node.ofctl("add-flow", arp);

    node.lab.set_no_flood(Network(3), false).unwrap();
    let finding = node.finding();
    assert_eq!(finding["finding"], "follower-floods", "{finding}");
    assert_eq!(finding["router"], Network(3).gateway_router());
    node.lab.set_no_flood(Network(3), true).unwrap();

    node.lab.set_no_flood(Network::DEFAULT, true).unwrap();
    assert_eq!(node.finding()["finding"], "source-no-flood");
    node.lab.set_no_flood(Network::DEFAULT, false).unwrap();

    node.lab.remove_static_fdb_entry().unwrap();
    assert_eq!(node.finding()["finding"], "fdb-missing");
    node.lab.add_static_fdb_entry().unwrap();

    let ports = node.lab.openflow_ports().unwrap();
    let outputs: Vec<String> = node
        .lab
        .networks()
        .map(|network| format!("output:{}", ports[&network.patch_port()]))
        .collect();
    let uplink = ports[&node.lab.uplink()];
    let bypass = format!("cookie=0xabc,priority=110,in_port={uplink},arp,arp_op=1,arp_tpa=5.5.5.5");
    let actions = format!("actions=LOCAL,{}", outputs.join(","));
    node.ofctl("add-flow", &format!("{bypass},{actions}"));
    let finding = node.finding();
    assert_eq!(finding["finding"], "fan-out", "{finding}");
    assert_eq!(
        (finding["outputs"].as_u64(), finding["routers"].as_u64()),
        (Some(7), Some(6))
    );
    assert_eq!(finding["flow"]["priority"], 110);
    let matched = bypass.replacen("cookie=0xabc,", "", 1);
    node.ofctl("del-flows", &matched);
    assert_eq!(node.findings(), [Value::Null; 0]);
}

fn garbage_is_no_frame(node: &Node) {
    for (arguments, wanted) in [
        (&["trace", "--hex", "zz"][..], "--hex is no frame in hex"),
        (&["trace", "--hex", "0242ac12000g"], "column 12"),
        (&["trace", "--hex", "0242"], "fewer than the 14"),
        (&["trace"], "there is no frame"),
        (&["trace", "--pcap", "/nowhere"], "cannot open /nowhere"),
        (
            &["trace", "--na", "--from", "10.0.0.1/02:42:ac:12:00:01"],
            "NDP is about IPv6",
        ),
        (
            &["trace", "--arp-reply", "--from", "10.0.0.1"],
            "an IP address, a slash",
        ),
        (
            &[
                "trace",
                "--in-port",
                "nowhere",
                "--hex",
                "0242ac1200030242ac1200010806",
            ],
            "no such port",
        ),
        (
            &[
                "trace",
                "--bridge",
                "br-none",
                "--hex",
                "0242ac1200030242ac1200010806",
            ],
            "br-none",
        ),
    ] {
        let output = node.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(wanted), "{arguments:?}: {message}");
    }
}
