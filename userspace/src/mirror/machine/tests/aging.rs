//! Timestamps: refreshes, cooldowns, rows that vanish, clocks that differ.

use super::*;

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
fn nothing_is_kept_of_a_neighbour_whose_rows_have_all_gone() {
    let mut bench = Bench::synced(members("src", &["a", "b"]));
    bench.learn("src", "192.0.2.1", MAC_A);
    bench.settle();
    bench.delete("a", "192.0.2.1");
    bench.delete("b", "192.0.2.1");
    assert_eq!(bench.mirror.holds.len(), 2);
    bench.delete("src", "192.0.2.1");
    assert_eq!(bench.mirror.holds.len(), 0);
    assert_eq!(bench.mirror.table.ips().count(), 0);
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
fn followers_that_age_sooner_than_the_source_are_refreshed_as_long_as_it_lives() {
    let mut group = members("src", &["a", "b"]);
    group.source = Some(member("src", None));
    group.followers[1].age = age(None);
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
