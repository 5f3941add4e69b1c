//! What holds for every group.

use std::net::IpAddr;

use proptest::{
    collection::{btree_set, vec},
    prelude::*,
};

use super::*;
use crate::{
    ids::Mac,
    openflow::{Action, FlowKey, Port},
    topology::{AgeThreshold, GatewayRouter, HostEndpoint},
};

/// The most that a generated group has.
const FOLLOWERS: usize = 6;
const SECONDARY: usize = 3;

fn ingress(ofport: OfPort) -> IngressPort {
    IngressPort {
        name: format!("port{ofport}").into(),
        ofport,
    }
}

fn router(network: Option<&str>, ofport: OfPort) -> GatewayRouter {
    GatewayRouter {
        name: format!("GR_{ofport}").into(),
        network: network.map(Arc::from),
        external_port: format!("rtoe-GR_{ofport}").into(),
        external_mac: None,
        datapath: None,
        patch_port: format!("patch{ofport}").into(),
        ofport,
        mac_binding_age_threshold: AgeThreshold::default(),
    }
}

/// Real port numbers, each for one port, low and high ones among them.
fn ofports() -> impl Strategy<Value = Vec<OfPort>> {
    let number = prop_oneof![1..=20i64, 1..=i64::from(OfPort::MAX)];
    btree_set(number, 3 + FOLLOWERS + SECONDARY)
        .prop_map(|numbers| {
            let ports = numbers.into_iter().map(Some).map(OfPort::from_column);
            ports.map(Option::unwrap).collect::<Vec<_>>()
        })
        .prop_shuffle()
}

fn any_group() -> impl Strategy<Value = BridgeGroup> {
    (
        (ofports().boxed(), any::<bool>()),
        (0..=FOLLOWERS, 0..=SECONDARY),
        (any::<[u8; 6]>(), any::<bool>()),
        prop::option::of(1..=4094u16),
        prop_oneof![Just((true, true)), Just((true, false)), Just((false, true))],
        vec(any::<IpAddr>(), 0..4),
    )
        .prop_map(
            |(
                (ofports, is_default),
                (followers, secondary),
                (mac, on_dpu),
                vlan,
                families,
                addresses,
            )| {
                let mut ofports = ofports.into_iter();
                let mut next = || ofports.next().unwrap();
                let network = (!is_default).then_some("udn");
                BridgeGroup {
                    bridge: "breth0".into(),
                    bridge_mac: Mac(mac),
                    datapath_type: "".into(),
                    host: match on_dpu {
                        true => HostEndpoint::Representor {
                            name: "pf0hpf".into(),
                            ofport: next(),
                        },
                        false => HostEndpoint::Local,
                    },
                    uplink: ingress(next()),
                    source: router(network, next()),
                    followers: (0..followers)
                        .map(|_| router(Some("udn"), next()))
                        .collect(),
                    secondary: (0..secondary).map(|_| ingress(next())).collect(),
                    gateway_vlan: vlan,
                    ipv4: families.0,
                    ipv6: families.1,
                    node_addresses: addresses,
                }
            },
        )
}

fn any_set() -> impl Strategy<Value = (Gates, Install)> {
    (
        prop_oneof![Just(on()), Just(Gates::default())],
        prop_oneof![Just(Install::Overlay), Just(Install::Complete)],
    )
}

fn any_mark() -> impl Strategy<Value = SteeringMark> {
    any::<u32>().prop_filter_map("taken", |mark| SteeringMark::new(mark).ok())
}

/// The group with everything that is a list in another order.
fn permuted() -> impl Strategy<Value = (BridgeGroup, BridgeGroup)> {
    any_group().prop_flat_map(|group| {
        let lists = (
            Just(group.followers.clone()).prop_shuffle(),
            Just(group.secondary.clone()).prop_shuffle(),
            Just(group.node_addresses.clone()).prop_shuffle(),
        );
        lists.prop_map(move |(followers, secondary, node_addresses)| {
            let other = BridgeGroup {
                followers,
                secondary,
                node_addresses,
                ..group.clone()
            };
            (group.clone(), other)
        })
    })
}

proptest! {
    #[test]
    fn the_order_of_ports_and_addresses_does_not_matter(
        (group, other) in permuted(),
        (gates, install) in any_set(),
    ) {
        prop_assert_eq!(plan(&group, gates, install), plan(&other, gates, install));
    }

    #[test]
    fn frames_are_output_to_gateway_routers_of_the_group_alone(
        group in any_group(),
        (gates, install) in any_set(),
    ) {
        let source = group.source.ofport;
        let followers: BTreeSet<OfPort> = group.followers.iter().map(|it| it.ofport).collect();
        for flow in plan(&group, gates, install).flows {
            // Egress validation alone drops.
            let drops = flow.priority == 9 && flow.matches.in_port.is_some();
            prop_assert_eq!(flow.actions.is_empty(), drops, "{}", flow);
            prop_assert!(!flow.to_string().contains("output:,"), "{}", flow);
            for action in &flow.actions {
                let known = match action {
                    Action::Output(Port::Number(port)) => {
                        *port == source || (!gates.steering() && followers.contains(port))
                    }
                    Action::Normal | Action::Flood => true,
                    _ => false,
                };
                prop_assert!(known, "{}", flow);
            }
        }
    }

    #[test]
    fn neither_the_source_nor_a_port_of_another_kind_is_ever_without_flood(
        group in any_group(),
        (gates, install) in any_set(),
    ) {
        let plan = plan(&group, gates, install);
        let source = BTreeSet::from([group.source.ofport]);
        let followers: BTreeSet<OfPort> = group.followers.iter().map(|it| it.ofport).collect();
        prop_assert!(plan.no_flood.is_subset(&followers));
        prop_assert!(plan.flood.is_subset(&source));
        if gates.steering() {
            prop_assert_eq!(plan.no_flood, followers);
            prop_assert_eq!(plan.flood, source);
        }
    }

    #[test]
    fn no_flow_stands_in_the_place_of_another_and_all_read_back(
        group in any_group(),
        (gates, install) in any_set(),
    ) {
        let flows = plan(&group, gates, install).flows;
        let keys: BTreeSet<FlowKey> = flows.iter().map(Flow::key).collect();
        prop_assert_eq!(keys.len(), flows.len());
        prop_assert!(flows.iter().all(|flow| flow.cookie == COOKIE));
        prop_assert_eq!(diff(&flows, &installed(&flows)), FlowChanges::default());
    }

    #[test]
    fn by_mark_the_uplinks_header_flows_are_those_of_header_steering_one_priority_lower(
        group in any_group(),
        (gates, install) in any_set(),
        mark in any_mark(),
    ) {
        let by_header = plan(&group, gates, install);
        let by_mark = by_header.clone().by_mark(&group, mark);
        let uplink = Some(group.uplink.ofport.into());
        let lowered = by_header.flows.iter().map(|flow| {
            let lower = is_steering(flow) && flow.matches.in_port == uplink;
            let priority = if lower { UNMARKED_PRIORITY } else { flow.priority };
            Flow { priority, ..flow.clone() }
        });
        let lowered: BTreeSet<String> = lowered.map(|it| it.to_string()).collect();
        let (marked, others): (Vec<&Flow>, Vec<&Flow>) =
            by_mark.flows.iter().partition(|it| it.matches.pkt_mark.is_some());
        let others: BTreeSet<String> = others.into_iter().map(ToString::to_string).collect();
        prop_assert_eq!(others, lowered);
        // One flow, whose actions are those of each header flow once the mark is off.
        prop_assert_eq!(marked.len(), usize::from(gates.steering()));
        for flow in marked {
            prop_assert_eq!(flow.matches.in_port, uplink);
            prop_assert_eq!(&flow.actions[0], &Action::SetPktMark(0));
            let unmarked = by_mark.flows.iter().filter(|it| it.priority == UNMARKED_PRIORITY);
            for unmarked in unmarked {
                prop_assert_eq!(&flow.actions[1..], &unmarked.actions[..]);
            }
        }
        prop_assert_eq!(by_mark.no_flood, by_header.no_flood);
        prop_assert_eq!(by_mark.static_fdb, by_header.static_fdb);
    }

    #[test]
    fn a_plan_by_mark_reads_back_and_knows_others_that_steer(
        group in any_group(),
        install in prop_oneof![Just(Install::Overlay), Just(Install::Complete)],
        mark in any_mark(),
    ) {
        let by_header = plan(&group, on(), install);
        let by_mark = by_header.clone().by_mark(&group, mark);
        prop_assert_eq!(diff(&by_mark.flows, &installed(&by_mark.flows)), FlowChanges::default());
        let keys: BTreeSet<FlowKey> = by_mark.flows.iter().map(Flow::key).collect();
        prop_assert_eq!(keys.len(), by_mark.flows.len());
        prop_assert_eq!(mark_of(&by_mark.flows, &group), Some(mark));
        let mut there = installed(&by_mark.flows);
        let mut theirs = installed(&by_header.flows);
        theirs.retain(|it| is_steering(&it.flow));
        theirs.iter_mut().for_each(|it| it.flow.cookie = Cookie(0xdef_f105));
        let count = theirs.len();
        there.retain(|it| !theirs.iter().any(|that| that.flow.key() == it.flow.key()));
        there.extend(theirs);
        prop_assert_eq!(foreign_gate(&by_mark, &there).len(), count);
    }
}
