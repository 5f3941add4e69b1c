//! What the source learns, and what followers should know of it.

use super::*;

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
