use neighsteer_common::Decision;

use super::*;
use crate::{
    audit::{DatapathPorts, Disagreement, Question, Translation, disagreements, sights},
    openflow::Port,
};

const TWO_ROUTERS: &str = include_str!("two_routers.txt");

#[test]
fn lookups_actions_and_ports_are_read_bridge_by_bridge() {
    let translation = Translation::parse(TWO_ROUTERS);
    assert_eq!(translation.lookups, 8);
    assert!(!translation.over_limit);
    let visits: Vec<_> = translation
        .visits
        .iter()
        .map(|it| (&*it.bridge, it.depth, it.in_port.as_deref(), it.steps.len()))
        .collect();
    assert_eq!(
        visits,
        [
            ("breth0", 0, Some("eth0"), 1),
            ("br-int", 1, Some("patch-br-int-to-breth0_node-1"), 4),
            ("br-int", 1, Some("patch-br-int-to-breth0_blue_node-1"), 3),
        ]
    );
    let first = &translation.visits[0].steps[0];
    assert_eq!(
        (first.table, first.priority, first.cookie),
        (0, Some(10), crate::openflow::Cookie(0xdeff105))
    );
    assert_eq!(
        first.actions,
        [
            "output:\"patch-breth0_node-1-to-br-int\"",
            "output:\"patch-breth0_blue_node-1-to-br-int\"",
            "NORMAL"
        ]
    );
    assert_eq!(translation.visits[1].to_controller, 1);
    // The action behind a resubmission is the flow's that resubmitted.
    assert_eq!(
        translation.visits[1].steps[1].actions,
        ["set_field:0x1->reg1", "resubmit(,73)", "resubmit(,36)"]
    );
    assert_eq!(translation.datapath_actions, ["br-int-internal,breth0"]);
}

#[test]
fn routers_are_told_by_the_patch_ports_that_frames_come_in_by() {
    let bridge = Bridge::steered();
    let translation = Translation::parse(TWO_ROUTERS);
    // The lab's rows have no integration bridge: every port is shown as it is.
    let seen = sights(&bridge.group, &bridge.observed.names, &translation);
    assert_eq!(seen.len(), 2);
    assert_eq!(*seen[0].port, *"patch-br-int-to-breth0_node-1 of br-int");
    let mut node = Node::new(&[Network::default_network(), Network::user_defined("blue", 3)]);
    node.bridge("br-int", "none", &[]);
    for localnet in ["breth0_node-1", "breth0_blue_node-1"] {
        let name = format!("patch-br-int-to-{localnet}");
        let ids = [("ovn-localnet-port", localnet)];
        node.port(
            "br-int",
            &name,
            "patch",
            crate::rows::tests::number(40),
            &ids,
        );
    }
    let names = PortNames::of(&node.rows(), "breth0");
    let seen = sights(&bridge.group, &names, &translation);
    let routers: Vec<_> = seen
        .iter()
        .map(|it| (it.router.as_deref(), it.is_source, it.learns))
        .collect();
    assert_eq!(
        routers,
        [
            (Some("GR_node-1"), true, true),
            (Some("GR_blue_node-1"), false, false)
        ]
    );
}

#[test]
fn names_are_put_in_the_place_of_port_numbers() {
    let text = "\
Flow: arp

bridge(\"breth0\")
----------------
 0. in_port=1,arp, priority 52, cookie 0x1
    output:3

    bridge(\"br-int\")
    ----------------
         0. in_port=40,vlan_tci=0x0000, priority 100
            resubmit(,8)
         8. metadata=0x1, priority 1
            drop
    output:99
    LOCAL

Datapath actions: userspace(pid=0,controller(reason=1)),push_vlan(vid=2,pcp=0),2,1,77
";
    let show = "\
netdev@ovs-netdev: hit:15 missed:12
  breth0:
    breth0 65534/1: (tap)
    eth0 1/2: (system)
    patch-breth0_blue_node-1-to-br-int 3/none: (patch: peer=patch-br-int-to-x)
";
    let mut node = Node::new(&[Network::user_defined("blue", 3)]);
    node.bridge("br-int", "none", &[]);
    let number = crate::rows::tests::number(40);
    node.port("br-int", "patch-br-int-to-x", "patch", number, &[]);
    let names = PortNames::of(&node.rows(), "breth0");
    let named = Translation::parse(text).with_names(&names, &DatapathPorts::parse(show));
    let [outer, inner] = named.visits.as_slice() else {
        panic!("{named:?}")
    };
    assert_eq!(outer.in_port.as_deref(), Some("eth0"));
    assert_eq!(outer.steps[0].matched, "in_port=eth0,arp");
    assert_eq!(
        outer.steps[0].actions,
        [
            "output:patch-breth0_blue_node-1-to-br-int",
            "output:99",
            "LOCAL"
        ]
    );
    assert_eq!(inner.in_port.as_deref(), Some("patch-br-int-to-x"));
    assert_eq!(
        named.datapath_actions,
        ["userspace(pid=0,controller(reason=1)),push_vlan(vid=2,pcp=0),eth0,breth0,77"]
    );
}

#[test]
fn the_limit_is_seen_and_where_it_hit() {
    let text = TWO_ROUTERS.replace(
        "            23. reg14",
        "            >>>> over 4096 resubmit actions <<<<\n            23. reg14",
    );
    let translation = Translation::parse(&text);
    assert!(translation.over_limit);
    let cut_off: Vec<bool> = translation.visits.iter().map(|it| it.cut_off).collect();
    assert_eq!(cut_off, [false, false, true]);
    let failed =
        Translation::parse("Translation failed (Too many resubmits), packet is dropped.\n");
    assert!(failed.over_limit);
    assert_eq!(failed.failures.len(), 1);
}

#[test]
fn arbitrary_text_is_no_lookup() {
    for text in [
        "",
        "\n\n",
        "bridge(\"",
        "   bridge(\"x\")\n-",
        "Datapath actions: ",
        " 1. x\n",
        "999. a",
    ] {
        assert_eq!(Translation::parse(text).lookups, 0, "{text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "([ 0-9.:a-z\"()\n>-]|bridge\\(\"b\"\\)\n|\n *[0-9]+\\. a, priority 1\n){0,60}") {
        drop(Translation::parse(&text));
    }
}

fn question<'a>(bridge: &'a Bridge, decision: Decision, in_port: u16) -> Question<'a> {
    Question {
        group: &bridge.group,
        in_port: Port::Number(ofport(in_port)),
        decision,
        is_tagged: false,
        is_steered: true,
    }
}

#[test]
fn decision_and_flows_agree_or_it_is_said_where_not() {
    let bridge = Bridge::steered();
    let names = &bridge.observed.names;
    let mut translation = Translation::parse(TWO_ROUTERS);
    let none = sights(&bridge.group, names, &Translation::default());
    let ask = |decision, in_port, translation: &Translation| {
        disagreements(question(&bridge, decision, in_port), translation, &none)
    };
    assert_eq!(ask(Decision::Normal, 1, &translation), []);
    assert!(matches!(
        ask(Decision::SteerArp, 1, &translation)[..],
        [
            Disagreement::NotSteered {
                priority: Some(10),
                ..
            },
            Disagreement::NotSeenBySource
        ]
    ));
    // The design says nothing of frames that come in by a router's own port.
    assert_eq!(ask(Decision::SteerArp, 3, &translation), []);
    translation.visits[0].steps[0].priority = Some(52);
    assert!(matches!(
        ask(Decision::Flood, 1, &translation)[..],
        [Disagreement::Steered { decision: "flood" }]
    ));
}

#[test]
fn a_steered_frame_of_a_vlan_that_is_no_gateways_need_not_reach_the_source() {
    let mut bridge = Bridge::steered();
    let mut translation = Translation::parse(TWO_ROUTERS);
    translation.visits[0].steps[0].priority = Some(52);
    let ask = |bridge: &Bridge, is_tagged| {
        let question = Question {
            is_tagged,
            ..question(bridge, Decision::SteerArp, 1)
        };
        disagreements(question, &translation, &[])
    };
    assert_eq!(ask(&bridge, false), [Disagreement::NotSeenBySource]);
    assert_eq!(ask(&bridge, true), []);
    bridge.group.gateway_vlan = Some(7);
    assert_eq!(ask(&bridge, true), [Disagreement::NotSeenBySource]);
}
