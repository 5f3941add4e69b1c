//! The northbound database on three servers, of which the leader goes.

use neighsteer::ovsdb::LockState;
use neighsteer_tests::{cluster::Cluster, database::DatabaseServer, northbound};

use crate::{
    rig::{Rig, settings},
    two::background,
};

const FOLLOWERS: usize = 20;
const NODES: u16 = 50;

async fn start() -> Rig<Cluster> {
    let cluster = Cluster::start(DatabaseServer::NORTHBOUND, "OVN_Northbound", 3).unwrap();
    let leader = cluster.leader().unwrap();
    let mut remotes = cluster.remotes();
    // The one that the test itself writes to and reads from comes first.
    remotes.swap(0, leader);
    Rig::on(cluster, remotes, FOLLOWERS, NODES, settings()).await
}

/// Reads from and writes to whoever leads now.
async fn follow_the_leader(rig: &mut Rig<Cluster>) {
    let leader = rig.server.leader().unwrap();
    let remote = rig.server.members[leader].remote();
    rig.readers = vec![remote.clone()];
    rig.writer = northbound::writer(remote).await.unwrap();
}

#[tokio::test]
async fn when_the_leader_is_killed_amid_writes_one_of_two_agents_gives_the_next_the_rest() {
    let mut rig = start().await;
    rig.plan();
    rig.run_until_committed(2).await;
    let state = tempfile::tempdir().unwrap();
    let (stop, second) = background(rig.another_writer(&state).await);
    let leader = rig.server.leader().unwrap();
    rig.server.members[leader].kill().unwrap();
    rig.run_until("lost connection", |rig| rig.lost > 0).await;
    // Whichever of them comes first has the lock there.
    rig.run_until("answer about the lock", |rig| {
        rig.status().synced && rig.lock() != LockState::Unknown
    })
    .await;
    stop.send(()).unwrap();
    let mut second = second.await.unwrap();
    if rig.lock() == LockState::Waiting {
        std::mem::swap(&mut rig.statics, &mut second);
    }
    rig.run_until("lock", |rig| rig.lock() == LockState::Held)
        .await;
    follow_the_leader(&mut rig).await;
    rig.set_mac(1, 1);
    rig.converge().await;
    assert_ne!(second.rows.lock_state(), LockState::Held);

    // The one that wrote ends; nothing is left for the other but what changes then.
    rig.statics = second;
    rig.nodes
        .insert(crate::rig::node_ip(2), crate::rig::mac(2, 2));
    rig.plan();
    rig.run_until("lock", |rig| rig.lock() == LockState::Held)
        .await;
    let written = rig.status().counters.writes;
    rig.converge().await;
    let now = rig.status().counters.writes;
    assert_eq!(now.inserted, written.inserted);
    assert_eq!(now.updated - written.updated, FOLLOWERS as u64);
}

#[tokio::test]
async fn when_the_lead_moves_amid_writes_nothing_is_lost_or_written_twice() {
    let mut rig = start().await;
    rig.plan();
    for round in 1..=3 {
        let committed = rig.status().counters.transactions;
        rig.run_until_committed(committed + 1).await;
        let lost = rig.lost;
        rig.server.transfer().unwrap();
        rig.run_until("lost connection", |rig| rig.lost > lost)
            .await;
        follow_the_leader(&mut rig).await;
        rig.run_until("connection to the next leader", |rig| rig.status().synced)
            .await;
        rig.set_mac(1, round);
    }
    rig.converge().await;
}
