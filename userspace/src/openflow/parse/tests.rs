use proptest::prelude::*;

use super::*;
use crate::ids::Mac;

/// As Open vSwitch 3.1 printed it with `-O OpenFlow13 --no-names`, but for the fourth line, which is
/// from OpenFlow 1.0.
const DUMP: &str = "\
OFPST_FLOW reply (OF1.3) (xid=0x2):
 cookie=0x5, duration=0.011s, table=0, n_packets=3, n_bytes=180, arp,in_port=LOCAL,arp_tpa=1.2.3.4,arp_op=1 actions=drop
 cookie=0x6e65696768737472, duration=0.011s, table=0, n_packets=0, n_bytes=0, priority=52,icmp6,in_port=1,dl_vlan=5,dl_dst=02:42:ac:12:00:03,icmp_type=136 actions=output:2,NORMAL
NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=0.119s, table=0, n_packets=0, n_bytes=0, idle_timeout=5, hard_timeout=9, idle_age=0, hard_age=1, priority=0 actions=NORMAL
 cookie=0x5, duration=0.011s, table=1, n_packets=0, n_bytes=0, send_flow_rem reset_counts icmp6,icmp_type=135,nd_target=fd00::3 actions=LOCAL,IN_PORT,ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),output:1
 cookie=0x5, duration=0.010s, table=1, n_packets=0, n_bytes=0, actions=FLOOD
";

#[test]
fn what_dump_flows_prints_reads_back_normalised() {
    let shown: Vec<String> = parse_dump(DUMP)
        .unwrap()
        .iter()
        .map(|it| it.flow.to_string())
        .collect();
    assert_eq!(
        shown,
        [
            "cookie=0x5, priority=32768, table=0, in_port=LOCAL, arp, arp_op=1, \
             arp_tpa=1.2.3.4, actions=drop",
            "cookie=0x6e65696768737472, priority=52, table=0, in_port=1, dl_vlan=5, \
             dl_dst=02:42:ac:12:00:03, icmp6, icmpv6_type=136, actions=output:2,NORMAL",
            "cookie=0x0, priority=0, table=0, actions=NORMAL",
            "cookie=0x5, priority=32768, table=1, icmp6, icmpv6_type=135, nd_target=fd00::3, \
             actions=LOCAL,IN_PORT,ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),output:1",
            "cookie=0x5, priority=32768, table=1, actions=FLOOD",
        ]
    );
    let first = &parse_dump(DUMP).unwrap()[0];
    assert_eq!((first.packets, first.bytes), (3, 180));
}

#[test]
fn different_spellings_of_one_flow_are_one_flow() {
    let spellings = [
        "cookie=7,priority=52,in_port=1,dl_dst=02:42:ac:12:00:03,icmp6,icmpv6_type=136 \
         actions=output:2,NORMAL",
        "cookie=0x7, table=0, icmp6, eth_dst=02:42:AC:12:00:03, in_port=1, icmp_type=136, \
         priority=52, actions=2,normal",
        "table=0 priority=52 cookie=0x07 icmp_type=0x88 icmp6 in_port=1 \
         dl_dst=02:42:ac:12:00:03 actions=output:2, NORMAL",
    ];
    let flows: Vec<Flow> = spellings.iter().map(|it| it.parse().unwrap()).collect();
    assert_eq!(flows[0], flows[1]);
    assert_eq!(flows[0], flows[2]);

    let by_type = |text: &str| text.parse::<Flow>().unwrap().matches;
    assert_eq!(
        by_type("dl_type=0x0806 actions=drop"),
        by_type("arp actions=drop")
    );
    assert_eq!(
        by_type("eth_type=0x86dd actions=drop"),
        by_type("ipv6 actions=drop")
    );
}

#[test]
fn fields_that_are_not_typed_are_kept_and_tell_flows_apart() {
    let plain: Flow = "dl_dst=01:00:00:00:00:00 actions=drop".parse().unwrap();
    let masked: Flow = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=drop"
        .parse()
        .unwrap();
    assert_ne!(plain.key(), masked.key());
    let service: Flow = "tcp,nw_dst=10.96.0.0/16,ct_state=+trk+est,tcp_flags=+syn-ack actions=drop"
        .parse()
        .unwrap();
    assert_eq!(service.matches.other.len(), 4);
    assert_eq!(service.to_string().parse::<Flow>().unwrap(), service);
    let icmp: Flow = "icmp,icmp_type=8 actions=drop".parse().unwrap();
    assert_eq!(icmp.matches.icmpv6_type, None);
}

#[test]
fn a_text_that_is_no_flow_is_refused_with_the_reason() {
    let problem = |text: &str| parse_flow(text).unwrap_err().to_string();
    assert_eq!(
        problem("priority=5,arp"),
        "cannot read the flow \"priority=5,arp\": it has no actions="
    );
    assert_eq!(
        problem("priority=65536 actions=drop"),
        "cannot read the flow \"priority=65536 actions=drop\": priority has the value \"65536\""
    );
    assert!(parse_dump("cookie=0xzz actions=drop").is_err());
    assert!(parse_dump("table=256 actions=drop").is_err());
    // The word also occurs inside other fields.
    assert!(parse_flow("write_actions=1").is_err());
}

/// Flows as OKEP-6691 and the design of the external bridge write them, names filled in.
#[test]
fn every_flow_of_the_design_reads_into_typed_fields_and_writes_back_the_same() {
    for text in [
        "priority=52, table=0, in_port=1, dl_dst=02:42:ac:12:00:03, arp, actions=output:2,NORMAL",
        "priority=12, table=0, arp, arp_op=1, arp_tpa=172.18.0.3, actions=output:2,NORMAL",
        "priority=12, table=0, icmp6, icmpv6_type=135, nd_target=fd00::3, actions=output:2,NORMAL",
        "priority=11, table=0, in_port=1, dl_dst=ff:ff:ff:ff:ff:ff, arp, actions=NORMAL,output:3",
        "priority=11, table=0, in_port=1, dl_dst=33:33:00:00:00:01, icmp6, icmpv6_type=136, \
         actions=NORMAL,output:3,output:4",
        "priority=10, table=0, dl_dst=02:42:ac:12:00:03, actions=output:2,output:3,NORMAL",
        "priority=10, table=0, in_port=3, dl_src=02:42:ac:12:00:03, actions=NORMAL",
        "priority=9, table=0, in_port=3, actions=drop",
        "priority=0, table=0, actions=NORMAL",
        "priority=14, table=1, icmp6, icmpv6_type=134, actions=FLOOD,output:3,output:4",
    ] {
        let flow: Flow = text.parse().unwrap();
        assert_eq!(flow.to_string(), format!("cookie=0x0, {text}"));
        assert!(flow.matches.other.is_empty(), "{text}");
        let is_other = |action: &Action| matches!(action, Action::Other(_));
        assert!(!flow.actions.iter().any(is_other), "{text}");
    }
    let upstream: Flow = "priority=10, table=0, in_port=3, actions=output:NORMAL"
        .parse()
        .unwrap();
    assert_eq!(upstream.actions, [Action::Normal]);
}

prop_compose! {
    fn any_port()(number in 0i64..=0xfeff) -> Port {
        OfPort::from_column(Some(number)).map_or(Port::Local, Port::Number)
    }
}

fn any_match() -> impl Strategy<Value = Match> {
    let option = proptest::option::of::<BoxedStrategy<Port>>;
    let link = (
        option(any_port().boxed()),
        proptest::option::of(1u16..4096),
        any::<Option<[u8; 6]>>(),
        any::<Option<[u8; 6]>>(),
    );
    let kind = prop_oneof![
        Just(Match::default()),
        Just(Match {
            protocol: Some(Protocol::Ip),
            ..Match::default()
        }),
        Just(Match {
            protocol: Some(Protocol::Ipv6),
            ..Match::default()
        }),
        any::<(Option<u16>, Option<[u8; 4]>)>().prop_map(|(arp_op, arp_tpa)| Match {
            protocol: Some(Protocol::Arp),
            arp_op,
            arp_tpa: arp_tpa.map(Into::into),
            ..Match::default()
        }),
        any::<(Option<u8>, Option<[u8; 16]>)>().prop_map(|(icmpv6_type, nd_target)| Match {
            protocol: Some(Protocol::Icmp6),
            icmpv6_type,
            nd_target: nd_target.map(Into::into),
            ..Match::default()
        }),
    ];
    (link, kind).prop_map(|((in_port, dl_vlan, dl_src, dl_dst), kind)| Match {
        in_port,
        dl_vlan,
        dl_src: dl_src.map(Mac),
        dl_dst: dl_dst.map(Mac),
        ..kind
    })
}

prop_compose! {
    pub(crate) fn any_flow()(
        cookie in any::<u64>(),
        table in any::<u8>(),
        priority in any::<u16>(),
        matches in any_match(),
        actions in proptest::collection::vec(
            prop_oneof![
                any_port().prop_map(Action::Output),
                Just(Action::Normal),
                Just(Action::Flood),
                any::<u32>().prop_map(Action::SetPktMark),
            ],
            0..5,
        ),
    ) -> Flow {
        Flow { cookie: Cookie(cookie), table, priority, matches, actions }
    }
}

proptest! {
    #[test]
    fn a_flow_that_is_written_reads_back_as_itself(flow in any_flow()) {
        prop_assert_eq!(flow.to_string().parse::<Flow>().unwrap(), flow);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*", middle in ".{0,40}") {
        let _ = parse_dump(&text);
        let _ = parse_dump(&format!(" cookie=0x1, table=0, {middle} actions={text}"));
    }
}
