//! Servers that end and hang under static rows.

use std::time::Duration;

use crate::rig::{Rig, node_ip};

const FOLLOWERS: usize = 20;
const NODES: u16 = 100;
/// Transactions for all of them.
const CHUNKS: u64 = 20;

#[tokio::test]
async fn a_server_that_is_killed_amid_writes_and_comes_back_gets_the_rest_and_no_row_twice() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    let mut committed = 0;
    // At other points of the plan each time.
    for chunks in [1, 4, 8] {
        rig.run_until_committed(committed + chunks).await;
        // And of the next transaction, which is under way.
        rig.run_for(Duration::from_millis(chunks)).await;
        rig.server.kill().unwrap();
        let lost = rig.lost;
        rig.run_until("lost connection", |rig| rig.lost > lost)
            .await;
        committed = rig.status().counters.transactions;
        rig.resurrect().await;
    }
    rig.converge().await;
    let committed = rig.history().of_static_rows().len();
    rig.server.kill().unwrap();
    rig.run_until("lost connection", |rig| !rig.status().synced)
        .await;
    rig.resurrect().await;
    rig.run_until("connection", |rig| rig.status().synced).await;
    rig.finish().await;
    assert_eq!(
        rig.history().of_static_rows().len(),
        committed,
        "all was right"
    );
}

#[tokio::test]
async fn a_server_that_hangs_past_the_probe_amid_writes_gets_the_newest_state_when_it_goes_on() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.run_until_committed(CHUNKS / 4).await;
    rig.server.pause().unwrap();
    rig.run_until("probe without an answer", |rig| rig.lost > 0)
        .await;
    // One that was written, one that was not, and one that leaves.
    rig.set_mac(2, 1);
    rig.set_mac(NODES - 1, 1);
    rig.nodes.remove(&node_ip(4));
    rig.plan();
    rig.server.resume().unwrap();
    rig.finish().await;
}

#[tokio::test]
async fn what_nodes_do_while_the_server_is_away_is_written_as_differences_alone() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.converge().await;
    let before = rig.status().counters.writes;
    let committed = rig.history().of_static_rows().len();
    rig.server.kill().unwrap();
    rig.run_until("lost connection", |rig| rig.lost > 0).await;
    for node in 1..=10 {
        rig.set_mac(node, 1);
        rig.run_for(Duration::from_millis(5)).await;
    }
    for node in 3..=10 {
        // As it was.
        rig.set_mac(node, 0);
    }
    rig.nodes.remove(&node_ip(50));
    rig.set_mac(NODES + 1, 0);
    rig.resurrect().await;
    rig.run_until("connection", |rig| rig.status().synced).await;
    rig.finish().await;
    let after = rig.status().counters.writes;
    let followers = FOLLOWERS as u64;
    assert_eq!(after.updated - before.updated, 2 * followers);
    assert_eq!(after.inserted - before.inserted, followers);
    assert_eq!(after.deleted - before.deleted, followers);
    assert_eq!(rig.history().of_static_rows().len(), committed + 1);
}

#[tokio::test]
async fn a_follower_that_leaves_and_comes_back_while_the_server_hangs_is_not_filled_anew() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.converge().await;
    let before = rig.status().counters;
    let target = rig.targets.pop().unwrap();
    rig.plan();
    // Long enough for the monitor to cease to cover it, which the rows are not told yet.
    rig.rows().await;
    rig.server.pause().unwrap();
    rig.targets.push(target);
    rig.plan();
    rig.run_for(Duration::from_millis(3 * rig.settings.gather_ms))
        .await;
    rig.server.resume().unwrap();
    rig.finish().await;
    let after = rig.status().counters;
    assert_eq!(after.errors.duplicate_index, before.errors.duplicate_index);
    assert_eq!(after.writes, before.writes);
}
