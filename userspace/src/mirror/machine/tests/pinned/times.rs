//! Refreshes, and clocks that differ.

use super::*;

#[test]
fn a_nodes_rows_are_refreshed_for_ever_and_none_expires() {
    let mut bench = pinned(&["a", "b"], &[(NODE, MAC_A), (NODE_V6, MAC_B)]);
    let rows = bench.rows.len();
    let mut refreshed = 0;
    for _ in 0..3_600 {
        for (reason, rows) in bench.run(1_000) {
            assert_eq!(reason, Reason::Refresh);
            refreshed += rows;
        }
        for row in &bench.rows {
            let age = bench.now.wall_ms - row.timestamp;
            assert!((0..200_000).contains(&age), "{age} ms: {row:?}");
        }
    }
    assert_eq!(bench.rows.len(), rows);
    // Once in 150 to 187.5 s.
    assert!((4 * 19..=4 * 24).contains(&refreshed), "{refreshed}");
}

#[test]
fn rows_that_do_not_age_are_not_refreshed() {
    let mut group =
        members("src", &["a", "b"]).with_pinned(pins(&[(NODE, MAC_A), (NODE_V6, MAC_A)]));
    group.followers[0].age = age(None);
    group.followers[1].age = age(Some("fd00::/64:0;300"));
    let mut bench = Bench::synced(group);
    bench.settle();
    assert_eq!(bench.run(AGE), [(Reason::Refresh, 1)]);
}

#[test]
fn rows_written_together_are_not_refreshed_together_for_ever() {
    let nodes: Vec<String> = (1..=200).map(|node| format!("192.0.2.{node}")).collect();
    let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    let mut bench = pinned(&["a", "b"], &macs);
    bench.run(140_000);
    let mut largest = 0;
    for _ in 0..60 {
        let written: usize = bench.run(1_000).iter().map(|(_, rows)| rows).sum();
        largest = largest.max(written);
    }
    assert!(largest > 0 && largest <= 40, "{largest}");
}

#[test]
fn refreshes_of_nodes_found_due_at_the_start_are_spread() {
    let nodes: Vec<String> = (1..=30).map(|node| format!("192.0.2.{node}")).collect();
    let macs: Vec<(&str, Mac)> = nodes.iter().map(|node| (&**node, MAC_A)).collect();
    let group = members("src", &["a", "b"]).with_pinned(pins(&macs));
    let mut bench = Bench::new(group);
    for node in &nodes {
        for follower in ["a", "b"] {
            bench.put(follower, node, Some(MAC_A), bench.now.wall_ms - 190_000);
        }
    }
    assert_eq!(bench.mirror.pinned_missing(), 0);
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
fn after_some_minutes_without_an_agent_rows_are_dated_now_and_not_like_those_found() {
    let group = members("src", &["a"]).with_pinned(pins(&[(NODE, MAC_A), (NODE_V6, MAC_A)]));
    let mut bench = Bench::new(group);
    bench.put("a", NODE, Some(MAC_A), bench.now.wall_ms - 290_000);
    bench.put("src", "192.0.2.1", Some(MAC_A), bench.now.wall_ms - 280_000);
    bench.mirror.synced(bench.now);
    bench.run(6_000);
    for ip in [NODE, NODE_V6] {
        let row = bench.row("a", ip).unwrap();
        assert!(row.timestamp >= bench.now.wall_ms - 6_000, "{row:?}");
    }
}

#[test]
fn a_node_whose_clock_is_an_hour_ahead_dates_no_row_in_the_future_and_writes_no_more_for_it() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.now.wall_ms += 3_600_000;
    bench.put("src", "192.0.2.1", Some(MAC_A), WALL);
    bench.pin(&[(NODE, MAC_A)]);
    bench.pass(20);
    bench.settle();
    assert_eq!(bench.row("a", NODE).unwrap().timestamp, WALL + 20);
    let mut refreshed = 0;
    for _ in 0..600 {
        refreshed += bench.run(1_000).iter().map(|(_, rows)| rows).sum::<usize>();
        let server = bench.now.wall_ms - 3_600_000;
        let age = server - bench.row("a", NODE).unwrap().timestamp;
        assert!((0..200_000).contains(&age), "{age}");
    }
    assert!(refreshed <= 20, "{refreshed}");
}

#[test]
fn rows_that_were_dated_by_an_old_row_of_the_source_are_due_once_a_fresh_one_is_seen() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.put("src", "192.0.2.1", Some(MAC_A), bench.now.wall_ms - 250_000);
    bench.pin(&[(NODE, MAC_A)]);
    bench.settle();
    assert_eq!(
        bench.row("a", NODE).unwrap().timestamp,
        bench.now.wall_ms - 250_000
    );
    bench.learn("src", "192.0.2.2", MAC_A);
    let written = bench.run(1_000);
    assert!(written.contains(&(Reason::Refresh, 1)), "{written:?}");
    assert!(bench.row("a", NODE).unwrap().timestamp >= bench.now.wall_ms - 1_000);
}

#[test]
fn a_node_whose_clock_is_an_hour_behind_dates_rows_by_the_sources() {
    let mut bench = Bench::synced(members("src", &["a"]));
    bench.now.wall_ms -= 3_600_000;
    for seconds in 0..3 {
        bench.put("src", "192.0.2.1", Some(MAC_A), WALL + seconds * 1_000);
        bench.pass(1_000);
    }
    bench.pin(&[(NODE, MAC_A)]);
    for _ in 0..600 {
        bench.run(1_000);
        let server = bench.now.wall_ms + 3_600_000;
        let age = server - bench.row("a", NODE).unwrap().timestamp;
        assert!((0..200_000).contains(&age), "{age}");
    }
}
