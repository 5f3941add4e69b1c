use super::{Bench, MAC_A, MAC_B, binding, known, target};
use crate::{
    mirror::Millis,
    statics::{Mode, Settings, StaticBindings, Treatment},
};

const FOUR: &str = "172.18.0.4";
const FIVE: &str = "172.18.0.5";

#[test]
fn a_node_that_joins_is_written_to_every_follower_in_one_transaction_a_second_later() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.want(Some(known([
        binding(FOUR, MAC_A),
        binding(FIVE, MAC_B),
        binding("fd00::5", MAC_B),
    ])));
    assert!(bench.take().is_none());
    assert_eq!(bench.machine.next_deadline(), Some(bench.now.after(1_000)));
    bench.run(999);
    assert_eq!(bench.server.transactions, 0);
    bench.run(1);
    assert_eq!((bench.server.transactions, bench.server.written), (1, 4));
    for port in ["rtoe-GR_blue", "rtoe-GR_green"] {
        assert_eq!(bench.mac(port, FIVE), Some(MAC_B));
        assert_eq!(bench.mac(port, "fd00::5"), Some(MAC_B));
    }
    bench.run(100_000);
    assert_eq!(bench.server.transactions, 1);
    assert!(bench.machine.is_idle() && bench.due().is_empty());
}

#[test]
fn a_node_that_flaps_within_the_window_writes_nothing() {
    let with = known([binding(FOUR, MAC_A), binding(FIVE, MAC_B)]);
    let without = known([binding(FOUR, MAC_A)]);
    for (settled, other) in [(&without, &with), (&with, &without)] {
        let mut bench = Bench::settled(settled.clone());
        for wanted in [other, settled, other, settled] {
            bench.want(Some(wanted.clone()));
            bench.run(300);
        }
        bench.run(10_000);
        assert_eq!(bench.server.transactions, 0);
        assert!(bench.machine.is_idle());
    }
}

#[test]
fn a_node_that_never_stops_flapping_is_written_every_five_seconds() {
    let with = known([binding(FIVE, MAC_B)]);
    let mut bench = Bench::settled(known([]));
    for _ in 0..20 {
        for wanted in [&with, &known([]), &with] {
            bench.want(Some(wanted.clone()));
            bench.run(500);
        }
    }
    // Thirty seconds.
    assert!(
        (1..=6).contains(&bench.server.transactions),
        "{}",
        bench.server.transactions
    );
}

#[test]
fn a_node_that_changes_while_it_is_written_waits_for_the_next_window() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench.want(Some(known([binding(FOUR, MAC_B)])));
    bench.now = bench.now.after(1_000);
    let batch = bench.take().unwrap();
    bench.want(Some(known([binding(FOUR, MAC_A)])));
    bench.now = bench.now.after(500);
    assert!(bench.take().is_none());
    bench.server.transact(&batch);
    bench.exchange();
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_B));
    bench.run(1_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_A));
    assert_eq!(bench.server.transactions, 2);
}

#[test]
fn rows_that_are_right_already_are_not_written_at_a_start() {
    let wanted: Vec<_> = (1..=200_u8)
        .map(|host| binding(&format!("172.18.7.{host}"), MAC_A))
        .collect();
    let mut bench = Bench::settled(known(wanted));
    let rows: Vec<_> = bench
        .server
        .rows
        .values()
        .map(|(row, _)| row.clone())
        .collect();
    assert_eq!(rows.len(), 400);
    let mut machine = StaticBindings::new(Settings::default());
    for row in &rows {
        machine.upsert(row, bench.now);
    }
    machine.set_targets(&bench.targets, bench.now);
    machine.set_wanted(bench.wanted.as_ref(), bench.now);
    machine.synced(bench.now);
    bench.now = bench.now.after(60_000);
    assert!(machine.take_batch(bench.now).is_none());
    assert!(machine.is_idle());
    let status = machine.status(bench.now);
    assert_eq!((status.rows, status.ours), (400, 400));
    assert_eq!(status.targets[&Treatment::Follower], 2);
}

#[test]
fn nothing_is_written_before_the_targets_and_all_rows_are_known() {
    let mut machine = StaticBindings::new(Settings::default());
    machine.set_wanted(Some(&known([binding(FOUR, MAC_A)])), Millis(0));
    assert_eq!(machine.next_deadline(), None);
    assert!(machine.take_batch(Millis(60_000)).is_none());
    machine.synced(Millis(60_000));
    assert!(machine.take_batch(Millis(120_000)).is_none());
    let targets = [target("rtoe-GR_blue", Treatment::Follower)];
    machine.set_targets(&targets, Millis(120_000));
    let batch = machine.take_batch(Millis(121_000)).unwrap();
    assert_eq!(batch.operations.len(), 1);
}

#[test]
fn a_huge_change_goes_out_in_chunks_one_after_the_other() {
    let mut bench = Bench::new(Settings {
        chunk_rows: 7,
        ..Settings::default()
    });
    bench.retarget(vec![
        target("rtoe-GR_blue", Treatment::Follower),
        target("rtoe-GR_green", Treatment::Follower),
    ]);
    let ips = (1..=10_u8).map(|host| binding(&format!("172.18.7.{host}"), MAC_A));
    bench.want(Some(known(ips)));
    bench.machine.synced(bench.now);
    bench.now = bench.now.after(1_000);
    let first = bench.take().unwrap();
    assert_eq!(first.operations.len(), 7);
    assert_eq!(first.guards.len(), 2);
    assert!(bench.take().is_none(), "the first one is under way");
    bench.server.transact(&first);
    bench.exchange();
    assert_eq!((bench.server.transactions, bench.server.written), (3, 20));
    assert!(bench.machine.is_idle() && bench.due().is_empty());
}

#[test]
fn a_new_follower_gets_all_rows_and_the_others_are_left_alone() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A), binding(FIVE, MAC_B)]));
    bench.treat("rtoe-GR_red", Treatment::Follower);
    bench.run(1_000);
    assert_eq!((bench.server.transactions, bench.server.written), (1, 2));
    assert_eq!(bench.mac("rtoe-GR_red", FIVE), Some(MAC_B));
}

#[test]
fn what_is_withdrawn_goes_at_once_and_what_is_retained_only_stays_right() {
    let mut bench = Bench::settled(known([binding(FOUR, MAC_A)]));
    bench
        .server
        .put("rtoe-GR_blue", "169.254.0.4", Some(MAC_A), true);
    bench.set_mode(Mode::Retain);
    bench.want(Some(known([binding(FOUR, MAC_B), binding(FIVE, MAC_B)])));
    bench.run(1_000);
    assert_eq!(bench.mac("rtoe-GR_blue", FOUR), Some(MAC_B));
    assert_eq!(bench.mac("rtoe-GR_blue", FIVE), None);
    bench.set_mode(Mode::Withdraw);
    bench.run(0);
    let left: Vec<_> = bench
        .server
        .rows
        .values()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(left, ["169.254.0.4"]);
    assert_eq!(bench.machine.counters().writes.withdrawn, 2);
    bench.set_mode(Mode::Write);
    bench.run(1_000);
    assert_eq!(bench.mac("rtoe-GR_green", FIVE), Some(MAC_B));
}
