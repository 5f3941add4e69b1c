use std::net::IpAddr;

use super::{frame::Given, report::Report, *};
use crate::{
    audit::{PortNames, Translation},
    topology::tests::{Network, Node},
};

fn group() -> BridgeGroup {
    let node = Node::new(&[Network::default_network(), Network::user_defined("blue", 3)]);
    node.topology().group("breth0").unwrap().clone()
}

fn report(decision_of: &[u8]) -> Report {
    let group = group();
    let verdict = classify(&Bytes::from(decision_of), Some(&group.policy()));
    let translation = Translation::parse(include_str!("../../audit/tests/two_routers.txt"));
    let names = PortNames::default();
    let mut seen_by = sights(&group, &names, &translation);
    for (sight, router) in seen_by
        .iter_mut()
        .zip(std::iter::once(&group.source).chain(&group.followers))
    {
        sight.port = router.patch_port.clone();
        sight.router = Some(router.name.clone());
        sight.is_source = router.name == group.source.name;
    }
    let question = Question {
        group: &group,
        in_port: Port::Number(group.uplink.ofport),
        decision: verdict.decision,
        is_tagged: is_tagged(decision_of),
        is_steered: false,
    };
    Report {
        bridge: group.bridge.clone(),
        in_port: group.uplink.name.clone(),
        mark: None,
        frame: decision_of
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        classifier: verdict.into(),
        disagreements: disagreements(question, &translation, &seen_by),
        translation,
        seen_by,
    }
}

fn reply() -> Vec<u8> {
    let args = FrameArgs {
        arp_reply: true,
        from: "172.18.0.99/02:42:ac:12:00:63".parse().ok(),
        ..FrameArgs::default()
    };
    let given = args.given().unwrap();
    args.frames(given, &group()).unwrap().remove(0)
}

#[test]
fn the_decision_is_shown_beside_the_flows_and_who_sees_the_frame() {
    let mut out = Vec::new();
    report(&reply()).print(false, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn the_flows_of_further_bridges_are_shown_on_demand() {
    let mut out = Vec::new();
    report(&reply()).print(true, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn json_has_every_flow_of_every_bridge() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&report(&reply())).unwrap());
}

fn hex(text: &str, each: bool) -> Result<Vec<Vec<u8>>, FrameInputError> {
    let args = FrameArgs {
        hex: Some(text.to_owned()),
        each,
        ..FrameArgs::default()
    };
    args.given().map(|given| match given {
        Given::Frames(frames) => frames,
        Given::Message(..) => panic!("{text} is no message"),
    })
}

#[test]
fn hex_that_is_no_frame_is_refused_with_what_is_wrong() {
    let message = |text: &str| hex(text, false).unwrap_err().to_string();
    assert_eq!(
        message("zz"),
        "--hex is no frame in hex: it starts with 'z'"
    );
    assert_eq!(
        message("024200"),
        "frame 1 has 3 bytes, fewer than the 14 of an Ethernet header"
    );
    assert!(message("").starts_with("there is no frame"));
    assert!(matches!(
        hex("0242ac12000g", false),
        Err(FrameInputError::Capture(_))
    ));
}

#[test]
fn a_frame_that_the_switch_might_not_survive_is_never_handed_to_it() {
    let frame = |length: usize| format!("0242ac1200030242ac1200010806{}", "00".repeat(length - 14));
    assert_eq!(hex(&frame(32_768), false).unwrap()[0].len(), 32_768);
    let message = hex(&frame(32_769), false).unwrap_err().to_string();
    assert!(message.starts_with("frame 1 has 32769 bytes"), "{message}");
}

#[test]
fn the_first_frame_is_taken_or_each() {
    let two = "0242ac1200030242ac120001080600\n0242ac1200030242ac1200010806";
    assert_eq!(hex(two, false).unwrap().len(), 1);
    assert_eq!(hex(two, true).unwrap().len(), 2);
}

#[test]
fn a_message_is_for_the_node_unless_it_is_said_for_whom() {
    let args = FrameArgs {
        na: true,
        from: "fd00::1/02:42:ac:12:00:01".parse().ok(),
        vlan: Some(5),
        ..FrameArgs::default()
    };
    let group = group();
    let frame = |args: &FrameArgs| {
        args.frames(args.given().unwrap(), &group)
            .unwrap()
            .remove(0)
    };
    assert_eq!(frame(&args)[..6], group.bridge_mac.0);
    assert_eq!(frame(&args)[12..16], [0x81, 0, 0, 5]);
    let to_all = FrameArgs {
        to: "ff02::1".parse::<IpAddr>().ok(),
        ..args
    };
    assert_eq!(frame(&to_all)[..6], [0x33, 0x33, 0, 0, 0, 1]);
}

#[test]
fn a_message_without_an_address_of_its_family_is_refused() {
    let mut group = group();
    group.node_addresses.retain(IpAddr::is_ipv6);
    let args = FrameArgs {
        arp_request: true,
        from: "172.18.0.1/02:42:ac:12:00:01".parse().ok(),
        ..FrameArgs::default()
    };
    let error = args.frames(args.given().unwrap(), &group).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bridge breth0 has no IPv4 address of the node: give --to"
    );
}

#[test]
fn a_sender_is_an_address_and_a_mac() {
    for bad in ["172.18.0.1", "x/02:42:ac:12:00:01", "172.18.0.1/02:42", "/"] {
        assert!(bad.parse::<frame::Sender>().is_err(), "{bad}");
    }
}
