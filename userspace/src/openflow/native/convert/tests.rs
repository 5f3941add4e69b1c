use std::collections::BTreeSet;

use proptest::{option, prelude::*};

use super::*;
use crate::{ids::Mac, openflow::wire::RawOxm};

fn any_port() -> impl Strategy<Value = Port> {
    let number = (1..=i64::from(OfPort::MAX))
        .prop_map(|number| Port::Number(OfPort::from_column(Some(number)).unwrap()));
    prop_oneof![number, Just(Port::Local)]
}

fn any_match() -> impl Strategy<Value = Match> {
    let frame = (
        option::of(any_port()),
        option::of(any::<u32>()),
        option::of(1u16..=4095),
        option::of(any::<[u8; 6]>().prop_map(Mac)),
        option::of(any::<[u8; 6]>().prop_map(Mac)),
    );
    let protocol = prop_oneof![
        Just(Protocol::Arp),
        Just(Protocol::Ip),
        Just(Protocol::Ipv6),
        Just(Protocol::Icmp6)
    ];
    let inside = (
        option::of(protocol),
        option::of(any::<u16>()),
        option::of(any::<u32>()),
        option::of(any::<u8>()),
        option::of(any::<u128>()),
    );
    (frame, inside).prop_map(
        |(
            (in_port, pkt_mark, dl_vlan, dl_src, dl_dst),
            (protocol, arp_op, arp_tpa, kind, target),
        )| Match {
            in_port,
            pkt_mark,
            dl_vlan,
            dl_src,
            dl_dst,
            protocol,
            arp_op,
            arp_tpa: arp_tpa.map(Into::into),
            icmpv6_type: kind,
            nd_target: target.map(Into::into),
            other: BTreeSet::new(),
        },
    )
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let action = prop_oneof![
        any_port().prop_map(Action::Output),
        Just(Action::Normal),
        Just(Action::Flood),
        any::<u32>().prop_map(Action::SetPktMark)
    ];
    let actions = proptest::collection::vec(action, 0..6);
    (any::<(u64, u8, u16)>(), any_match(), actions).prop_map(
        |((cookie, table, priority), matches, actions)| Flow {
            cookie: Cookie(cookie),
            table,
            priority,
            matches,
            actions,
        },
    )
}

proptest! {
    #[test]
    fn a_flow_that_is_installed_is_listed_as_it_was(flow in any_flow()) {
        let request = flow_mod(&flow, FlowCommand::Add).unwrap();
        let listed = installed(&FlowStats {
            table: request.table,
            priority: request.priority,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: 0,
            cookie: request.cookie,
            packets: 3,
            bytes: 180,
            matches: request.matches,
            instructions: request.instructions,
        });
        prop_assert_eq!(listed.flow, flow);
        prop_assert_eq!((listed.packets, listed.bytes), (3, 180));
    }
}

#[test]
fn a_deletion_names_the_cookie_in_full_and_no_actions() {
    let flow: Flow = "cookie=0x7, priority=52, table=0, arp, actions=NORMAL"
        .parse()
        .unwrap();
    let request = flow_mod(&flow, FlowCommand::DeleteStrict).unwrap();
    assert_eq!((request.cookie, request.cookie_mask), (7, u64::MAX));
    assert!(request.instructions.is_empty());
}

#[test]
fn a_field_that_is_kept_as_text_is_refused_by_name() {
    let flow: Flow = "priority=1, arp, arp_spa=10.0.0.0/8, actions=NORMAL"
        .parse()
        .unwrap();
    let refused = flow_mod(&flow, FlowCommand::Add).unwrap_err();
    assert_eq!(refused.part, "arp_spa=10.0.0.0/8");
}

#[test]
fn an_unknown_field_and_action_show_their_bytes() {
    let matches = matching(&[Oxm::Other(RawOxm {
        field: 0x01c9,
        payload: vec![0, 0x0a, 0xff, 0xff],
    })]);
    assert_eq!(matches.to_string(), "oxm(0x0001,100)=0xa/0xffff");
    let actions = actions(&[Instruction::Apply(vec![wire::Action::Other {
        kind: 0xffff,
        body: vec![0, 0, 0x23, 0x20, 0, 1, 0, 2, 0, 0, 0, 0],
    }])]);
    let text = "action(65535,0x2320000100020000_0000)".replace('_', "");
    assert_eq!(actions, [Action::Other(text.into())]);
}

#[test]
fn output_to_a_controller_or_back_is_no_output_to_a_port() {
    let text = |port, max_len| action(&wire::Action::Output { port, max_len }).to_string();
    assert_eq!(text(PortNumber::CONTROLLER, 128), "CONTROLLER:128");
    assert_eq!(text(PortNumber::IN_PORT, 0), "IN_PORT");
    assert_eq!(text(PortNumber(0x1_0000), 0), "output:65536");
}
