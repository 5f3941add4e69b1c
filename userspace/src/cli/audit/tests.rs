use super::*;
use crate::{
    audit::{FanOut, Finding as Found, TrafficKind},
    openflow::parse_flow,
};

fn lookups(frame: TrafficKind, lookups: usize, routers: usize) -> Lookups {
    Lookups {
        frame,
        lookups,
        over_limit: lookups > LOOKUP_LIMIT,
        routers,
        source: true,
    }
}

fn audits() -> Vec<BridgeAudit> {
    let fan_out = FanOut {
        flow: parse_flow(
            "cookie=0xdeff105, priority=10, dl_dst=02:42:ac:12:00:03, actions=output:2,output:3,\
             output:4,output:5,output:6,output:7,output:8,output:9,NORMAL",
        )
        .unwrap(),
        outputs: 8,
        routers: 8,
        traffic: [TrafficKind::UnicastArp].into(),
        in_ports: ["eth0".into()].into(),
    };
    let unsteered = BridgeAudit {
        bridge: "breth0".into(),
        steered: false,
        findings: vec![
            Found::NotSteered,
            Found::FanOut(fan_out),
            Found::FdbMissing {
                mac: "02:42:ac:12:00:03".parse().unwrap(),
                vlan: 5,
                port: "breth0".into(),
            },
            Found::LookupLimit {
                frame: TrafficKind::UnicastArp,
                lookups: 4_097,
            },
        ],
        lookups: vec![
            lookups(TrafficKind::UnicastArp, 4_097, 81),
            lookups(TrafficKind::MulticastNa, 3_051, 61),
        ],
    };
    let steered = BridgeAudit {
        bridge: "br-up".into(),
        steered: true,
        findings: Vec::new(),
        lookups: vec![lookups(TrafficKind::UnicastArp, 51, 1)],
    };
    vec![unsteered, steered]
}

#[test]
fn findings_and_lookups_are_shown_bridge_by_bridge() {
    let mut out = Vec::new();
    print(&audits(), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn json_tells_findings_apart_by_name() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&audits()).unwrap());
}
