//! Nodes' bindings, which the mirror keeps whatever the source says.

mod many;
mod times;

use super::*;
use crate::mirror::Skip;

const NODE: &str = "192.0.2.7";
const NODE_V6: &str = "fd00::7";
const AGE: u64 = 300_000;

fn pins(macs: &[(&str, Mac)]) -> Arc<BTreeMap<IpAddr, Mac>> {
    let macs = macs.iter().map(|(ip, mac)| (ip.parse().unwrap(), *mac));
    Arc::new(macs.collect())
}

impl Bench {
    fn pin(&mut self, macs: &[(&str, Mac)]) {
        let members = self.mirror.group.members.clone().with_pinned(pins(macs));
        self.mirror.set_group(members, [], self.now);
    }

    /// Passes time, with a driver that keeps its deadlines; what was written.
    fn run(&mut self, ms: u64) -> Vec<(Reason, usize)> {
        let end = self.now.at.after(ms);
        let mut written = BTreeMap::new();
        loop {
            for (reason, rows) in self.settle() {
                *written.entry(reason).or_insert(0) += rows;
            }
            if self.now.at >= end {
                return written.into_iter().collect();
            }
            let deadline = self.mirror.next_deadline().unwrap_or(end);
            self.pass(deadline.min(end).since(self.now.at).max(1));
        }
    }

    fn assert_pinned(&self, ip: &str, mac: Mac, followers: &[&str]) {
        for follower in followers {
            let row = self.row(follower, ip);
            assert_eq!(row.and_then(|row| row.mac), Some(mac), "{follower} {ip}");
        }
        assert_eq!(self.mirror.pinned_missing(), 0);
    }
}

fn pinned(followers: &[&str], macs: &[(&str, Mac)]) -> Bench {
    let group = members("src", followers).with_pinned(pins(macs));
    let mut bench = Bench::synced(group);
    let wanted = followers.len() * macs.len();
    assert_eq!(bench.mirror.pinned_missing(), wanted);
    assert_eq!(bench.settle(), [(Reason::Backfill, wanted)]);
    assert_eq!(bench.mirror.pinned_missing(), 0);
    bench
}

#[test]
fn every_follower_gets_a_nodes_binding_and_the_source_none() {
    let bench = pinned(&["a", "b"], &[(NODE, MAC_A), (NODE_V6, MAC_A)]);
    bench.assert_pinned(NODE, MAC_A, &["a", "b"]);
    bench.assert_pinned(NODE_V6, MAC_A, &["a", "b"]);
    assert!(bench.row("src", NODE).is_none());
    assert_eq!(bench.row("a", NODE).unwrap().timestamp, bench.now.wall_ms);
    let counters = bench.mirror.counters();
    assert_eq!(counters.node_writes.backfill, 4);
    assert_eq!(counters.writes.total(), 0);
    let status = bench.mirror.status(bench.now);
    assert_eq!((status.pinned, status.pinned_missing), (2, 0));
}

#[test]
fn a_node_is_pinned_even_where_its_address_is_not_to_be_mirrored_or_there_is_no_source() {
    let mut group = members("src", &["a"]).with_pinned(pins(&[(NODE, MAC_A)]));
    group.node_ips = Arc::new(BTreeSet::from([NODE.parse().unwrap()]));
    group.source = None;
    let mut bench = Bench::synced(group);
    assert_eq!(bench.settle(), [(Reason::Backfill, 1)]);
    bench.assert_pinned(NODE, MAC_A, &["a"]);
}

#[test]
fn what_the_source_says_about_a_node_is_no_truth() {
    let mut bench = pinned(&["a"], &[(NODE, MAC_A)]);
    for mac in [MAC_B, MAC_A] {
        bench.learn("src", NODE, mac);
        assert_eq!(bench.run(1_000), []);
    }
    bench.learn("src", NODE, MAC_B);
    bench.pass(301_000);
    bench.delete("src", NODE);
    assert_eq!(bench.settle(), [(Reason::Refresh, 1)]);
    bench.assert_pinned(NODE, MAC_A, &["a"]);
}

#[test]
fn a_changed_mac_of_a_node_is_urgent_and_begins_with_a_small_transaction() {
    let names: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let followers: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bench = pinned(&followers, &[(NODE, MAC_A)]);
    bench.pin(&[(NODE, MAC_B)]);
    assert_eq!(bench.mirror.pinned_missing(), 200);
    assert_eq!(bench.mirror.status(bench.now).queued.urgent, 200);
    let first = bench.take().unwrap();
    assert_eq!(first.operations.len(), 50);
    assert!(
        first
            .operations
            .iter()
            .all(|it| it.reason == Reason::MacChange)
    );
    bench.commit(&first);
    assert_eq!(bench.mirror.pinned_missing(), 150);
    bench.settle();
    bench.assert_pinned(NODE, MAC_B, &followers);
    assert_eq!(bench.mirror.counters().node_writes.mac_change, 200);
}

#[test]
fn a_new_nodes_binding_corrects_what_followers_had_learnt() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", NODE, MAC_B);
    bench.settle();
    bench.pin(&[(NODE, MAC_A)]);
    assert_eq!(bench.mirror.pinned_missing(), 2);
    assert_eq!(bench.settle(), [(Reason::Correction, 2)]);
    bench.assert_pinned(NODE, MAC_A, &["a", "b"]);
    assert_eq!(bench.row("src", NODE).unwrap().mac, Some(MAC_B));
}

#[test]
fn a_nodes_row_with_another_mac_is_corrected_but_not_in_a_tight_loop() {
    let mut bench = pinned(&["a"], &[(NODE, MAC_A)]);
    for pause in [0, 5_000] {
        bench.put("a", NODE, Some(MAC_B), bench.now.wall_ms);
        assert_eq!(bench.mirror.pinned_missing(), 1);
        if pause > 0 {
            assert_eq!(bench.settle(), []);
            bench.pass(pause);
        }
        assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
        assert_eq!(bench.mirror.pinned_missing(), 0);
    }
}

#[test]
fn a_nodes_row_that_disappears_is_put_back_once_per_cooldown() {
    let mut bench = pinned(&["a", "b"], &[(NODE, MAC_A)]);
    bench.delete("a", NODE);
    assert_eq!(bench.mirror.pinned_missing(), 1);
    assert_eq!(bench.settle(), []);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
    bench.delete("a", NODE);
    bench.pass(140_000);
    assert_eq!(bench.settle(), []);
    bench.pass(10_000);
    assert_eq!(bench.settle()[0], (Reason::PutBack, 1));
    assert_eq!(bench.mirror.counters().node_writes.put_back, 2);
}

#[test]
fn rows_of_a_node_that_goes_are_left_to_age() {
    let mut bench = pinned(&["a", "b"], &[(NODE, MAC_A), (NODE_V6, MAC_A)]);
    bench.pin(&[(NODE_V6, MAC_A)]);
    assert_eq!(bench.mirror.pinned_missing(), 0);
    bench.delete("a", NODE);
    assert_eq!(bench.run(400_000), [(Reason::Refresh, 4)]);
    assert!(bench.row("b", NODE).is_some());
    assert_eq!(bench.mirror.status(bench.now).pinned, 1);
}

#[test]
fn an_address_that_is_no_nodes_any_more_is_mirrored_again_if_the_source_knows_it() {
    let mut bench = pinned(&["a"], &[(NODE, MAC_A)]);
    bench.learn("src", NODE, MAC_B);
    assert_eq!(bench.settle(), []);
    bench.pin(&[]);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
    assert_eq!(bench.row("a", NODE).unwrap().mac, Some(MAC_B));
}

#[test]
fn a_node_that_goes_while_its_rows_wait_is_not_written() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.pin(&[(NODE, MAC_A)]);
    bench.pin(&[]);
    assert_eq!(bench.settle(), []);
    bench.pin(&[(NODE, MAC_A)]);
    bench.settle();
    bench.pin(&[(NODE, MAC_B)]);
    assert_eq!(bench.mirror.lag(bench.now), Some(0));
    bench.pin(&[]);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.mirror.lag(bench.now), None);
    assert!(bench.mirror.is_idle());
}

#[test]
fn a_mac_that_changes_while_the_old_one_is_being_written_is_written_after_it() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.pin(&[(NODE, MAC_A)]);
    let batch = bench.take().unwrap();
    bench.pin(&[(NODE, MAC_B)]);
    assert_eq!(bench.take(), None);
    bench.commit(&batch);
    assert_eq!(bench.settle(), [(Reason::MacChange, 2)]);
    bench.assert_pinned(NODE, MAC_B, &["a", "b"]);
}

#[test]
fn addresses_of_nodes_are_written_canonically_and_compared_as_addresses() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.put("a", "FD00:0::7", Some(MAC_A), bench.now.wall_ms);
    bench.pin(&[(NODE_V6, MAC_A)]);
    assert_eq!(bench.mirror.pinned_missing(), 1);
    let batch = bench.take().unwrap();
    let [operation] = batch.operations.as_slice() else {
        panic!("{batch:?}");
    };
    let RowWrite::Insert { port, ip, .. } = &operation.write else {
        panic!("{batch:?}");
    };
    assert_eq!((&**port, &**ip), ("b", NODE_V6));
}

#[test]
fn a_row_that_blocks_the_place_of_a_nodes_counts_as_missing_until_it_is_gone() {
    let mut bench = Bench::synced(members("src", &["a"]));
    let id = bench.put("a", NODE, Some(MAC_A), bench.now.wall_ms);
    let mut row = bench.rows[0].clone();
    row.datapath = uuid(77);
    bench.mirror.upsert(&row, bench.now);
    bench.pin(&[(NODE, MAC_A)]);
    assert_eq!(bench.settle(), []);
    assert_eq!(bench.mirror.pinned_missing(), 1);
    bench.rows.remove(0);
    bench.mirror.remove(id, bench.now);
    bench.pass(200);
    assert_eq!(bench.settle(), [(Reason::PutBack, 1)]);
    assert_eq!(bench.mirror.pinned_missing(), 0);
}

#[test]
fn followers_that_come_and_go_are_counted() {
    let mut bench = pinned(&["a"], &[(NODE, MAC_A), (NODE_V6, MAC_A)]);
    let group = |followers: &[&str]| {
        members("src", followers).with_pinned(pins(&[(NODE, MAC_A), (NODE_V6, MAC_A)]))
    };
    bench.mirror.set_group(group(&["a", "b"]), [], bench.now);
    assert_eq!(bench.mirror.pinned_missing(), 2);
    assert_eq!(bench.settle(), [(Reason::Backfill, 2)]);
    bench.mirror.set_group(group(&["b"]), [], bench.now);
    assert_eq!(bench.mirror.pinned_missing(), 0);
    // The one that is left becomes the source, and the other a follower with the rows it has.
    let mut swapped = group(&["a"]);
    swapped.source = Some(member("b", Some("300")));
    let known = bench.rows.clone();
    bench.mirror.set_group(swapped, known, bench.now);
    assert_eq!(bench.mirror.pinned_missing(), 0);
    assert_eq!(bench.settle(), []);
}

#[test]
fn a_lost_connection_and_a_new_snapshot_bring_only_what_is_missing() {
    let mut bench = pinned(&["a", "b"], &[(NODE, MAC_A), (NODE_V6, MAC_A)]);
    bench.mirror.disconnected();
    bench.delete("a", NODE);
    bench.pin(&[(NODE, MAC_A), (NODE_V6, MAC_B)]);
    assert_eq!(bench.take(), None);
    bench.mirror.synced(bench.now);
    let reasons = bench.run(1_000);
    assert_eq!(reasons, [(Reason::MacChange, 2), (Reason::PutBack, 1)]);
    bench.assert_pinned(NODE, MAC_A, &["a", "b"]);
    bench.assert_pinned(NODE_V6, MAC_B, &["a", "b"]);
}

#[test]
fn a_row_at_fault_is_read_again_by_its_canonical_text() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.pin(&[(NODE_V6, MAC_A)]);
    let batch = bench.take().unwrap();
    let failure = Failure {
        kind: FailureKind::DuplicateIndex,
        rows: vec![0],
    };
    let at_fault = bench.mirror.failed(batch.id, &failure, bench.now);
    assert_eq!(at_fault[0].ip.as_deref(), Some(NODE_V6));
    bench.put("a", NODE_V6, Some(MAC_B), bench.now.wall_ms);
    assert_eq!(bench.settle(), [(Reason::Correction, 1)]);
}

#[test]
fn what_is_pinned_is_never_skipped_as_a_nodes_address() {
    let bench = pinned(&["a"], &[(NODE, MAC_A)]);
    let view = bench.mirror.view(NODE.parse().unwrap(), bench.now).unwrap();
    assert_eq!((view.truth.mac, view.source_age), (MAC_A, None));
    let other = bench.mirror.view("192.0.2.8".parse().unwrap(), bench.now);
    assert_eq!(other.unwrap_err(), Skip::SourceGone);
}
