//! A node whose clock is wrong, and an agent that was away.

use neighsteer::mirror::ClockState;
use neighsteer_tests::{mirroring::follower_port, southbound::now};

use crate::rig::{HOUR, Rig, delete, of_followers, relearn, step};

const FOLLOWERS: usize = 5;

#[tokio::test]
async fn a_node_an_hour_ahead_writes_no_timestamp_of_the_future_and_says_so() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1"]).await;
    rig.converge().await;
    step(&rig, HOUR);
    rig.learn(&["10.0.0.2"]).await;
    let rows = rig.converge().await;
    for row in of_followers(&rows, FOLLOWERS, "10.0.0.2") {
        assert!(row.timestamp <= now(), "{row:?}");
    }
    let ahead = matches!(rig.status().clock, ClockState::Ahead(ms) if (ms - HOUR).abs() < 60_000);
    assert!(ahead, "{:?}", rig.status().clock);
}

#[tokio::test]
async fn a_node_an_hour_behind_writes_rows_that_live_as_long_as_the_sources() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1"]).await;
    rig.converge().await;
    step(&rig, -HOUR);
    rig.learn(&["10.0.0.2"]).await;
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:77")]).await;
    let rows = rig.converge().await;
    for ip in ["10.0.0.1", "10.0.0.2"] {
        let written = of_followers(&rows, FOLLOWERS, ip);
        let source = rows
            .iter()
            .find(|row| row.ip == written[0].ip && !written.contains(row))
            .unwrap();
        for row in written {
            assert!(row.timestamp >= source.timestamp, "{row:?} {source:?}");
        }
    }
    let behind = matches!(rig.status().clock, ClockState::Behind(ms) if (ms - HOUR).abs() < 60_000);
    assert!(behind, "{:?}", rig.status().clock);
}

#[tokio::test]
async fn a_clock_that_steps_there_and_back_rewrites_nothing() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    rig.converge().await;
    let written = rig.status().counters.writes.total();
    for ms in [HOUR, -2 * HOUR, HOUR] {
        step(&rig, ms);
        // More than one periodic comparison.
        let comparisons = std::time::Duration::from_millis(2 * rig.settings.compare_ms + 100);
        rig.run_for(comparisons).await;
    }
    let rows = rig.converge().await;
    assert_eq!(rig.status().counters.writes.total(), written, "{rows:?}");
}

#[tokio::test]
async fn an_agent_that_was_away_for_longer_than_rows_live_makes_up_for_it() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]).await;
    rig.converge().await;
    // Away: the followers' rows expire, one neighbour goes, one changes, one is new.
    let expired = ["10.0.0.1", "10.0.0.2"]
        .into_iter()
        .flat_map(|ip| (1..=FOLLOWERS).map(move |number| delete(&follower_port(number), ip)));
    let mut meanwhile: Vec<_> = expired.collect();
    meanwhile.push(delete("rtoe-GR_node", "10.0.0.1"));
    meanwhile.push(relearn("10.0.0.3", "02:00:00:00:00:33"));
    rig.write(&meanwhile).await;
    rig.learn(&["10.0.0.4"]).await;
    rig.restart_mirror().await;
    let rows = rig.converge().await;
    for (ip, wanted) in [
        ("10.0.0.1", 0),
        ("10.0.0.2", 5),
        ("10.0.0.3", 5),
        ("10.0.0.4", 5),
    ] {
        assert_eq!(of_followers(&rows, FOLLOWERS, ip).len(), wanted, "{ip}");
    }
    let writes = rig.status().counters.writes.total();
    assert_eq!(writes, 15, "only what differs");
}
