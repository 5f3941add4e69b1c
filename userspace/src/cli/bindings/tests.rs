use std::{collections::BTreeSet, sync::Arc};

use super::*;
use crate::{
    mirror::{Member, Millis},
    ovsdb::Uuid,
    topology::AgeThreshold,
};

const WALL: i64 = 1_700_000_000_000;

fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

fn member(port: &str, datapath: u128) -> Member {
    Member {
        port: port.into(),
        datapath: uuid(datapath),
        age: AgeThreshold::from_option(Some(&"300".into())),
    }
}

fn members() -> GroupMembers {
    GroupMembers {
        source: Some(member("rtoe-GR_node", 1)),
        followers: vec![
            member("rtoe-GR_blue_node", 2),
            member("rtoe-GR_green_node", 3),
            member("rtoe-GR_red_node", 4),
        ],
        node_ips: Arc::new(BTreeSet::from(["172.18.0.4".parse().unwrap()])),
        pinned: Arc::default(),
    }
}

fn row(port: &str, datapath: u128, ip: &str, mac: &str, age: i64) -> BindingRow {
    BindingRow {
        uuid: uuid(u128::from(age.unsigned_abs()) + datapath * 1_000_000),
        port: port.into(),
        datapath: uuid(datapath),
        ip: ip.parse().unwrap(),
        ip_text: ip.into(),
        mac: mac.parse().ok(),
        timestamp: WALL - age,
    }
}

/// blue has everything, green one stale and one wrong row and lacks one, red has nothing.
fn rows() -> Vec<BindingRow> {
    let gateway = "02:42:ac:12:00:01";
    let mut rows = vec![
        row("rtoe-GR_node", 1, "172.18.0.1", gateway, 10_000),
        row("rtoe-GR_node", 1, "172.18.0.4", "02:42:ac:12:00:04", 5_000),
        row("rtoe-GR_node", 1, "fc00::1", gateway, 20_000),
        row("rtoe-GR_node", 1, "fe80::1", gateway, 30_000),
        row("rtoe-GR_node", 1, "172.18.0.9", "none", 40_000),
        row("rtoe-GR_green_node", 3, "172.18.0.1", gateway, 200_000),
        row("rtoe-GR_green_node", 3, "fc00::1", "02:42:ac:12:00:99", 1),
        row("rtoe-GR_green_node", 3, "172.18.0.77", gateway, 2),
        row("rtoe-GR_other_node", 9, "172.18.0.1", gateway, 3),
    ];
    for (ip, age) in [
        ("172.18.0.1", 9_000),
        ("FC00:0::1", 9_001),
        ("fe80::1", 9_002),
    ] {
        rows.push(row("rtoe-GR_blue_node", 2, ip, gateway, age));
    }
    rows
}

fn reported(members: &GroupMembers) -> BindingsReport {
    reported_of(members, &rows(), &[])
}

fn reported_of(
    members: &GroupMembers,
    rows: &[BindingRow],
    others: &[(&str, &Member)],
) -> BindingsReport {
    let rows: Vec<&BindingRow> = rows.iter().collect();
    let now = Now {
        at: Millis(0),
        wall_ms: WALL,
    };
    let others = OtherSources::of(others, &rows);
    report("breth0", members, &rows, &others, &Settings::default(), now)
}

fn printed(report: BindingsReport, args: &BindingsArgs, json: bool) -> (String, bool) {
    let mut out = Vec::new();
    let settled = print(&[report], args, json, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), settled)
}

#[test]
fn the_report_says_which_follower_lacks_what() {
    let report = reported(&members());
    assert_eq!(
        report.total,
        Tally {
            right: 3,
            stale: 1,
            missing: 4,
            wrong: 1,
            ..Tally::default()
        }
    );
    let green = &report.followers[1];
    assert_eq!(green.own, 1);
    let states: Vec<(String, RowState)> = (green.differences.iter())
        .map(|it| (it.ip.to_string(), it.state))
        .collect();
    assert_eq!(
        states,
        [
            ("172.18.0.1".to_owned(), RowState::Stale),
            ("fc00::1".to_owned(), RowState::Wrong),
            ("fe80::1".to_owned(), RowState::Missing),
        ]
    );
}

#[test]
fn the_table_names_followers_that_need_something() {
    let (text, settled) = printed(reported(&members()), &BindingsArgs::default(), false);
    insta::assert_snapshot!(text);
    assert!(!settled);
}

#[test]
fn a_settled_group_needs_no_list_of_followers() {
    let mut members = members();
    members.followers.truncate(1);
    let (text, settled) = printed(reported(&members), &BindingsArgs::default(), false);
    insta::assert_snapshot!(text);
    assert!(settled);
    let all = BindingsArgs {
        all: true,
        ..BindingsArgs::default()
    };
    assert!(
        printed(reported(&members), &all, false)
            .0
            .contains("rtoe-GR_blue_node")
    );
}

#[test]
fn a_group_without_a_source_says_so() {
    let mut members = members();
    members.source = None;
    let (text, settled) = printed(reported(&members), &BindingsArgs::default(), false);
    assert_eq!(
        text,
        "bridge breth0: the source has no datapath yet, nothing is mirrored\n"
    );
    assert!(settled);
}

/// The node's address of [`members`] and another one, pinned.
fn with_nodes() -> GroupMembers {
    let macs = [
        ("172.18.0.4", "02:42:ac:12:00:44"),
        ("172.18.0.77", GATEWAY),
    ];
    let macs = macs.map(|(ip, mac)| (ip.parse().unwrap(), mac.parse().unwrap()));
    members().with_pinned(Arc::new(BTreeMap::from(macs)))
}

#[test]
fn pinned_nodes_are_listed_with_how_followers_stand_whatever_the_source_says() {
    let report = reported(&with_nodes());
    let green = &report.followers[1];
    assert_eq!(green.own, 0, "the row about a node is not one of its own");
    let (text, settled) = printed(report, &BindingsArgs::default(), false);
    insta::assert_snapshot!(text);
    assert!(!settled);
    let (text, _) = printed(reported(&with_nodes()), &BindingsArgs::default(), true);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let binding = &document[0]["bindings"][1];
    assert_eq!(binding["origin"], "node");
    assert_eq!(binding["mac"], "02:42:ac:12:00:44");
    assert_eq!(binding["followers"]["missing"], 3);
}

#[test]
fn pinned_nodes_are_listed_without_a_source_too() {
    let mut members = with_nodes();
    members.source = None;
    let (text, _) = printed(reported(&members), &BindingsArgs::default(), false);
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "bridge breth0: bindings of nodes: 2, followers: 3, their rows: 1 right, 5 missing"
    );
}

#[test]
fn the_document_has_the_same_as_data() {
    let (text, _) = printed(reported(&members()), &BindingsArgs::default(), true);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document[0]["total"]["missing"], 4);
    assert_eq!(document[0]["bindings"][0]["ip"], "172.18.0.1");
    assert_eq!(document[0]["bindings"][1]["node"], true);
    assert_eq!(
        document[0]["followers"][1]["differences"][1]["mac"],
        "02:42:ac:12:00:99"
    );
}

const GATEWAY: &str = "02:42:ac:12:00:01";
const SOURCE: &str = "rtoe-GR_node";
const BLUE: &str = "rtoe-GR_blue_node";
const OTHER: &str = "rtoe-GR_up_node";

/// What is flagged of the source's and blue's rows, where another bridge's source is [`OTHER`].
fn flagged(rows: &[BindingRow]) -> (Vec<IpAddr>, Vec<IpAddr>) {
    let report = reported_of(&members(), rows, &[("breth1", &member(OTHER, 8))]);
    let source: Vec<IpAddr> = (report.bindings.iter())
        .filter(|binding| binding.learned_on.as_deref() == Some("breth1"))
        .map(|binding| binding.ip)
        .collect();
    let [blue, others @ ..] = report.followers.as_slice() else {
        panic!("no followers");
    };
    assert!(others.iter().all(|it| it.learned_elsewhere.is_empty()));
    let blue: Vec<IpAddr> = (blue.learned_elsewhere.iter())
        .map(|it| {
            assert_eq!(it.bridge, "breth1");
            it.ip
        })
        .collect();
    assert_eq!(report.learned_elsewhere, source.len() + blue.len());
    (source, blue)
}

#[test]
fn a_followers_row_that_only_another_bridges_source_knows_is_learned_elsewhere() {
    let neighbour: IpAddr = "172.18.7.7".parse().unwrap();
    let (_, blue) = flagged(&[
        row(BLUE, 2, "172.18.7.7", GATEWAY, 9_000),
        row(OTHER, 8, "172.18.7.7", GATEWAY, 8_000),
    ]);
    assert_eq!(blue, [neighbour]);
    // The mirror has stamped it a little later than its source.
    let (_, blue) = flagged(&[
        row(BLUE, 2, "172.18.7.7", GATEWAY, 9_000),
        row(OTHER, 8, "172.18.7.7", GATEWAY, 9_020),
    ]);
    assert_eq!(blue, [neighbour]);
}

#[test]
fn a_row_is_not_learned_elsewhere_where_the_other_source_has_another_mac_or_an_older_row() {
    for (mac, age) in [("02:42:ac:12:00:99", 8_000), (GATEWAY, 15_000)] {
        let (source, blue) = flagged(&[
            row(BLUE, 2, "172.18.7.7", GATEWAY, 9_000),
            row(OTHER, 8, "172.18.7.7", mac, age),
        ]);
        assert_eq!((source, blue), (vec![], vec![]), "{mac} {age}");
    }
}

#[test]
fn a_followers_row_of_its_own_sources_learning_is_not_learned_elsewhere() {
    let (source, blue) = flagged(&[
        row(SOURCE, 1, "172.18.7.7", GATEWAY, 1_000),
        row(BLUE, 2, "172.18.7.7", GATEWAY, 9_000),
        row(OTHER, 8, "172.18.7.7", GATEWAY, 8_000),
    ]);
    assert_eq!((source, blue), (vec![], vec![]));
}

#[test]
fn the_default_router_has_learned_what_it_knows_even_in_the_same_millisecond() {
    let rows = [
        row(SOURCE, 1, "172.18.7.7", GATEWAY, 9_000),
        row(OTHER, 8, "172.18.7.7", GATEWAY, 9_000),
    ];
    let rows: Vec<&BindingRow> = rows.iter().collect();
    let other = member(OTHER, 8);
    let others = || OtherSources::of(&[("breth1", &other)], &rows);
    assert_eq!(others().copied(rows[0]), Some("breth1"));
    assert_eq!(
        others().for_the_default_router(false).copied(rows[0]),
        Some("breth1")
    );
    assert_eq!(others().for_the_default_router(true).copied(rows[0]), None);
}

#[test]
fn of_two_sources_with_the_same_neighbour_one_has_learned_it() {
    let neighbour: IpAddr = "172.18.7.7".parse().unwrap();
    for (own, other, is_copy) in [
        (9_000, 9_010, true),
        (9_010, 9_000, false),
        (9_000, 1_000, true),
        (1_000, 9_000, false),
    ] {
        let (source, _) = flagged(&[
            row(SOURCE, 1, "172.18.7.7", GATEWAY, own),
            row(OTHER, 8, "172.18.7.7", GATEWAY, other),
        ]);
        let expected = if is_copy { vec![neighbour] } else { vec![] };
        assert_eq!(source, expected, "{own} {other}");
    }
}

#[test]
fn a_source_that_came_from_another_bridge_has_its_rows_and_its_followers_flagged() {
    let neighbour: IpAddr = "172.18.7.7".parse().unwrap();
    let rows = [
        row(SOURCE, 1, "172.18.7.7", GATEWAY, 9_000),
        row(BLUE, 2, "172.18.7.7", GATEWAY, 9_001),
        row(OTHER, 8, "172.18.7.7", GATEWAY, 9_010),
    ];
    assert_eq!(flagged(&rows), (vec![neighbour], vec![neighbour]));
    // Later on, the source that has learned it refreshes its own row.
    let mut refreshed = rows.clone();
    refreshed[2].timestamp = WALL;
    assert_eq!(flagged(&refreshed), (vec![neighbour], vec![neighbour]));
    // A row that a former router with the other source's port has left says nothing.
    let mut rows = rows;
    rows[2].datapath = uuid(99);
    assert_eq!(flagged(&rows), (vec![], vec![]));
}

#[test]
fn the_table_and_the_document_say_where_rows_were_learned() {
    let mut rows = rows();
    rows.extend([
        row(OTHER, 8, "fc00::1", GATEWAY, 1_000),
        row(OTHER, 8, "172.18.0.77", GATEWAY, 3),
    ]);
    let reported = || reported_of(&members(), &rows, &[("breth1", &member(OTHER, 8))]);
    let (text, _) = printed(reported(), &BindingsArgs::default(), false);
    insta::assert_snapshot!(text);
    let (text, _) = printed(reported(), &BindingsArgs::default(), true);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document[0]["learned_elsewhere"], 3);
    assert_eq!(document[0]["bindings"][3]["learned_on"], "breth1");
    let green = &document[0]["followers"][1]["learned_elsewhere"];
    assert_eq!(
        *green,
        serde_json::json!([{"ip": "172.18.0.77", "bridge": "breth1"}])
    );
}
