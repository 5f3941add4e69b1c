//! Decisions against Open vSwitch itself: `ofproto/trace` takes a priority-52 flow exactly where the
//! decision is to steer, and the one of the right kind. `docs/parsing.md` lists where userspace's
//! parser, which traces, differs from the kernel's, which the classifier follows.

use std::sync::Arc;

use neighsteer::{
    openflow::unixctl::{UnixCtl, UnixCtlSession},
    plan::{self, Gates, Install},
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, HostEndpoint, IngressPort},
};
use neighsteer_common::{Bytes, Decision, Policy, classify};
use neighsteer_tests::{
    corpus,
    dummy_switch::DummySwitch,
    frames::{BRIDGE_MAC, hex},
    generate::{self, Case},
    lab::Trace,
    oracle::{self, Datapath},
};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

const GATEWAY_VLAN: u16 = 5;

/// The bridges that the flows of a policy are on.
const BRIDGES: [(&str, Option<u16>); 2] = [("untagged", None), ("tagged", Some(GATEWAY_VLAN))];

/// How many generated frames are traced.
const GENERATED: usize = 5_000;

fn port(name: &str, number: i64) -> IngressPort {
    IngressPort {
        name: name.into(),
        ofport: neighsteer::ids::OfPort::from_column(Some(number)).unwrap(),
    }
}

/// A group of one router, whose flows are those that the agent would install: overlay.
fn flows(bridge: &str, gateway_vlan: Option<u16>) -> Vec<String> {
    let patch = port("patch", 2);
    let group = BridgeGroup {
        bridge: bridge.into(),
        bridge_mac: BRIDGE_MAC,
        datapath_type: "netdev".into(),
        host: HostEndpoint::Local,
        uplink: port("uplink", 1),
        secondary: Vec::new(),
        source: GatewayRouter {
            name: "GR_node".into(),
            network: None,
            external_port: "rtoe-GR_node".into(),
            external_mac: Some(BRIDGE_MAC),
            datapath: None,
            patch_port: Arc::clone(&patch.name),
            ofport: patch.ofport,
            mac_binding_age_threshold: AgeThreshold::default(),
        },
        followers: Vec::new(),
        gateway_vlan,
        ipv4: true,
        ipv6: true,
        node_addresses: Vec::new(),
    };
    let steering = plan::plan(&group, Gates::new(true, true).unwrap(), Install::Overlay).flows;

    let vlan = gateway_vlan.map_or(String::new(), |id| format!("dl_vlan={id},"));
    // What OVN-Kubernetes has below: IPv6 for the shared address to conntrack, the rest as usual.
    let below = [
        format!("priority=50,in_port=1,{vlan}ipv6,dl_dst={BRIDGE_MAC},actions=output:2"),
        "priority=0,actions=NORMAL".to_owned(),
    ];
    steering
        .iter()
        .map(ToString::to_string)
        .chain(below)
        .collect()
}

/// A switch with both bridges, `None` where Open vSwitch is not installed.
fn switch() -> Option<DummySwitch> {
    let switch = DummySwitch::start_or_skip().unwrap()?;
    for (bridge, gateway_vlan) in BRIDGES {
        switch.add_bridge(bridge, &BRIDGE_MAC.to_string()).unwrap();
        let [uplink, patch] = ["uplink", "patch"].map(|port| format!("{bridge}-{port}"));
        switch
            .add_ports(bridge, &[(&uplink, 1), (&patch, 2)])
            .unwrap();
        for flow in flows(bridge, gateway_vlan) {
            switch.ofctl(&["add-flow"], bridge, &[&flow]).unwrap();
        }
    }
    Some(switch)
}

async fn session(switch: &DummySwitch) -> UnixCtlSession {
    let control = UnixCtl::of_vswitchd(switch.run_directory()).unwrap();
    control.connect().await.unwrap()
}

/// Which of the four flows a frame takes, `None` if none of them.
async fn traced(session: &mut UnixCtlSession, case: &Case) -> Option<Decision> {
    let (bridge, _) = BRIDGES
        .into_iter()
        .find(|(_, vlan)| *vlan == case.policy.gateway_vlan)
        .unwrap();
    let frame = hex(&case.on_the_wire());
    let text = session
        .trace(bridge, "in_port=1", Some(&frame))
        .await
        .unwrap();
    let trace = Trace::parse(bridge, text);
    let first = trace
        .external
        .first()
        .unwrap_or_else(|| panic!("{}", trace.raw));
    if first.priority != Some(52) {
        return None;
    }
    let fields: Vec<&str> = first.matched.split(',').collect();
    let decision = [
        ("arp", Decision::SteerArp),
        ("icmp_type=134", Decision::SteerRa),
        ("icmp_type=135", Decision::SteerNs),
        ("icmp_type=136", Decision::SteerNa),
    ]
    .into_iter()
    .find(|(field, _)| fields.contains(field));
    Some(decision.unwrap_or_else(|| panic!("{first:?}")).1)
}

fn steered(decision: Decision) -> Option<Decision> {
    decision.is_steered().then_some(decision)
}

/// A frame that is too short to be one: `ofproto/trace` wants an Ethernet header.
fn is_traceable(case: &Case) -> bool {
    case.frame.len() >= 14
}

#[tokio::test]
async fn the_corpus_is_steered_where_open_vswitch_steers_it() {
    let Some(switch) = switch() else { return };
    let mut session = session(&switch).await;
    let mut traced_frames = 0;
    for entry in corpus::load().unwrap() {
        assert_eq!(entry.case.policy.bridge_mac, BRIDGE_MAC.0, "{}", entry.name);
        if !is_traceable(&entry.case) {
            assert!(!entry.verdict.decision.is_steered(), "{}", entry.name);
            continue;
        }
        let expected = match &entry.userspace {
            Some((decision, _)) => *decision,
            None => entry.verdict.decision,
        };
        let taken = traced(&mut session, &entry.case).await;
        assert_eq!(
            taken,
            steered(expected),
            "left is the flow taken, right the corpus, of {}: {}",
            entry.name,
            entry.description
        );
        traced_frames += 1;
    }
    assert!(traced_frames > 100, "{traced_frames}");
}

#[tokio::test]
async fn generated_frames_are_steered_where_open_vswitch_steers_them() {
    let Some(switch) = switch() else { return };
    let mut session = session(&switch).await;
    let mut runner = TestRunner::default();
    let strategy = generate::case();
    let (mut traced_frames, mut steered_frames, mut differing) = (0, 0, 0);
    while traced_frames < GENERATED {
        let mut case = strategy.new_tree(&mut runner).unwrap().current();
        case.policy = Policy {
            bridge_mac: BRIDGE_MAC.0,
            gateway_vlan: case.policy.gateway_vlan.map(|_| GATEWAY_VLAN),
            ..case.policy
        };
        if !is_traceable(&case) {
            continue;
        }
        let frame = Bytes {
            frame: &case.frame,
            outer_tag: case.outer_tag,
        };
        let decision = steered(classify(&frame, Some(&case.policy)).decision);
        let [kernel, userspace] = [Datapath::Kernel, Datapath::Userspace].map(|datapath| {
            let (frame, tag) = (&case.frame, case.outer_tag);
            steered(oracle::decision(frame, tag, &case.policy, datapath))
        });
        let taken = traced(&mut session, &case).await;
        assert_eq!(
            taken, userspace,
            "left is the flow taken, right userspace's reading of {case:?}"
        );
        if kernel == userspace {
            assert_eq!(
                decision, taken,
                "left is the decision, right the flow taken by {case:?}"
            );
        } else {
            differing += 1;
        }
        traced_frames += 1;
        steered_frames += usize::from(taken.is_some());
    }
    println!(
        "{traced_frames} traced, {steered_frames} steered, {differing} read differently by the kernel"
    );
    assert!(steered_frames > GENERATED / 20, "{steered_frames}");
    assert!(differing < GENERATED / 10, "{differing}");
}
