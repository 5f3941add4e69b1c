//! The mirror's behaviour, event by event.

use std::{collections::BTreeSet, sync::Arc};

use super::*;
use crate::{
    ids::Mac,
    mirror::{
        AgeThresholds, Batch, BindingRow, Failure, FailureKind, GroupMembers, Member, RowWrite,
    },
    ovsdb::Uuid,
};

const WALL: i64 = 1_700_000_000_000;
const MAC_A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
const MAC_B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

fn member(port: &str, age_ms: Option<u64>) -> Member {
    Member {
        port: port.into(),
        datapath: datapath(port),
        age: AgeThresholds::uniform(age_ms),
    }
}

fn datapath(port: &str) -> Uuid {
    uuid(port.bytes().map(u128::from).sum::<u128>() << 64)
}

fn members(source: &str, followers: &[&str]) -> GroupMembers {
    GroupMembers {
        source: Some(member(source, Some(300_000))),
        followers: followers
            .iter()
            .map(|port| member(port, Some(300_000)))
            .collect(),
        node_ips: Arc::default(),
    }
}

/// A mirror with its clock and the rows of an obedient server.
struct Bench {
    mirror: Mirror,
    now: Now,
    rows: Vec<BindingRow>,
    next: u128,
}

impl Bench {
    fn new(members: GroupMembers) -> Self {
        let mut bench = Self {
            mirror: Mirror::new(Settings::default()),
            now: Now {
                at: Millis(1_000),
                wall_ms: WALL,
            },
            rows: Vec::new(),
            next: 1,
        };
        bench.mirror.set_group(members, [], bench.now);
        bench
    }

    fn synced(members: GroupMembers) -> Self {
        let mut bench = Self::new(members);
        bench.mirror.synced(bench.now);
        bench
    }

    fn pass(&mut self, ms: u64) {
        self.now.at = self.now.at.after(ms);
        self.now.wall_ms += i64::try_from(ms).unwrap();
    }

    fn put(&mut self, port: &str, ip: &str, mac: Option<Mac>, timestamp: i64) -> Uuid {
        let known = self
            .rows
            .iter()
            .position(|row| &*row.port == port && &*row.ip_text == ip);
        let row = BindingRow {
            uuid: known.map_or(uuid(self.next), |index| self.rows[index].uuid),
            port: port.into(),
            datapath: datapath(port),
            ip: ip.parse().unwrap(),
            ip_text: ip.into(),
            mac,
            timestamp,
        };
        match known {
            Some(index) => self.rows[index] = row.clone(),
            None => {
                self.next += 1;
                self.rows.push(row.clone());
            }
        }
        self.mirror.upsert(&row, self.now);
        row.uuid
    }

    /// The source learns a neighbour now.
    fn learn(&mut self, port: &str, ip: &str, mac: Mac) -> Uuid {
        self.put(port, ip, Some(mac), self.now.wall_ms)
    }

    fn delete(&mut self, port: &str, ip: &str) {
        let index = self.find(port, ip).unwrap();
        let row = self.rows.remove(index);
        self.mirror.remove(row.uuid, self.now);
    }

    fn find(&self, port: &str, ip: &str) -> Option<usize> {
        let ip: IpAddr = ip.parse().unwrap();
        self.rows
            .iter()
            .position(|row| &*row.port == port && row.ip == ip)
    }

    fn row(&self, port: &str, ip: &str) -> Option<&BindingRow> {
        self.find(port, ip).map(|index| &self.rows[index])
    }

    fn take(&mut self) -> Option<Batch> {
        self.mirror.take_batch(self.now)
    }

    fn commit(&mut self, batch: &Batch) {
        for operation in &batch.operations {
            match &operation.write {
                RowWrite::Insert {
                    port,
                    ip,
                    mac,
                    timestamp,
                    ..
                } => {
                    assert!(self.row(port, ip).is_none(), "{port} {ip} twice");
                    self.put(&port.clone(), &ip.clone(), Some(*mac), *timestamp);
                }
                RowWrite::Update {
                    uuid,
                    mac,
                    timestamp,
                } => {
                    let row = self.rows.iter().find(|row| row.uuid == *uuid).unwrap();
                    let (port, ip) = (row.port.clone(), row.ip_text.clone());
                    let mac = mac.or(row.mac);
                    self.put(&port, &ip, mac, *timestamp);
                }
            }
        }
        self.mirror.committed(batch.id, &[], self.now);
    }

    /// Takes and commits all there is; how many rows, by reason.
    fn settle(&mut self) -> Vec<(Reason, usize)> {
        let mut written = BTreeMap::new();
        while let Some(batch) = self.take() {
            for operation in &batch.operations {
                *written.entry(operation.reason).or_insert(0) += 1;
            }
            self.commit(&batch);
        }
        written.into_iter().collect()
    }

    fn assert_mirrored(&self, ip: &str, source: &str, followers: &[&str]) {
        let truth = self.row(source, ip).unwrap();
        for follower in followers {
            let row = self
                .row(follower, ip)
                .unwrap_or_else(|| panic!("{follower} lacks {ip}"));
            assert_eq!(row.mac, truth.mac, "{follower}");
            assert!(row.timestamp >= truth.timestamp, "{follower}");
        }
    }
}

#[test]
fn a_new_binding_reaches_all_followers_with_a_fresh_timestamp() {
    let mut bench = Bench::synced(members("src", &["a", "b", "c"]));
    for ip in ["192.0.2.1", "fe80::1"] {
        bench.learn("src", ip, MAC_A);
        bench.pass(7);
        assert_eq!(bench.settle(), [(Reason::NewBinding, 3)]);
        bench.assert_mirrored(ip, "src", &["a", "b", "c"]);
    }
    assert_eq!(bench.mirror.counters().latency.last(), 7);
    assert_eq!(bench.mirror.lag(bench.now), None);
}

#[test]
fn nothing_is_planned_before_the_snapshot_is_complete() {
    let mut bench = Bench::new(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.take(), None);
    assert_eq!(bench.mirror.next_deadline(), None);
    bench.mirror.synced(bench.now);
    assert_eq!(bench.settle(), [(Reason::Backfill, 1)]);
}

#[test]
fn a_second_plan_is_empty_while_the_first_is_in_flight_and_after() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    assert_eq!(bench.take(), None);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.take(), None);
    bench.commit(&batch);
    assert_eq!(bench.take(), None);
}

#[test]
fn a_changed_mac_reaches_all_followers_at_once_even_within_the_cooldown() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(5);
    bench.learn("src", "192.0.2.1", MAC_B);
    assert_eq!(bench.settle(), [(Reason::MacChange, 2)]);
    bench.assert_mirrored("192.0.2.1", "src", &["a", "b"]);
}

#[test]
fn a_mac_that_changes_while_the_old_one_is_being_written_is_written_after() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    bench.learn("src", "192.0.2.1", MAC_B);
    assert_eq!(bench.take(), None);
    bench.commit(&batch);
    assert_eq!(bench.settle(), [(Reason::MacChange, 2)]);
    bench.assert_mirrored("192.0.2.1", "src", &["a", "b"]);
}

#[test]
fn a_refresh_of_the_source_is_coalesced_and_skipped_within_the_cooldown() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(56_000);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(1_000);
    assert_eq!(bench.settle(), []);
    // The source's row lives longer than the followers' now: they get their refresh after the
    // cooldown, though nothing more happens.
    let due = bench.mirror.wakes.next().unwrap();
    assert_eq!(due, Millis(1_000 + 150_000));
    bench.pass(due.since(bench.now.at));
    assert_eq!(bench.settle(), [(Reason::Refresh, 2)]);
    bench.assert_mirrored("192.0.2.1", "src", &["a", "b"]);
    bench.pass(200_000);
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_refresh_after_the_cooldown_is_written_within_the_coalescing_window() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(160_000);
    assert_eq!(bench.settle(), []);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), []);
    bench.pass(100);
    assert_eq!(bench.settle(), [(Reason::Refresh, 2)]);
}

#[test]
fn a_refresh_of_the_source_fills_the_followers_that_lack_the_row() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    // The first time it is put back, the second time only a sign of life brings it back soon.
    for expected in [Reason::PutBack, Reason::Fill] {
        bench.pass(1_000);
        bench.delete("b", "192.0.2.1");
        if expected == Reason::Fill {
            bench.pass(10_000);
            assert_eq!(bench.settle(), []);
            bench.learn("src", "192.0.2.1", MAC_A);
        }
        bench.pass(200);
        assert_eq!(bench.settle(), [(expected, 1)]);
    }
}

#[test]
fn a_vanished_follower_row_is_put_back_once_per_cooldown() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.delete("a", "192.0.2.1");
    assert_eq!(bench.settle(), [], "time to learn what else goes away");
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
    bench.delete("a", "192.0.2.1");
    bench.pass(149_000);
    assert_eq!(bench.settle(), []);
    bench.pass(1_000);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
}

#[test]
fn a_follower_row_is_not_put_back_when_the_source_or_the_follower_goes_away_too() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.delete("a", "192.0.2.1");
    bench
        .mirror
        .set_group(members("src", &["b"]), [], bench.now);
    bench.pass(1_000);
    assert_eq!(bench.settle(), []);
    bench.delete("b", "192.0.2.1");
    bench.delete("src", "192.0.2.1");
    bench.pass(1_000);
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_follower_row_that_aged_with_its_source_is_not_revived() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(301_000);
    bench.delete("a", "192.0.2.1");
    bench.pass(60_000);
    assert_eq!(bench.settle(), []);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::Fill, 1)]);
}

#[test]
fn a_source_row_that_goes_away_changes_nothing() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.delete("src", "192.0.2.1");
    bench.pass(500_000);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.rows.len(), 2);
    // It resolves again: the rows are right, but too old by now.
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), [(Reason::Refresh, 2)]);
}

#[test]
fn a_new_follower_gets_all_current_bindings_at_once() {
    let mut bench = Bench::synced(members("src", &["a"]));
    for ip in ["192.0.2.1", "192.0.2.2", "fd00::3"] {
        bench.learn("src", ip, MAC_A);
    }
    bench.settle();
    bench
        .mirror
        .set_group(members("src", &["a", "b"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::Backfill, 3)]);
}

#[test]
fn a_new_followers_own_rows_are_known_from_the_driver() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.learn("src", "192.0.2.2", MAC_A);
    bench.put("b", "192.0.2.1", Some(MAC_A), WALL);
    bench.put("b", "192.0.2.2", Some(MAC_B), WALL);
    bench.settle();
    assert_eq!(bench.mirror.counters().bad_rows.other_port, 2);
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("src", &["a", "b"]), known, bench.now);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn a_removed_follower_is_forgotten_and_its_waiting_rows_with_it() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench
        .mirror
        .set_group(members("src", &["a"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
    assert!(bench.row("b", "192.0.2.1").is_none());
    assert_eq!(bench.mirror.lag(bench.now), None);
    assert_eq!(bench.mirror.status(bench.now).followers, 1);
}

#[test]
fn a_new_sources_rows_are_the_truth_and_nobodys_rows_are_deleted() {
    let mut bench = Bench::synced(members("a", &["b", "c"]));
    bench.learn("a", "192.0.2.1", MAC_A);
    bench.settle();
    bench.put("b", "192.0.2.2", Some(MAC_B), bench.now.wall_ms);
    bench.put("b", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    // `a` goes; `b` takes over with what it has.
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("b", &["c"]), known, bench.now);
    bench.delete("a", "192.0.2.1");
    assert_eq!(bench.settle(), [(Reason::Fill, 1), (Reason::Correction, 1)]);
    bench.assert_mirrored("192.0.2.1", "b", &["c"]);
    bench.assert_mirrored("192.0.2.2", "b", &["c"]);
}

#[test]
fn a_binding_lost_with_the_old_source_heals_once_the_new_one_learns_it() {
    let mut bench = Bench::synced(members("a", &["b", "c"]));
    bench.learn("a", "192.0.2.1", MAC_A);
    let known = bench.rows.clone();
    bench
        .mirror
        .set_group(members("b", &["c"]), known, bench.now);
    bench.delete("a", "192.0.2.1");
    assert_eq!(bench.settle(), []);
    bench.learn("b", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
}

#[test]
fn a_followers_wrong_mac_is_corrected_but_not_in_a_tight_loop() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.put("a", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
    bench.put("a", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    assert_eq!(bench.settle(), []);
    bench.pass(5_000);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn a_followers_row_with_an_unreadable_mac_is_corrected_and_not_inserted_again() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.put("a", "192.0.2.1", None, bench.now.wall_ms);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), [(Reason::MacChange, 1)]);
}

#[test]
fn a_source_row_with_an_unreadable_mac_tells_nothing() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.put("src", "192.0.2.1", None, bench.now.wall_ms);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.mirror.counters().bad_rows.bad_mac, 1);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
}

#[test]
fn addresses_are_compared_as_addresses_and_written_as_the_source_spells_them() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.put("a", "fd00::1", Some(MAC_A), bench.now.wall_ms);
    bench.learn("src", "FD00:0::1", MAC_A);
    let batch = bench.take().unwrap();
    assert_eq!(batch.operations.len(), 1);
    let RowWrite::Insert { port, ip, .. } = &batch.operations[0].write else {
        panic!("{batch:?}");
    };
    assert_eq!((&**port, &**ip), ("b", "FD00:0::1"));
}

#[test]
fn both_rows_of_a_follower_that_spell_one_address_are_corrected() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.put("a", "fd00::1", Some(MAC_B), bench.now.wall_ms);
    bench.put("a", "fd00:0::1", Some(MAC_B), bench.now.wall_ms);
    bench.learn("src", "fd00::1", MAC_A);
    while !bench.settle().is_empty() {}
    bench.pass(5_000);
    while !bench.settle().is_empty() {}
    for row in &bench.rows {
        assert_eq!(row.mac, Some(MAC_A), "{}", row.ip_text);
    }
}

#[test]
fn node_addresses_are_left_alone() {
    let mut group = members("src", &["a"]);
    group.node_ips = Arc::new(BTreeSet::from(["192.0.2.1".parse().unwrap()]));
    let mut bench = Bench::synced(group);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.mirror.counters().skips.node_ip, 1);
    bench
        .mirror
        .set_group(members("src", &["a"]), [], bench.now);
    assert_eq!(bench.settle(), [(Reason::Fill, 1)]);
}

#[test]
fn a_row_of_a_former_router_with_the_same_port_is_left_to_be_removed() {
    let mut bench = Bench::synced(members("src", &["a"]));
    let id = bench.put("a", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    let mut row = bench.rows[0].clone();
    row.datapath = uuid(77);
    bench.mirror.upsert(&row, bench.now);
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.settle(), []);
    bench.rows.remove(0);
    bench.mirror.remove(id, bench.now);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
}

#[test]
fn a_router_made_anew_under_the_same_name_is_a_new_follower() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.rows.retain(|row| &*row.port == "src");
    let mut group = members("src", &["a"]);
    group.followers[0].datapath = uuid(77);
    bench.mirror.set_group(group, bench.rows.clone(), bench.now);
    let batch = bench.take().unwrap();
    let RowWrite::Insert { datapath, .. } = &batch.operations[0].write else {
        panic!("{batch:?}");
    };
    assert_eq!(*datapath, uuid(77));
}

#[test]
fn followers_that_age_sooner_than_the_source_are_refreshed_as_long_as_it_lives() {
    let mut group = members("src", &["a", "b"]);
    group.source = Some(member("src", None));
    group.followers[1].age = AgeThresholds::uniform(None);
    let mut bench = Bench::synced(group);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    for _ in 0..5 {
        bench.pass(149_999);
        assert_eq!(bench.settle(), []);
        bench.pass(1);
        assert_eq!(bench.settle(), [(Reason::Refresh, 1)]);
    }
}

#[test]
fn the_first_chunk_is_small_and_the_asker_is_in_it() {
    let names: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.mirror.asked("f190", bench.now);
    bench.learn("src", "192.0.2.1", MAC_A);
    let first = bench.take().unwrap();
    assert_eq!(first.operations.len(), 50);
    assert_eq!(&*first.operations[0].port, "f190");
    let second = bench.take().unwrap();
    assert_eq!(second.operations.len(), 150);
    bench.commit(&first);
    bench.commit(&second);
    // The next one starts small again.
    bench.learn("src", "192.0.2.2", MAC_A);
    assert_eq!(bench.take().unwrap().operations.len(), 50);
}

#[test]
fn what_is_urgent_goes_before_what_is_not() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.pass(160_000);
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(100);
    bench.learn("src", "192.0.2.2", MAC_A);
    let reasons: Vec<Reason> = std::iter::from_fn(|| bench.take())
        .flat_map(|batch| batch.operations)
        .map(|operation| operation.reason)
        .collect();
    assert_eq!(reasons, [Reason::NewBinding, Reason::Refresh]);
}

#[test]
fn no_more_transactions_are_under_way_than_allowed() {
    let names: Vec<String> = (0..3_000).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    let taken: Vec<usize> = std::iter::from_fn(|| bench.take())
        .map(|batch| batch.operations.len())
        .collect();
    assert_eq!(taken, [50, 1_000]);
    let deadline = bench.mirror.next_deadline();
    assert!(deadline > Some(bench.now.at), "only an outcome helps now");
}

#[test]
fn a_row_at_fault_costs_only_itself_and_is_tried_again_ever_more_rarely() {
    let mut bench = Bench::synced(members("src", &["a", "b", "c"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    let failure = Failure {
        kind: FailureKind::DuplicateIndex,
        rows: vec![1],
    };
    let at_fault = bench.mirror.failed(batch.id, &failure, bench.now);
    assert_eq!(at_fault.len(), 1);
    assert_eq!(&*at_fault[0].port, "b");
    assert_eq!(bench.settle(), [(Reason::NewBinding, 2)]);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let wake = bench.mirror.wakes.next().unwrap();
        pauses.push(wake.since(bench.now.at));
        bench.pass(wake.since(bench.now.at));
        let batch = bench.take().unwrap();
        assert_eq!(batch.operations.len(), 1);
        bench.mirror.failed(batch.id, &failure, bench.now);
    }
    assert!(pauses.is_sorted_by(|a, b| a < b), "{pauses:?}");
    assert_eq!(bench.mirror.counters().errors.rows_at_fault, 6);
    // The row turns up after all, with another MAC.
    bench.put("b", "192.0.2.1", Some(MAC_B), bench.now.wall_ms);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn a_row_at_fault_that_nobody_names_is_found_by_halving() {
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    let unnamed = Failure {
        kind: FailureKind::Constraint,
        rows: Vec::new(),
    };
    let mut transactions = 0;
    while let Some(batch) = bench.take() {
        transactions += 1;
        if batch
            .operations
            .iter()
            .any(|operation| &*operation.port == "f7")
        {
            bench.mirror.failed(batch.id, &unnamed, bench.now);
        } else {
            bench.commit(&batch);
        }
    }
    assert!(transactions <= 13, "{transactions}");
    assert_eq!(bench.mirror.counters().writes.new_binding, 39);
    assert_eq!(bench.mirror.counters().errors.rows_at_fault, 1);
    assert!(bench.mirror.is_idle());
}

#[test]
fn an_unavailable_server_is_left_alone_for_a_while() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    let failure = Failure {
        kind: FailureKind::Unavailable,
        rows: Vec::new(),
    };
    bench.mirror.failed(batch.id, &failure, bench.now);
    assert_eq!(bench.take(), None);
    let deadline = bench.mirror.next_deadline().unwrap();
    assert!(deadline > bench.now.at);
    bench.pass(deadline.since(bench.now.at));
    assert_eq!(bench.settle(), [(Reason::NewBinding, 2)]);
}

#[test]
fn an_update_that_met_no_row_becomes_an_insert() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.learn("src", "192.0.2.1", MAC_B);
    let batch = bench.take().unwrap();
    bench.delete("a", "192.0.2.1");
    bench.mirror.committed(batch.id, &[0], bench.now);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
    assert_eq!(bench.mirror.counters().errors.rows_missed, 1);
}

#[test]
fn after_a_lost_connection_only_what_is_missing_is_written() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    let batch = bench.take().unwrap();
    bench.mirror.disconnected(bench.now);
    assert_eq!(bench.take(), None);
    // One of the two rows had made it.
    bench.put("a", "192.0.2.1", Some(MAC_A), bench.now.wall_ms);
    bench.mirror.synced(bench.now);
    // An outcome that comes too late is nobody's.
    bench.mirror.committed(batch.id, &[], bench.now);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
    bench.assert_mirrored("192.0.2.1", "src", &["a", "b"]);
    assert_eq!(bench.mirror.counters().errors.unknown_outcome, 1);
}

#[test]
fn refreshes_found_due_at_the_start_are_spread() {
    let mut bench = Bench::new(members("src", &["a", "b"]));
    for number in 1..=30 {
        let ip = format!("192.0.2.{number}");
        bench.learn("src", &ip, MAC_A);
        for follower in ["a", "b"] {
            bench.put(follower, &ip, Some(MAC_A), bench.now.wall_ms - 160_000);
        }
    }
    bench.mirror.synced(bench.now);
    let mut largest = 0;
    let mut all = 0;
    for _ in 0..31 {
        let written: usize = bench.settle().iter().map(|(_, rows)| rows).sum();
        largest = largest.max(written);
        all += written;
        bench.pass(1_000);
    }
    assert_eq!(all, 60);
    assert!(largest <= 4, "{largest}");
}

#[test]
fn a_clock_that_is_an_hour_ahead_never_writes_the_future() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.now.wall_ms += 3_600_000;
    bench.put("src", "192.0.2.1", Some(MAC_A), WALL);
    bench.pass(20);
    bench.settle();
    assert_eq!(bench.row("a", "192.0.2.1").unwrap().timestamp, WALL + 20);
    assert_eq!(
        bench.mirror.status(bench.now).clock,
        ClockState::Ahead(3_600_000)
    );
    bench.pass(60_000);
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_clock_that_is_an_hour_behind_does_not_write_rows_that_expire_at_once() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.now.wall_ms -= 3_600_000;
    bench.put("src", "192.0.2.1", Some(MAC_A), WALL);
    bench.settle();
    assert_eq!(bench.row("a", "192.0.2.1").unwrap().timestamp, WALL);
    bench.pass(160_000);
    bench.put("src", "192.0.2.1", Some(MAC_A), WALL + 160_000);
    bench.pass(100);
    assert_eq!(bench.settle(), [(Reason::Refresh, 1)]);
    assert!(bench.mirror.status(bench.now).clock.differs());
}

#[test]
fn a_source_row_without_a_timestamp_is_mirrored_all_the_same() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.put("src", "192.0.2.1", Some(MAC_A), 0);
    assert_eq!(bench.settle(), [(Reason::NewBinding, 1)]);
    assert_eq!(
        bench.row("a", "192.0.2.1").unwrap().timestamp,
        bench.now.wall_ms
    );
    bench.pass(400_000);
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_comparison_corrects_what_no_event_told() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    // As if a change had been lost.
    bench
        .mirror
        .table
        .remove(bench.row("a", "192.0.2.1").unwrap().uuid);
    bench.rows.pop();
    bench.pass(59_999);
    assert_eq!(bench.settle(), []);
    bench.pass(1);
    assert_eq!(bench.settle(), [(Reason::Drift, 1)]);
}

#[test]
fn lag_is_the_age_of_the_oldest_unserved_source_row() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.pass(30);
    bench.learn("src", "192.0.2.2", MAC_A);
    assert_eq!(bench.mirror.lag(bench.now), Some(30));
    bench.settle();
    assert_eq!(bench.mirror.lag(bench.now), None);
    assert_eq!(bench.mirror.counters().latency.count(), 2);
}

#[test]
fn one_binding_for_five_hundred_followers_is_planned_in_a_moment() {
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = Bench::synced(members("src", &followers));
    bench.learn("src", "192.0.2.1", MAC_A);
    assert_eq!(bench.mirror.status(bench.now).queued.urgent, 500);
    let json = serde_json::to_value(bench.mirror.status(bench.now)).unwrap();
    assert_eq!(json["queued"]["urgent"], 500);
    bench.settle();
    assert_eq!(bench.mirror.status(bench.now).rows, 501);
}
