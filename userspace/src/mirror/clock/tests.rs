//! What timestamps prove, and what they do not.

use super::*;

fn now(at: u64, wall_ms: i64) -> Now {
    Now {
        at: Millis(at),
        wall_ms,
    }
}

#[test]
fn without_any_row_the_own_clock_counts() {
    let clock = ServerClock::new(1_000);
    assert_eq!(clock.stamp(0, now(5, 70_000)), 70_000);
    assert_eq!(clock.state(now(5, 70_000)), ClockState::Unknown);
}

#[test]
fn a_clock_that_is_ahead_is_bound_by_the_newest_row_and_the_time_since() {
    let mut clock = ServerClock::new(1_000);
    clock.observe(1_000_000, true, now(50, 4_600_000));
    assert_eq!(clock.stamp(1_000_000, now(150, 4_600_100)), 1_000_100);
    assert_eq!(
        clock.state(now(150, 4_600_100)),
        ClockState::Ahead(3_600_000)
    );
    assert_eq!(clock.latest(now(150, 4_600_100)), 4_600_100);
}

#[test]
fn a_clock_that_is_behind_never_writes_below_the_source() {
    let mut clock = ServerClock::new(1_000);
    clock.observe(4_600_000, true, now(50, 1_000_000));
    assert_eq!(clock.stamp(4_600_000, now(60, 1_000_010)), 4_600_000);
    // One such row may be wrong; a second one is no accident.
    assert_eq!(clock.state(now(60, 1_000_010)), ClockState::Unknown);
    clock.observe(4_605_000, true, now(5_050, 1_005_000));
    assert_eq!(
        clock.state(now(5_060, 1_005_010)),
        ClockState::Behind(3_600_000)
    );
}

#[test]
fn an_old_snapshot_does_not_prove_a_clock_to_be_ahead() {
    let mut clock = ServerClock::new(1_000);
    clock.observe(1_000_000, false, now(0, 1_200_000));
    assert_eq!(clock.state(now(0, 1_200_000)), ClockState::Unknown);
    assert_eq!(clock.earliest(now(0, 1_200_000)), 1_000_000);
    assert_eq!(clock.latest(now(0, 1_200_000)), 1_200_000);
}

#[test]
fn a_timestamp_that_cannot_be_true_is_ignored() {
    let mut clock = ServerClock::new(1_000);
    clock.observe(i64::MAX, true, now(0, 1_000_000));
    clock.observe(-1, true, now(0, 1_000_000));
    assert_eq!(clock.stamp(i64::MAX, now(0, 1_000_000)), 1_000_000);
    assert_eq!(clock.state(now(0, 1_000_000)), ClockState::Unknown);
}

/// A clock that agrees, with a row of the source's every 56 s for some time.
fn agreeing(seconds: u64) -> ServerClock {
    let mut clock = ServerClock::new(1_000);
    for at in (0..=seconds * 1_000).step_by(56_000) {
        let wall = 1_000_000_000 + i64::try_from(at).unwrap();
        clock.observe(wall - 3, true, now(at, wall));
    }
    clock
}

#[test]
fn one_wrong_row_moves_nothing_however_it_is_told_of() {
    const HOUR: i64 = 3_600_000;
    for (seconds, wrong) in [(0, HOUR), (700, HOUR), (700, -HOUR), (1_500, HOUR)] {
        let mut clock = agreeing(seconds);
        let at = seconds * 1_000 + 20;
        let instant = now(at, 1_000_000_000 + i64::try_from(at).unwrap());
        let before = [clock.earliest(instant), clock.latest(instant)];
        let timestamp = instant.wall_ms + wrong;
        // It is learnt, copied to followers, told of again, and found in a later snapshot.
        for live in [true, false, true, false] {
            clock.observe(timestamp, live, instant);
        }
        let after = [clock.earliest(instant), clock.latest(instant)];
        assert_eq!(after, before, "{wrong} after {seconds} s");
        assert_eq!(clock.state(instant), ClockState::Agrees);
        assert_eq!(clock.fresh(instant), before[0]);
    }
}

#[test]
fn one_wrong_row_moves_nothing_in_a_clock_that_is_behind_either() {
    let mut clock = ServerClock::new(1_000);
    for at in [0, 56_000] {
        let wall = 1_000_000 + i64::try_from(at).unwrap();
        clock.observe(wall + 3_600_000, true, now(at, wall));
    }
    let instant = now(56_100, 1_056_100);
    clock.observe(instant.wall_ms + 6_000_000, true, instant);
    assert_eq!(clock.state(instant), ClockState::Behind(3_600_000));
    assert_eq!(clock.fresh(instant), 1_056_100 + 3_600_000);
}

#[test]
fn a_row_without_a_source_is_stamped_with_what_the_servers_clock_reads() {
    let instant = now(100_000, 4_600_000);
    // Nothing known, or only rows that are old.
    let mut clock = ServerClock::new(1_000);
    assert_eq!(clock.fresh(instant), 4_600_000);
    clock.observe(4_300_000, false, now(99_000, 4_599_000));
    assert_eq!(clock.fresh(instant), 4_600_000);
    // A node that is ahead.
    clock.observe(4_500_000, true, now(99_000, 4_599_000));
    assert_eq!(clock.fresh(instant), 4_501_000);
    // That was long ago; the clock may have been set since.
    let later = now(99_000 + 2 * WINDOW_MS, 6_000_000);
    assert_eq!(clock.fresh(later), 6_000_000);
}

#[test]
fn what_agreed_before_the_nodes_clock_was_set_back_does_not_date_rows_ahead_of_it() {
    let clock = agreeing(700);
    let set_back = now(700_100, 1_000_700_100 - 3_600_000);
    assert_eq!(clock.fresh(set_back), set_back.wall_ms);
}

#[test]
fn clocks_that_were_wrong_are_forgotten_after_two_windows() {
    let mut clock = ServerClock::new(1_000);
    for at in [0, 56_000] {
        let wall = 1_000_000 + i64::try_from(at).unwrap();
        clock.observe(wall + 3_600_000, true, now(at, wall));
    }
    for window in 1..=3_u64 {
        let at = window * WINDOW_MS;
        let wall = 1_000_000 + i64::try_from(at).unwrap();
        clock.observe(wall, true, now(at, wall));
    }
    let at = 3 * WINDOW_MS;
    let wall = 1_000_000 + i64::try_from(at).unwrap();
    assert_eq!(clock.state(now(at, wall)), ClockState::Agrees);
}
