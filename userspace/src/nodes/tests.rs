use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Gateway, GatewayMode, Node, ObjectError, Problem, UplinkState,
    manifest::{Kind, Manifest},
};

const MAC: &str = "3a:24:24:5d:85:aa";

fn node(annotations: Value, addresses: Value) -> Node {
    let object = json!({
        "metadata": {"name": "worker", "annotations": annotations},
        "status": {"addresses": addresses},
    });
    Node::read(&object).unwrap().1
}

fn with_config(config: &Value) -> Node {
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": "chassis-1",
        "k8s.ovn.org/l3-gateway-config": config.to_string(),
    });
    node(
        annotations,
        json!([{"type": "InternalIP", "address": "10.89.0.19"}]),
    )
}

fn gateway(mac: &str, networks: &[&str], mode: GatewayMode) -> Gateway {
    Gateway {
        mac: mac.parse().unwrap(),
        networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
        mode,
    }
}

fn is_unreadable(problem: &Problem, word: &str) -> bool {
    matches!(problem, Problem::Unreadable { problem, .. } if problem.contains(word))
}

#[test]
fn a_node_of_both_families_is_read_wholly() {
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": "1d5f5e3b-0b0c-4f8e-9d8a-6c8f3b6a2f11",
        "k8s.ovn.org/l3-gateway-config": json!({"default": {
            "mode": "shared", "bridge-id": "breth0", "interface-id": "breth0_worker",
            "mac-address": MAC, "ip-addresses": ["10.89.0.19/24", "fc00:f853:ccd:e793::13/64"],
            "next-hops": ["10.89.0.1", "fc00:f853:ccd:e793::1"],
            "node-port-enable": "true", "vlan-id": "0",
        }}).to_string(),
        "k8s.ovn.org/host-cidrs": "[\"10.89.0.19/24\"]",
    });
    let addresses = json!([
        {"type": "InternalIP", "address": "10.89.0.19"},
        {"type": "InternalIP", "address": "fc00:f853:ccd:e793::13"},
        {"type": "ExternalIP", "address": "192.0.2.7"},
        {"type": "Hostname", "address": "worker"},
    ]);
    let addressed = ["10.89.0.19", "fc00:f853:ccd:e793::13"];
    let networks = ["10.89.0.19/24", "fc00:f853:ccd:e793::13/64"];
    assert_eq!(
        node(annotations, addresses),
        Node {
            chassis: Some("1d5f5e3b-0b0c-4f8e-9d8a-6c8f3b6a2f11".into()),
            internal_ips: addressed.map(|text| text.parse().unwrap()).into(),
            gateway: Ok(gateway(MAC, &networks, GatewayMode::Shared)),
            dpu_host: None,
            problems: vec![],
        }
    );
}

#[test]
fn the_address_of_a_dpus_host_is_ipv4_or_a_problem() {
    let read = |text: Value| {
        let annotations = json!({"k8s.ovn.org/primary-dpu-host-addr": text});
        let node = node(annotations, json!([]));
        let problems = node.problems.iter().map(ToString::to_string);
        let about = problems.filter(|it| it.contains("primary-dpu-host-addr"));
        (
            node.dpu_host.map(|it| it.to_string()),
            about.collect::<Vec<_>>(),
        )
    };
    let good = read(json!("{\"ipv4\":\"10.1.1.10/24\"}"));
    assert_eq!(good, (Some("10.1.1.10/24".to_owned()), Vec::new()));
    let both = read(json!("{\"ipv4\":\"10.1.1.10/24\",\"ipv6\":\"fd00::3/64\"}"));
    assert_eq!(both, good);
    assert_eq!(node(json!({}), json!([])).dpu_host, None);
    for bad in [
        json!(7),
        json!("10.1.1.10/24"),
        json!("{\"ipv4\":\"10.1.1.10\"}"),
        json!("{\"ipv4\":\"fd00::3/64\"}"),
        json!("{\"ipv4\":\"127.0.0.1/8\"}"),
        json!("{\"ipv6\":\"fd00::3/64\"}"),
        json!("[]"),
    ] {
        let (address, problems) = read(bad.clone());
        assert_eq!((address, problems.len()), (None, 1), "{bad}");
    }
}

#[test]
fn a_configuration_that_is_not_by_network_is_the_default_networks() {
    let read = with_config(&json!({
        "mode": "local", "interface-id": "INTERFACE-ID", "mac-address": "11:22:33:44:55:66",
        "ip-addresses": ["192.168.1.10/24", "fd01::1234/64"],
        "next-hops": ["192.168.1.1", "fd01::1"], "node-port-enable": "false", "vlan-id": "1024",
    }));
    // The group bit is set in this one.
    let mac = "11:22:33:44:55:66".parse().unwrap();
    assert_eq!(read.gateway, Err(Problem::UnusableMac(mac)));
    let read = with_config(&json!({
        "mode": "local", "mac-address": "10:22:33:44:55:66", "ip-addresses": ["192.168.1.10/24"],
    }));
    let wanted = gateway(
        "10:22:33:44:55:66",
        &["192.168.1.10/24"],
        GatewayMode::Local,
    );
    assert_eq!(read.gateway, Ok(wanted));
}

#[test]
fn a_single_address_counts_where_there_is_no_list() {
    let single =
        json!({"default": {"mode": "shared", "mac-address": MAC, "ip-address": "10.1.1.10/24"}});
    let wanted = gateway(MAC, &["10.1.1.10/24"], GatewayMode::Shared);
    assert_eq!(with_config(&single).gateway, Ok(wanted.clone()));
    let beside = json!({"default": {
        "mode": "shared", "mac-address": MAC, "ip-addresses": ["10.1.1.10/24"],
        "ip-address": "10.9.9.9/24", "next-hop": "10.1.1.1",
        "exgw-ip-address": "10.2.2.2/24", "exgw-mac-address": "02:00:00:00:00:01",
    }});
    assert_eq!(with_config(&beside).gateway, Ok(wanted.clone()));
    let empty = json!({"default": {
        "mode": "shared", "mac-address": MAC, "ip-addresses": [], "ip-address": "10.1.1.10/24",
    }});
    assert_eq!(with_config(&empty).gateway, Ok(wanted));
}

#[test]
fn an_empty_mode_says_that_there_is_no_gateway() {
    for config in [json!({"default": {"mode": ""}}), json!({"default": {}})] {
        let read = with_config(&config);
        assert_eq!(read.gateway, Err(Problem::GatewayDisabled));
        assert_eq!(read.problems, []);
    }
    let without = node(
        json!({"k8s.ovn.org/l3-gateway-config": "{\"default\":{\"mode\":\"\"}}"}),
        json!([{"type": "InternalIP", "address": "10.1.1.1"}]),
    );
    assert_eq!(without.chassis, None);
    assert_eq!(without.problems, []);
}

#[test]
fn a_node_without_annotation_keeps_its_addresses() {
    let read = node(
        json!({}),
        json!([{"type": "InternalIP", "address": "10.1.1.1"}]),
    );
    let missing = Problem::Missing("k8s.ovn.org/l3-gateway-config");
    assert_eq!(read.gateway, Err(missing));
    assert_eq!(
        read.internal_ips,
        BTreeSet::from(["10.1.1.1".parse().unwrap()])
    );
}

#[test]
fn an_annotation_that_cannot_be_read_costs_the_gateway_only() {
    for (annotation, word) in [
        (json!("{\"default\":{\"mode\":\"shared\""), "no JSON"),
        (json!(""), "no JSON"),
        (json!({"default": {}}), "no text"),
        (json!("[]"), "no configuration"),
        (json!("{\"default\":7}"), "no configuration"),
        (json!("{\"default\":{\"mode\":\"both\"}}"), "neither"),
        (json!("{\"default\":{\"mode\":1}}"), "no text"),
        (
            json!("{\"default\":{\"mode\":\"shared\",\"mac-address\":\"x\"}}"),
            "no MAC",
        ),
        (
            json!("{\"default\":{\"mode\":\"shared\",\"mac-address\":9}}"),
            "no text",
        ),
    ] {
        let read = node(
            json!({"k8s.ovn.org/l3-gateway-config": annotation}),
            json!([{"type": "InternalIP", "address": "10.1.1.1"}]),
        );
        let problem = read.gateway.unwrap_err();
        assert!(is_unreadable(&problem, word), "{annotation}: {problem}");
        assert_eq!(read.internal_ips.len(), 1);
    }
}

#[test]
fn a_long_text_that_cannot_be_read_is_repeated_in_part() {
    let annotation = "é".repeat(100_000);
    let read = node(
        json!({"k8s.ovn.org/l3-gateway-config": annotation}),
        json!([]),
    );
    assert!(read.gateway.unwrap_err().to_string().len() < 400);
}

#[test]
fn a_mac_that_no_node_can_have_is_named() {
    for text in [
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "33:33:00:00:00:01",
    ] {
        let config = json!({"default": {"mode": "shared", "mac-address": text}});
        let mac = text.parse().unwrap();
        assert_eq!(with_config(&config).gateway, Err(Problem::UnusableMac(mac)));
    }
    for absent in [
        json!({"mode": "shared"}),
        json!({"mode": "shared", "mac-address": ""}),
    ] {
        let problem = with_config(&json!({"default": absent}))
            .gateway
            .unwrap_err();
        assert!(matches!(problem, Problem::Missing(what) if what.starts_with("mac-address")));
    }
}

#[test]
fn a_bad_entry_costs_itself_only() {
    let read = with_config(&json!({"default": {
        "mode": "shared", "mac-address": MAC,
        "ip-addresses": ["10.1.1.10/33", 7, "10.1.1.10", "fd00::1/64", "fd00::1/64", "0.0.0.0/0"],
    }}));
    assert_eq!(
        read.gateway,
        Ok(gateway(MAC, &["fd00::1/64"], GatewayMode::Shared))
    );
    assert_eq!(read.problems.len(), 4);
    let read = node(
        json!({"k8s.ovn.org/node-chassis-id": 5}),
        json!([
            {"type": "InternalIP", "address": "10.1.1.1"},
            {"type": "InternalIP", "address": "10.1.1.1"},
            {"type": "InternalIP", "address": "10.1.1"},
            {"type": "InternalIP", "address": "224.0.0.1"},
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "InternalIP", "address": "::ffff:10.1.1.1"},
            {"type": "InternalIP"},
            {"address": "10.1.1.2"},
            "10.1.1.3",
        ]),
    );
    assert_eq!(
        read.internal_ips,
        BTreeSet::from(["10.1.1.1".parse().unwrap()])
    );
    assert_eq!(read.chassis, None);
    assert_eq!(read.problems.len(), 6);
}

#[test]
fn what_a_node_does_not_have_is_named() {
    let read = Node::read(&json!({"metadata": {"name": "fresh"}}))
        .unwrap()
        .1;
    assert_eq!(read.internal_ips, BTreeSet::new());
    let missing = Problem::Missing("an InternalIP in status.addresses");
    assert_eq!(read.problems, [missing]);
    let read = node(
        json!({"k8s.ovn.org/l3-gateway-config":
            json!({"mode": "shared", "mac-address": MAC}).to_string()}),
        json!([{"type": "InternalIP", "address": "10.1.1.1"}]),
    );
    assert_eq!(read.gateway, Ok(gateway(MAC, &[], GatewayMode::Shared)));
    assert_eq!(
        read.problems,
        [
            Problem::Missing("ip-addresses of k8s.ovn.org/l3-gateway-config"),
            Problem::Missing("k8s.ovn.org/node-chassis-id"),
        ]
    );
}

#[test]
fn an_object_without_a_name_is_none() {
    for object in [
        json!({}),
        json!(null),
        json!([1]),
        json!({"metadata": {"name": ""}}),
        json!({"metadata": {"name": 3}}),
    ] {
        assert_eq!(Node::read(&object), Err(ObjectError::NoName));
        assert_eq!(UplinkState::read(&object), Err(ObjectError::NoName));
    }
}

fn uplink_state(status: Value) -> Value {
    json!({
        "metadata": {"name": "uplinkstate-7d4c"},
        "spec": {"uplinkName": "blue", "nodeName": "worker"},
        "status": status,
    })
}

#[test]
fn an_uplink_state_is_read_wholly() {
    let object = uplink_state(json!({
        "type": "OVSBridge", "hostInterfaceName": "eth1", "ovsBridge": {"name": "ovsbr1"},
        "macAddress": "00:11:22:33:44:56", "ipAddresses": ["10.3.0.2/24", "fd03::2/64"],
        "defaultGateways": ["10.3.0.1"],
    }));
    let wanted = UplinkState {
        uplink: "blue".into(),
        node: "worker".into(),
        bridge: Some("ovsbr1".into()),
        mac: Ok("00:11:22:33:44:56".parse().unwrap()),
        addresses: vec![
            "10.3.0.2/24".parse().unwrap(),
            "fd03::2/64".parse().unwrap(),
        ],
        problems: vec![],
    };
    assert_eq!(
        UplinkState::read(&object),
        Ok(("uplinkstate-7d4c".into(), wanted))
    );
}

#[test]
fn an_uplink_state_keeps_what_is_right_about_it() {
    let (_, state) = UplinkState::read(&uplink_state(json!(null))).unwrap();
    assert_eq!(state.bridge, None);
    assert_eq!(state.mac, Err(Problem::Missing("status.macAddress")));
    let (_, state) = UplinkState::read(&uplink_state(json!({
        "ovsBridge": "ovsbr1", "macAddress": "00:00:00:00:00:00",
        "ipAddresses": ["10.3.0.2", "fd03::2/64"],
    })))
    .unwrap();
    assert_eq!(state.bridge, None);
    assert!(matches!(state.mac, Err(Problem::UnusableMac(_))));
    assert_eq!(state.addresses, ["fd03::2/64".parse().unwrap()]);
    assert_eq!(state.problems.len(), 1);
}

#[test]
fn an_uplink_state_of_nobody_is_none() {
    let object = json!({"metadata": {"name": "u"}, "spec": {"uplinkName": "blue"}});
    let error = UplinkState::read(&object).unwrap_err();
    assert_eq!(error.to_string(), "u has no spec.nodeName");
}

#[test]
fn lists_of_every_form_are_read() {
    let mut manifest = Manifest::default();
    manifest.add(&json!(null));
    assert!(manifest.is_empty());
    let named = |name: &str| json!({"metadata": {"name": name}});
    let whole =
        |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let mut uplink = uplink_state(json!({}));
    uplink["apiVersion"] = json!("k8s.ovn.org/v1alpha1");
    uplink["kind"] = json!("UplinkState");
    manifest.add(&whole("a"));
    manifest.add(&json!({"apiVersion": "v1", "kind": "List", "items": [
        whole("b"), uplink, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        {"apiVersion": "v1", "kind": "Node"},
    ]}));
    manifest.add(&json!({"apiVersion": "v1", "kind": "NodeList", "items": [named("c")]}));
    manifest.add(&json!({
        "apiVersion": "k8s.ovn.org/v1alpha1", "kind": "UplinkStateList",
        "items": [uplink_state(json!({})), named("u")],
    }));
    manifest.add(&named("neither"));
    manifest.add(&json!({"apiVersion": "v2", "kind": "Node", "metadata": {"name": "d"}}));
    let names: Vec<&str> = manifest.nodes.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(manifest.uplinks.len(), 2);
    manifest.add(&json!(7));
    assert_eq!((manifest.others, manifest.not_objects), (2, 2));
    let bad: Vec<Kind> = manifest.bad.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(bad, [Kind::Node, Kind::UplinkState]);
}
