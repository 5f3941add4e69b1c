use std::time::Instant;

use neighsteer::openflow::{Cookie, Flow, FlowChanges, OfCtl, Switch, SwitchError};

use crate::{BRIDGE, Ovs, native};

const COOKIE: Cookie = Cookie(0x6e65_6967);

/// The shapes of the design's flows: steering, overlay, and the complete set.
const DESIGN: &[&str] = &[
    "cookie=0x6e656967, priority=52, table=0, in_port=1, dl_dst=02:42:ac:12:00:03, arp, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=52, table=0, in_port=1, dl_dst=02:42:ac:12:00:03, icmp6, icmpv6_type=135, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=52, table=0, in_port=1, dl_vlan=100, dl_dst=02:42:ac:12:00:03, icmp6, icmpv6_type=136, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=52, table=0, in_port=1, dl_vlan=4095, dl_dst=02:42:ac:12:00:03, icmp6, icmpv6_type=134, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=13, table=0, in_port=1, dl_dst=ff:ff:ff:ff:ff:ff, arp, actions=NORMAL",
    "cookie=0x6e656967, priority=13, table=0, in_port=1, dl_dst=33:33:00:00:00:01, icmp6, icmpv6_type=136, actions=NORMAL",
    "cookie=0x6e656967, priority=12, table=0, arp, arp_op=1, arp_tpa=172.18.0.3, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=12, table=0, dl_vlan=100, icmp6, icmpv6_type=135, nd_target=fd00::3, actions=output:2,NORMAL",
    "cookie=0x6e656967, priority=11, table=0, in_port=1, dl_dst=ff:ff:ff:ff:ff:ff, arp, actions=NORMAL,output:3,output:4",
    "cookie=0x6e656967, priority=10, table=0, dl_dst=02:42:ac:12:00:03, actions=output:2,output:3,output:4,NORMAL",
    "cookie=0x6e656967, priority=10, table=0, in_port=3, dl_src=02:42:ac:12:00:03, actions=NORMAL",
    "cookie=0x6e656967, priority=9, table=0, in_port=3, actions=drop",
    "cookie=0x6e656967, priority=50, table=0, ip, dl_dst=02:42:ac:12:00:03, actions=LOCAL",
    "cookie=0x6e656967, priority=50, table=0, ipv6, in_port=LOCAL, actions=output:1",
    "cookie=0x6e656967, priority=14, table=1, icmp6, icmpv6_type=134, actions=FLOOD,output:3,output:4",
    "cookie=0x6e656967, priority=0, table=0, actions=NORMAL",
];

fn design() -> Vec<Flow> {
    DESIGN.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn every_flow_of_the_design_dumps_as_ovs_ofctl_installs_it_from_text() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    for text in DESIGN {
        ovs.ofctl(&["add-flow"], &[text]);
    }
    let expected = ovs.dump();
    assert_eq!(expected.len(), DESIGN.len(), "{expected:#?}");
    ovs.ofctl(&["del-flows"], &[]);
    assert!(ovs.dump().is_empty());

    native(&ovs).add_flows(BRIDGE, &design()).await.unwrap();
    assert_eq!(ovs.dump(), expected);
}

/// Every combination of what a flow of ours may match, each with a priority of its own.
fn combinations() -> Vec<Flow> {
    const PORTS: [&str; 3] = ["", "in_port=1, ", "in_port=LOCAL, "];
    const VLANS: [&str; 3] = ["", "dl_vlan=1, ", "dl_vlan=4095, "];
    const ADDRESSES: [&str; 3] = [
        "",
        "dl_dst=33:33:00:00:00:01, ",
        "dl_src=02:42:ac:12:00:03, dl_dst=ff:ff:ff:ff:ff:ff, ",
    ];
    const KINDS: [&str; 9] = [
        "",
        "ip, ",
        "ipv6, ",
        "arp, ",
        "arp, arp_op=2, ",
        "arp, arp_tpa=0.0.0.0, ",
        "icmp6, ",
        "icmp6, icmpv6_type=134, ",
        "icmp6, icmpv6_type=136, nd_target=fe80::1, ",
    ];
    const ACTIONS: [&str; 5] = [
        "drop",
        "output:2,NORMAL",
        "NORMAL,output:3,output:4",
        "FLOOD,LOCAL",
        "LOCAL,output:65279",
    ];
    let mut flows = Vec::new();
    for port in PORTS {
        for vlan in VLANS {
            for addresses in ADDRESSES {
                for kind in KINDS {
                    let index = flows.len();
                    let (table, actions) = (index % 3, ACTIONS[index % ACTIONS.len()]);
                    let text = format!(
                        "cookie={index}, priority={index}, table={table}, \
                         {port}{vlan}{addresses}{kind}actions={actions}"
                    );
                    flows.push(text.parse().unwrap());
                }
            }
        }
    }
    flows
}

#[tokio::test]
async fn every_combination_of_fields_dumps_as_ovs_ofctl_installs_it() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    let flows = combinations();
    OfCtl::new(ovs.rundir())
        .add_flows(BRIDGE, &flows)
        .await
        .unwrap();
    let expected = ovs.dump();
    assert_eq!(expected.len(), flows.len());
    ovs.ofctl(&["del-flows"], &[]);

    native(&ovs).add_flows(BRIDGE, &flows).await.unwrap();
    let dump = ovs.dump();
    for (ours, theirs) in dump.iter().zip(&expected) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(dump.len(), expected.len());

    native(&ovs).delete_flows(BRIDGE, &flows).await.unwrap();
    assert!(ovs.dump().is_empty());
}

#[tokio::test]
async fn flows_are_listed_as_they_were_asked_for_and_as_through_ovs_ofctl() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    let native = native(&ovs);
    native.add_flows(BRIDGE, &design()).await.unwrap();
    ovs.ofctl(
        &["add-flow"],
        &["cookie=0xdeff105,table=3,priority=7,actions=NORMAL"],
    );

    let mut listed: Vec<Flow> = flows(&native, Some(COOKIE)).await;
    let mut wanted = design();
    listed.sort_by_key(Flow::key);
    wanted.sort_by_key(Flow::key);
    assert_eq!(listed, wanted);

    let mut all = flows(&native, None).await;
    let mut through_ofctl = flows(&OfCtl::new(ovs.rundir()), None).await;
    all.sort_by_key(Flow::key);
    through_ofctl.sort_by_key(Flow::key);
    assert_eq!(all, through_ofctl);
    assert_eq!(all.len(), wanted.len() + 1);
}

async fn flows(switch: &impl Switch, cookie: Option<Cookie>) -> Vec<Flow> {
    let listed = switch.dump_flows(BRIDGE, cookie).await.unwrap();
    listed.into_iter().map(|installed| installed.flow).collect()
}

#[tokio::test]
async fn flows_of_a_manager_read_the_same_as_through_ovs_ofctl_but_for_the_text_of_unknown_actions()
{
    const FOREIGN: &[&str] = &[
        "cookie=0xdeff105,priority=500,ip,in_port=2,nw_src=10.96.0.0/16,nw_dst=169.254.0.2,actions=ct(zone=64001,nat,table=3)",
        "cookie=0xdeff105,priority=205,udp,in_port=1,dl_dst=02:42:ac:12:00:03,tp_dst=6081,actions=LOCAL",
        "cookie=0xdeff105,priority=104,ipv6,in_port=2,ipv6_src=fd00:10::/64,actions=output:1",
        "cookie=0xdeff105,priority=100,table=1,tcp,ct_state=+est+trk,ct_mark=0x2,actions=group:7",
        "cookie=0x5,priority=110,in_port=1,dl_vlan=7,arp,arp_op=1,arp_tpa=10.0.0.9,actions=pop_vlan,output:2,output:3",
        "cookie=0x5,priority=7,arp,arp_spa=10.0.0.0/8,actions=IN_PORT",
        "cookie=0x5,priority=6,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,2)",
        "cookie=0x5,priority=5,reg0=0x1/0x1,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4103->vlan_vid,FLOOD",
        "cookie=0x5,priority=4,dl_type=0x8035,actions=goto_table:9",
    ];
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    ovs.ofctl(&["add-group"], &["group_id=7,type=all,bucket=output:1"]);
    for flow in FOREIGN {
        ovs.ofctl(&["add-flow"], &[flow]);
    }
    let known = |mut flow: Flow| {
        // Bits of the connection tracking's state, and actions with an inside.
        flow.matches
            .other
            .retain(|field| !field.starts_with("ct_state"));
        flow.actions.retain(|action| {
            !matches!(action, neighsteer::openflow::Action::Other(text)
                if ["ct(", "resubmit(", "action("].iter().any(|name| text.starts_with(name)))
        });
        flow
    };
    let mut ours: Vec<Flow> = flows(&native(&ovs), None)
        .await
        .into_iter()
        .map(known)
        .collect();
    let ofctl = OfCtl::new(ovs.rundir());
    let mut theirs: Vec<Flow> = flows(&ofctl, None).await.into_iter().map(known).collect();
    assert_eq!(ours.len(), FOREIGN.len());
    ours.sort_by_key(|flow| (flow.priority, flow.table));
    theirs.sort_by_key(|flow| (flow.priority, flow.table));
    assert_eq!(ours, theirs);
}

#[tokio::test]
async fn a_bundle_with_one_bad_flow_changes_nothing_and_names_the_flow() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    let native = native(&ovs);
    let kept: Flow = "cookie=0x1, priority=1, table=0, arp, actions=NORMAL"
        .parse()
        .unwrap();
    native
        .add_flows(BRIDGE, std::slice::from_ref(&kept))
        .await
        .unwrap();
    let before = ovs.dump();

    // Decoded and refused by the switch: a prerequisite is missing, a table does not exist.
    for bad in [
        "cookie=0x1, priority=60, table=0, arp_op=1, actions=NORMAL",
        "cookie=0x1, priority=60, table=255, arp, actions=NORMAL",
    ] {
        let bad: Flow = bad.parse().unwrap();
        let mut add = design();
        add.insert(add.len() / 2, bad.clone());
        let changes = FlowChanges {
            delete: vec![kept.clone()],
            add,
            ..FlowChanges::default()
        };
        let error = native.change_flows(BRIDGE, &changes).await.unwrap_err();
        let SwitchError::Rejected { flow, error, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(flow, bad.to_string());
        assert!(error.starts_with("OFP"), "{error}");
        assert_eq!(ovs.dump(), before);
    }
}

#[tokio::test]
async fn a_full_table_fails_at_the_commit_and_names_the_flow() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    ovs.vsctl(&[
        "--",
        "--id=@t",
        "create",
        "flow_table",
        "flow_limit=2",
        "--",
        "set",
        "bridge",
        BRIDGE,
        "flow_tables:0=@t",
    ]);
    let error = native(&ovs).add_flows(BRIDGE, &design()).await.unwrap_err();
    let SwitchError::Rejected { flow, error, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(error, "OFPFMFC_TABLE_FULL");
    assert_eq!(flow, DESIGN[2]);
    assert!(ovs.dump().is_empty(), "{:#?}", ovs.dump());
}

#[tokio::test]
async fn a_deletion_takes_only_the_very_flow_with_the_very_cookie() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    let native = native(&ovs);
    let ours: Flow = DESIGN[0].parse().unwrap();
    ovs.ofctl(
        &["add-flow"],
        &[&DESIGN[0].replace("0x6e656967", "0xdeff105")],
    );
    ovs.ofctl(&["add-flow"], &[DESIGN[10]]);
    let before = ovs.dump();

    native
        .delete_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();
    assert_eq!(ovs.dump(), before);

    let other: Flow = DESIGN[10].parse().unwrap();
    native.delete_flows(BRIDGE, &[other]).await.unwrap();
    assert_eq!(ovs.dump().len(), 1);
    assert!(ovs.dump()[0].contains("0xdeff105"));
}

#[tokio::test]
async fn an_action_of_somebody_else_is_not_written() {
    let ovs = Ovs::start();
    let flow: Flow = "cookie=0x1, priority=1, table=0, actions=ct(zone=1)"
        .parse()
        .unwrap();
    let error = native(&ovs).add_flows(BRIDGE, &[flow]).await.unwrap_err();
    assert!(matches!(error, SwitchError::Unwritable { .. }), "{error:?}");
    assert!(ovs.dump().is_empty());
}

#[tokio::test]
async fn thousands_of_flows_go_in_one_bundle_and_come_back_in_several_messages() {
    let ovs = Ovs::start();
    ovs.add_ports(1..=4);
    let native = native(&ovs);
    let add: Vec<Flow> = (0..5_000u16)
        .map(|index| {
            let address = format!("10.0.{}.{}", index >> 8, index & 0xff);
            format!("cookie=0x6e656967, priority=12, table=0, arp, arp_op=1, arp_tpa={address}, actions=output:2,NORMAL")
                .parse()
                .unwrap()
        })
        .collect();
    let begun = Instant::now();
    native.add_flows(BRIDGE, &add).await.unwrap();
    let added = begun.elapsed();
    let begun = Instant::now();
    let listed = native.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap();
    println!(
        "5,000 flows: added in {added:?}, listed in {:?}",
        begun.elapsed()
    );
    assert_eq!(listed.len(), add.len());

    // Every one of many is refused: the switch has as many errors to send while we still write.
    let bad: Vec<Flow> = add
        .iter()
        .map(|flow| {
            let mut flow = flow.clone();
            flow.matches.protocol = None;
            flow
        })
        .collect();
    let error = native.add_flows(BRIDGE, &bad).await.unwrap_err();
    let SwitchError::Rejected { flow, error, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (flow, error.as_str()),
        (bad[0].to_string(), "OFPBMC_BAD_PREREQ")
    );

    let begun = Instant::now();
    let one: Flow = DESIGN[0].parse().unwrap();
    native
        .add_flows(BRIDGE, std::slice::from_ref(&one))
        .await
        .unwrap();
    println!(
        "one flow, connection and bundle included: {:?}",
        begun.elapsed()
    );
}
