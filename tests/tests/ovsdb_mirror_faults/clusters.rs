//! The southbound database on three servers, of which the leader goes.

use std::time::Duration;

use neighsteer_tests::{cluster::Cluster, database::DatabaseServer, southbound};

use crate::rig::{Rig, of_followers, relearn};

const FOLLOWERS: usize = 50;

async fn start() -> Rig<Cluster> {
    let cluster = Cluster::start(DatabaseServer::SOUTHBOUND, "OVN_Southbound", 3).unwrap();
    let leader = cluster.leader().unwrap();
    let mut remotes = cluster.remotes();
    // The one that the test itself writes to and reads from comes first.
    remotes.swap(0, leader);
    Rig::on(cluster, remotes, FOLLOWERS).await
}

/// Reads from and writes to whoever leads now.
async fn follow_the_leader(rig: &mut Rig<Cluster>) {
    let leader = rig.server.leader().unwrap();
    let remote = rig.server.members[leader].remote();
    rig.readers = vec![remote.clone()];
    rig.writer = southbound::writer(remote).await.unwrap();
}

async fn learn_many(rig: &Rig<Cluster>, round: u8) {
    let ips: Vec<String> = (0..20).map(|ip| format!("10.0.{round}.{ip}")).collect();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    rig.learn(&ips).await;
}

/// All that the source knows is on every follower.
async fn all_there(rig: &mut Rig<Cluster>, rounds: u8) {
    let rows = rig.converge().await;
    for round in 0..rounds {
        for ip in 0..20 {
            let ip = format!("10.0.{round}.{ip}");
            assert_eq!(of_followers(&rows, FOLLOWERS, &ip).len(), FOLLOWERS, "{ip}");
        }
    }
}

#[tokio::test]
async fn when_the_leader_is_killed_amid_writes_the_next_one_gets_the_rest() {
    let mut rig = start().await;
    learn_many(&rig, 0).await;
    rig.run_for(Duration::from_millis(10)).await;
    let leader = rig.server.leader().unwrap();
    rig.server.members[leader].kill().unwrap();
    rig.run_until("lost connection", |rig| rig.lost > 0).await;
    follow_the_leader(&mut rig).await;
    learn_many(&rig, 1).await;
    rig.write(&[relearn("10.0.0.3", "02:00:00:00:00:33")]).await;
    rig.run_until("connection to the next leader", |rig| rig.status().synced)
        .await;
    all_there(&mut rig, 2).await;
}

#[tokio::test]
async fn when_the_lead_moves_amid_writes_nothing_is_lost_or_written_twice() {
    let mut rig = start().await;
    for round in 0..3 {
        learn_many(&rig, round).await;
        rig.run_for(Duration::from_millis(5)).await;
        let lost = rig.lost;
        rig.server.transfer().unwrap();
        rig.run_until("lost connection", |rig| rig.lost > lost)
            .await;
        follow_the_leader(&mut rig).await;
        rig.run_until("connection to the next leader", |rig| rig.status().synced)
            .await;
        all_there(&mut rig, round + 1).await;
    }
}
