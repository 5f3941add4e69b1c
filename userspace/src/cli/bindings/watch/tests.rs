use super::*;
use crate::{
    mirror::{Member, Millis},
    topology::AgeThreshold,
};

const WALL: i64 = 1_700_000_000_000;
const MAC: &str = "02:42:ac:12:00:01";
const OTHER_MAC: &str = "02:42:ac:12:00:99";
const SOURCE: (&str, u128) = ("rtoe-GR_node", 1);
const BLUE: (&str, u128) = ("rtoe-GR_blue_node", 2);
const GREEN: (&str, u128) = ("rtoe-GR_green_node", 3);

fn now(at: u64) -> Now {
    Now {
        at: Millis(at),
        wall_ms: WALL.saturating_add_unsigned(at),
    }
}

fn member((port, datapath): (&str, u128)) -> Member {
    Member {
        port: port.into(),
        datapath: Uuid(uuid::Uuid::from_u128(datapath)),
        age: AgeThreshold::from_option(Some(&"300".into())),
    }
}

fn group(source: (&str, u128), followers: &[(&str, u128)]) -> GroupMembers {
    GroupMembers {
        source: Some(member(source)),
        followers: followers.iter().copied().map(member).collect(),
        node_ips: Arc::new(["172.18.0.4".parse().unwrap()].into()),
        pinned: Arc::default(),
    }
}

/// The row of a port about an address; the same two are the same row.
fn row((port, datapath): (&str, u128), ip: &str, mac: &str, timestamp: i64) -> BindingRow {
    let ip: IpAddr = ip.parse().unwrap();
    let number = match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    BindingRow {
        uuid: Uuid(uuid::Uuid::from_u128(number ^ (datapath << 96))),
        port: port.into(),
        datapath: Uuid(uuid::Uuid::from_u128(datapath)),
        ip,
        ip_text: ip.to_string().into(),
        mac: mac.parse().ok(),
        timestamp,
    }
}

struct Watched(Watch);

impl Watched {
    /// One bridge with two followers, whose first line has been read.
    fn start(rows: &[BindingRow]) -> Self {
        let mut watched = Self(Watch::new(Settings::default()));
        for row in rows {
            watched.0.upsert(row.clone(), false, now(0));
        }
        watched.regroup(&[("breth0", group(SOURCE, &[BLUE, GREEN]))], 0);
        assert_eq!(watched.lines(0).len(), 1);
        watched
    }

    fn regroup(&mut self, groups: &[(&str, GroupMembers)], at: u64) {
        let groups = groups.iter().cloned();
        let groups = groups.map(|(bridge, members)| (bridge.into(), members));
        self.0.set_groups(groups.collect(), now(at));
    }

    fn put(&mut self, row: BindingRow, at: u64) {
        self.0.upsert(row, true, now(at));
    }

    fn delete(&mut self, row: &BindingRow, at: u64) {
        self.0.remove(row.uuid, now(at));
    }

    /// What is printed.
    fn lines(&mut self, at: u64) -> Vec<String> {
        let lines: Vec<String> = (self.0.take(now(at)).iter())
            .map(ToString::to_string)
            .collect();
        assert!(!self.0.is_pending());
        lines
    }

    /// The same, of one line and without its time.
    fn line(&mut self, at: u64) -> String {
        let lines = self.lines(at);
        let [line] = lines.as_slice() else {
            panic!("not one line: {lines:?}");
        };
        let (_, line) = line.split_once(' ').unwrap();
        line.to_owned()
    }
}

/// A neighbour that everybody knows.
fn known(ip: &str) -> Vec<BindingRow> {
    [SOURCE, BLUE, GREEN]
        .map(|port| row(port, ip, MAC, WALL))
        .to_vec()
}

#[test]
fn it_begins_with_one_line_a_bridge_however_many_bindings_there_are() {
    let mut watched = Watched(Watch::new(Settings::default()));
    for row in known("172.18.0.1")
        .into_iter()
        .chain([row(SOURCE, "fe80::1", MAC, WALL)])
    {
        watched.0.upsert(row, false, now(0));
    }
    let other = group(("rtoe-GR_up_node", 8), &[]);
    let groups = [
        ("breth0", group(SOURCE, &[BLUE, GREEN])),
        ("breth1", other),
        ("breth2", GroupMembers::default()),
    ];
    watched.regroup(&groups, 0);
    let lines = watched.lines(0).join("\n");
    insta::assert_snapshot!(lines, @"
    2023-11-14T22:13:20.000Z breth0 bindings of rtoe-GR_node: 2, followers: 2, their rows: 2 right, 2 missing
    2023-11-14T22:13:20.000Z breth1 bindings of rtoe-GR_up_node: 0, followers: 0, their rows: 0 right
    2023-11-14T22:13:20.000Z breth2 has no source with a datapath yet
    ");
}

#[test]
fn a_neighbour_that_is_learnt_and_mirrored_before_anybody_looks_is_one_line_with_the_first_time() {
    let mut watched = Watched::start(&[]);
    for (at, row) in (7..).zip(known("172.18.0.1")) {
        watched.put(row, at);
    }
    let lines = watched.lines(100).join("\n");
    insta::assert_snapshot!(lines, @"2023-11-14T22:13:20.007Z breth0 172.18.0.1 02:42:ac:12:00:01 learnt; of 2 followers 2 right");
}

#[test]
fn followers_that_get_their_rows_later_are_a_line_of_their_own() {
    let mut watched = Watched::start(&[]);
    watched.put(row(SOURCE, "fe80::1", MAC, WALL), 5);
    assert_eq!(
        watched.line(100),
        "breth0 fe80::1 02:42:ac:12:00:01 learnt; of 2 followers 0 right, 2 missing"
    );
    watched.put(row(BLUE, "fe80::1", MAC, WALL), 105);
    watched.put(row(GREEN, "fe80::1", MAC, WALL), 110);
    assert_eq!(
        watched.line(200),
        "breth0 fe80::1 02:42:ac:12:00:01 followers changed; of 2 followers 2 right"
    );
}

#[test]
fn another_mac_is_a_move_that_names_both() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    watched.put(row(SOURCE, "172.18.0.1", OTHER_MAC, WALL + 5), 5);
    watched.put(row(BLUE, "172.18.0.1", OTHER_MAC, WALL + 6), 6);
    assert_eq!(
        watched.line(100),
        "breth0 172.18.0.1 02:42:ac:12:00:99 moved from 02:42:ac:12:00:01; of 2 followers 1 right, 1 wrong"
    );
}

#[test]
fn a_refresh_is_told_only_where_followers_stand_otherwise_after_it() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    watched.put(row(SOURCE, "172.18.0.1", MAC, WALL + 20_000), 20_000);
    assert_eq!(watched.lines(20_100), Vec::<String>::new());
    watched.put(row(SOURCE, "172.18.0.1", MAC, WALL + 200_000), 200_000);
    assert_eq!(
        watched.line(200_100),
        "breth0 172.18.0.1 02:42:ac:12:00:01 refreshed; of 2 followers 0 right, 2 stale"
    );
    watched.put(row(SOURCE, "172.18.0.1", MAC, WALL + 201_000), 201_000);
    for follower in [BLUE, GREEN] {
        watched.put(row(follower, "172.18.0.1", MAC, WALL + 201_000), 201_050);
    }
    assert_eq!(
        watched.line(201_100),
        "breth0 172.18.0.1 02:42:ac:12:00:01 refreshed; of 2 followers 2 right"
    );
}

#[test]
fn a_neighbour_that_goes_leaves_rows_that_are_counted() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    watched.delete(&row(SOURCE, "172.18.0.1", MAC, WALL), 5);
    watched.delete(&row(GREEN, "172.18.0.1", MAC, WALL), 5);
    assert_eq!(
        watched.line(100),
        "breth0 172.18.0.1 02:42:ac:12:00:01 gone; 1 of 2 followers keep a row"
    );
    watched.delete(&row(BLUE, "172.18.0.1", MAC, WALL), 200);
    assert_eq!(watched.lines(300), Vec::<String>::new());
}

#[test]
fn a_row_that_comes_and_goes_before_anybody_looks_is_no_news() {
    let mut watched = Watched::start(&[]);
    let row = row(SOURCE, "172.18.0.1", MAC, WALL);
    watched.put(row.clone(), 5);
    watched.delete(&row, 6);
    assert_eq!(watched.lines(100), Vec::<String>::new());
}

#[test]
fn a_row_that_changes_its_address_is_gone_there_and_learnt_here() {
    let mut watched = Watched::start(&[row(SOURCE, "172.18.0.1", MAC, WALL)]);
    let mut moved = row(SOURCE, "172.18.0.2", MAC, WALL);
    moved.uuid = row(SOURCE, "172.18.0.1", MAC, WALL).uuid;
    watched.put(moved, 5);
    let lines = watched.lines(100);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("172.18.0.1") && lines[0].contains("gone"));
    assert!(lines[1].contains("172.18.0.2") && lines[1].contains("learnt"));
}

#[test]
fn a_nodes_address_is_told_as_one() {
    let mut watched = Watched::start(&[]);
    watched.put(row(SOURCE, "172.18.0.4", MAC, WALL), 5);
    assert_eq!(
        watched.line(100),
        "breth0 172.18.0.4 02:42:ac:12:00:01 learnt; a node's address, not mirrored"
    );
}

#[test]
fn a_node_that_is_pinned_is_told_with_how_followers_stand_and_its_source_row_is_not() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    let pinned = |macs: &[(&str, &str)]| {
        let macs = macs.iter();
        let macs = macs.map(|(ip, mac)| (ip.parse().unwrap(), mac.parse().unwrap()));
        group(SOURCE, &[BLUE, GREEN]).with_pinned(Arc::new(macs.collect()))
    };
    watched.regroup(
        &[("breth0", pinned(&[("172.18.0.4", MAC), ("fd00::4", MAC)]))],
        5,
    );
    let lines = watched.lines(100).join("\n");
    insta::assert_snapshot!(lines, @"
    2023-11-14T22:13:20.005Z breth0 bindings of rtoe-GR_node: 1, of nodes: 2, followers: 2, their rows: 2 right, 4 missing
    2023-11-14T22:13:20.005Z breth0 172.18.0.4 02:42:ac:12:00:01 pinned; of 2 followers 0 right, 2 missing
    2023-11-14T22:13:20.005Z breth0 fd00::4 02:42:ac:12:00:01 pinned; of 2 followers 0 right, 2 missing
    ");
    watched.put(row(SOURCE, "172.18.0.4", OTHER_MAC, WALL + 200), 200);
    assert_eq!(watched.lines(300), Vec::<String>::new());
    watched.put(row(BLUE, "172.18.0.4", MAC, WALL + 400), 400);
    assert_eq!(
        watched.line(500),
        "breth0 172.18.0.4 02:42:ac:12:00:01 followers changed; of 2 followers 1 right, 1 missing"
    );
    watched.regroup(&[("breth0", pinned(&[("172.18.0.4", OTHER_MAC)]))], 600);
    let lines = watched.lines(700).join("\n");
    insta::assert_snapshot!(lines, @"
    2023-11-14T22:13:20.600Z breth0 bindings of rtoe-GR_node: 1, of nodes: 1, followers: 2, their rows: 2 right, 1 missing, 1 wrong
    2023-11-14T22:13:20.600Z breth0 172.18.0.4 02:42:ac:12:00:99 moved from 02:42:ac:12:00:01; of 2 followers 0 right, 1 missing, 1 wrong
    2023-11-14T22:13:20.600Z breth0 fd00::4 02:42:ac:12:00:01 gone; 0 of 2 followers keep a row
    ");
    watched.regroup(&[("breth0", group(SOURCE, &[BLUE, GREEN]))], 800);
    let lines = watched.lines(900);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].ends_with("learnt; a node's address, not mirrored"));
}

#[test]
fn rows_that_are_nobodys_binding_are_not_the_sources() {
    let mut watched = Watched::start(&[]);
    watched.put(row(("rtoe-GR_node", 99), "172.18.0.1", MAC, WALL), 5);
    watched.put(row(SOURCE, "172.18.0.2", "none", WALL), 5);
    watched.put(row(("rtoe-GR_foreign", 7), "172.18.0.3", MAC, WALL), 5);
    assert_eq!(watched.lines(100), Vec::<String>::new());
}

#[test]
fn a_follower_that_joins_is_one_line_about_the_bridge() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    let red = ("rtoe-GR_red_node", 4);
    watched.regroup(&[("breth0", group(SOURCE, &[BLUE, GREEN, red]))], 5);
    assert_eq!(
        watched.line(100),
        "breth0 bindings of rtoe-GR_node: 1, followers: 3, their rows: 2 right, 1 missing"
    );
    watched.put(row(red, "172.18.0.1", MAC, WALL), 105);
    assert_eq!(
        watched.line(200),
        "breth0 172.18.0.1 02:42:ac:12:00:01 followers changed; of 3 followers 3 right"
    );
    // The same composition once more is no news.
    watched.regroup(&[("breth0", group(SOURCE, &[BLUE, GREEN, red]))], 205);
    assert_eq!(watched.lines(300), Vec::<String>::new());
}

#[test]
fn another_source_is_told_with_what_it_knows_otherwise() {
    let mut rows = known("172.18.0.1");
    rows.push(row(SOURCE, "172.18.0.2", MAC, WALL));
    rows.push(row(BLUE, "172.18.0.3", MAC, WALL));
    let mut watched = Watched::start(&rows);
    watched.regroup(&[("breth0", group(BLUE, &[GREEN]))], 5);
    let lines = watched.lines(100).join("\n");
    insta::assert_snapshot!(lines, @"
    2023-11-14T22:13:20.005Z breth0 bindings of rtoe-GR_blue_node: 2, followers: 1, their rows: 1 right, 1 missing
    2023-11-14T22:13:20.005Z breth0 172.18.0.2 02:42:ac:12:00:01 gone; 0 of 1 followers keep a row
    2023-11-14T22:13:20.005Z breth0 172.18.0.3 02:42:ac:12:00:01 learnt; of 1 followers 0 right, 1 missing
    ");
}

#[test]
fn a_group_that_goes_is_told_once_and_its_rows_no_more() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    watched.regroup(&[], 5);
    watched.put(row(SOURCE, "172.18.0.1", OTHER_MAC, WALL + 5), 5);
    assert_eq!(
        watched.line(100),
        "breth0 is shared by no gateway routers any more"
    );
    watched.put(row(SOURCE, "172.18.0.1", MAC, WALL + 200), 200);
    assert_eq!(watched.lines(300), Vec::<String>::new());
}

#[test]
fn a_record_has_the_same_as_data() {
    let mut watched = Watched::start(&known("172.18.0.1"));
    watched.put(row(SOURCE, "172.18.0.1", OTHER_MAC, WALL + 5), 5);
    let records = watched.0.take(now(100));
    let record = serde_json::to_value(&records[0]).unwrap();
    assert_eq!(
        record,
        serde_json::json!({
            "time": "2023-11-14T22:13:20.005Z", "bridge": "breth0", "event": "moved",
            "ip": "172.18.0.1", "mac": OTHER_MAC, "former_mac": MAC, "node": false, "origin": "source",
            "followers": {"total": 2, "right": 0, "stale": 0, "missing": 0, "expiring": 0,
                "wrong": 2, "other_datapath": 0},
        })
    );
    watched.regroup(&[], 200);
    let record = serde_json::to_value(&watched.0.take(now(300))[0]).unwrap();
    assert_eq!(record["event"], "group_gone");
}
