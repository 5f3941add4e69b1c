//! On a DPU: the host behind a representor, and IPv4 alone.

use std::net::IpAddr;

use super::{golden::render, *};
use crate::{
    openflow::Port,
    representor::{PortName, Representors, SwitchPort},
    rows::tests::number,
    topology::{Dpu, HostEndpoint, Incumbents, SkipReason, Topology, build_on_dpu},
};

const REPRESENTOR: i64 = 11;

fn representors() -> Representors {
    let mut representors = Representors::default();
    for (interface, name) in [("eth0", "p0"), ("pf0hpf", "c1pf0")] {
        let port = SwitchPort {
            switch: Some("1c34da0003a1b2c0".into()),
            name: PortName::parse(name).unwrap(),
        };
        representors.learn(&interface.into(), Ok(Some(port)));
    }
    representors
}

/// Uplink, representor, two followers and a secondary localnet network, dual stack.
fn node(vlan: i64) -> Node {
    let mut node = Node::with_two_followers(|default| default.vlan = vlan, [7]);
    node.port("breth0", "pf0hpf", "", number(REPRESENTOR), &[]);
    node
}

fn topology(node: &Node, dpu: &Dpu) -> Topology {
    build_on_dpu(&node.rows(), &Incumbents::new(), dpu)
}

fn on_dpu(address: Option<&str>) -> Dpu {
    Dpu {
        representors: representors(),
        address: address.map(|text| text.parse().unwrap()),
    }
}

#[test]
fn the_flows_of_a_dpu_are_as_they_were_reviewed() {
    let sets = [
        ("overlay_on", on(), Install::Overlay),
        ("complete_on", on(), Install::Complete),
        ("complete_off", Gates::default(), Install::Complete),
    ];
    for (set, gates, install) in sets {
        let mut text = String::new();
        for (title, vlan) in [("no VLAN", 0), ("a gateway VLAN", 1024)] {
            let topology = topology(&node(vlan), &on_dpu(None));
            let group = topology.group("breth0").unwrap();
            render(&mut text, title, &plan(group, gates, install));
        }
        insta::assert_snapshot!(format!("dpu_{set}"), text);
    }
}

#[test]
fn the_host_is_behind_the_representor_and_has_ipv4_alone() {
    let topology = topology(&node(0), &on_dpu(None));
    let group = topology.group("breth0").unwrap();
    let HostEndpoint::Representor { name, ofport } = &group.host else {
        panic!("{:?}", group.host);
    };
    assert_eq!((&**name, i64::from(ofport.get())), ("pf0hpf", REPRESENTOR));
    assert_eq!(&*group.uplink.name, "eth0", "the other port of type system");
    let ingress: Vec<u16> = group.ingress_ports().map(|it| it.ofport.get()).collect();
    assert_eq!(ingress, [1, 7], "what the host sends is not from outside");
    assert!(group.ipv4 && !group.ipv6);
    assert_eq!(
        group.node_addresses,
        ["172.18.0.3".parse::<IpAddr>().unwrap()]
    );
}

#[test]
fn the_annotated_address_counts_instead_of_ovns() {
    let topology = topology(&node(0), &on_dpu(Some("10.1.1.10")));
    let group = topology.group("breth0").unwrap();
    assert_eq!(
        group.node_addresses,
        ["10.1.1.10".parse::<IpAddr>().unwrap()]
    );
    let plan = plan(group, Gates::default(), Install::Complete);
    let asked: Vec<_> = plan
        .flows
        .iter()
        .filter_map(|it| it.matches.arp_tpa)
        .collect();
    assert_eq!(asked, ["10.1.1.10".parse::<std::net::Ipv4Addr>().unwrap()]);
}

#[test]
fn an_entry_that_leads_to_the_bridge_itself_does_not_reach_a_host_behind_a_representor() {
    let topology = topology(&node(0), &on_dpu(None));
    let group = topology.group("breth0").unwrap();
    let plan = plan(group, on(), Install::Overlay);
    let wanted = plan.static_fdb.clone().unwrap();
    assert_eq!(&*wanted.port, "pf0hpf");
    let Port::Number(ofport) = wanted.leads_to else {
        panic!("{wanted:?}");
    };
    let entry = |port| FdbEntry {
        port,
        vlan: 0,
        mac: group.bridge_mac,
        is_static: true,
    };
    assert!(plan.missing_fdb(&[entry(FdbPort::Local)]).is_some());
    assert_eq!(plan.missing_fdb(&[entry(FdbPort::Number(ofport))]), None);
}

#[test]
fn a_bridge_without_its_representor_is_left_out_with_the_reason() {
    let alone = Node::with_two_followers(|_| (), []);
    let without = topology(&alone, &on_dpu(None));
    assert_eq!(without.groups, []);
    let bridge = without.skipped.iter().find(|it| &*it.object == "breth0");
    let bridge = bridge.unwrap();
    assert!(matches!(bridge.reason, SkipReason::NoRepresentor(_)));
    let reason = bridge.reason.to_string();
    assert!(reason.contains("eth0: physical port 0"), "{reason}");
    assert!(reason.contains("--host-representor"), "{reason}");
    let mut unnumbered = alone;
    unnumbered.port("breth0", "pf0hpf", "", number(-1), &[]);
    let without = topology(&unnumbered, &on_dpu(None));
    let reasons: Vec<String> = without.skipped.iter().map(ToString::to_string).collect();
    assert!(
        reasons.contains(&"breth0: port pf0hpf has no OpenFlow number (yet)".to_owned()),
        "{reasons:?}"
    );
}

#[test]
fn an_uplink_that_is_taken_for_a_representor_is_named() {
    let reason = |node: &Node, named: &str| {
        let named = std::iter::once(named.parse().unwrap()).collect();
        let mut dpu = Dpu {
            representors: Representors::new(named),
            address: None,
        };
        let vf = SwitchPort {
            switch: None,
            name: PortName::parse("pf0vf0").unwrap(),
        };
        dpu.representors.learn(&"pf0hpf".into(), Ok(Some(vf)));
        let topology = topology(node, &dpu);
        assert_eq!(topology.groups, []);
        let bridge = topology.skipped.into_iter();
        let mut bridge = bridge.filter(|it| &*it.object == "breth0");
        bridge.next().unwrap().reason
    };
    let with = |uplink: &str, ids: &[(&str, &str)]| {
        let mut node = Node::default();
        node.bridge("breth0", uplink, ids);
        node.map("physnet", "breth0");
        node.network(&Network::default_network());
        node.network(&Network::user_defined("blue", 3));
        node.port("breth0", "pf0hpf", "", number(REPRESENTOR), &[]);
        node
    };
    assert_eq!(
        reason(&with("ens3", &[]), "ens3"),
        SkipReason::OnlyRepresentors("ens3, pf0hpf".to_owned())
    );
    for (uplink, ids) in [("ens3", &[("bridge-uplink", "ens3")][..]), ("eth0", &[])] {
        assert_eq!(
            reason(&with(uplink, ids), uplink),
            SkipReason::UplinkIsRepresentor(uplink.into())
        );
    }
}

#[test]
fn a_node_that_is_no_dpu_does_not_look_for_representors() {
    let mut node = Node::with_two_followers(|_| (), []);
    let before = node.topology();
    assert_eq!(before.group("breth0").unwrap().host, HostEndpoint::Local);
    node.port("breth0", "pf0hpf", "", number(REPRESENTOR), &[]);
    assert_eq!(node.topology(), before);
}
