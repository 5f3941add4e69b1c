//! Clusters whose leader goes, moves or cannot be reached.

use std::time::Duration;

use neighsteer::ovsdb::{MonitorRequest, Options, Remote, SessionError, Snapshot, UnfitServer};
use neighsteer_tests::{cluster::Cluster, database::DatabaseServer};

use crate::{
    peer::{Peer, bindings},
    writer::{self, Writer},
};

const MEMBERS: usize = 3;

fn start() -> Cluster {
    Cluster::start(DatabaseServer::SOUTHBOUND, "OVN_Southbound", MEMBERS).unwrap()
}

fn options(remotes: Vec<Remote>, leader_only: bool) -> Options {
    Options {
        leader_only,
        dedicated_writer: leader_only,
        probe_interval: Some(Duration::from_secs(1)),
        ..Options::new(
            remotes,
            "OVN_Southbound",
            MonitorRequest::new().table(bindings()),
        )
    }
}

fn is_not_leader(error: &SessionError) -> bool {
    matches!(error, SessionError::Unfit(UnfitServer::NotLeader { .. }))
}

#[tokio::test]
async fn leader_that_is_killed_is_replaced_by_the_next_one() {
    for leader_only in [true, false] {
        let mut cluster = start();
        let mut peer = Peer::synced(options(cluster.remotes(), leader_only)).await;
        let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
        writer.progress().await;
        let former = {
            let leader = cluster.leader().unwrap();
            cluster.members[leader].kill().unwrap();
            leader
        };
        writer.progress().await;
        // The killed member comes back as a follower of the others.
        {
            cluster.members[former].resurrect().unwrap();
            cluster
                .until(former, |status| status.contains("Role: follower"))
                .unwrap();
        }
        writer.progress().await;
        let written = writer.stop().await;
        writer::check(&mut peer, &written, options(cluster.remotes(), true)).await;
        if leader_only {
            assert!(peer.synced > 1);
        }
    }
}

#[tokio::test]
async fn lead_that_moves_is_followed() {
    let cluster = start();
    let mut peer = Peer::synced(options(cluster.remotes(), true)).await;
    let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
    for _ in 0..3 {
        writer.progress().await;
        peer.errors.clear();
        let (former, next) = cluster.transfer().unwrap();
        assert_ne!(former, next);
        let synced = peer.synced;
        peer.until(|peer| peer.synced > synced).await;
        // It left on its own accord: the former leader lives.
        assert!(
            peer.errors.iter().any(|error| is_not_leader(error)),
            "{:?}",
            peer.errors
        );
    }
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, options(cluster.remotes(), true)).await;
}

#[tokio::test]
async fn client_that_does_not_need_the_leader_stays_when_the_lead_moves() {
    let cluster = start();
    let follower = cluster.follower().unwrap();
    let remotes = vec![cluster.members[follower].remote()];
    let mut peer = Peer::synced(options(remotes.clone(), false)).await;
    let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
    writer.progress().await;
    cluster.transfer().unwrap();
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, options(remotes, false)).await;
    assert_eq!(peer.synced, 1, "{:?}", peer.errors);
}

#[tokio::test]
async fn follower_alone_is_waited_at_until_it_leads() {
    let mut cluster = start();
    let follower = cluster.follower().unwrap();
    let remote = cluster.members[follower].remote();
    let mut peer = Peer::connect(options(vec![remote.clone()], true));
    peer.until(|peer| peer.errors.len() >= 3).await;
    for error in &peer.errors {
        assert!(is_not_leader(error), "{error:?}");
        assert!(
            error.to_string().starts_with(&remote.to_string()),
            "{error}"
        );
    }
    // One look is content with it.
    let request = MonitorRequest::new().table(bindings());
    Snapshot::fetch(
        &[remote],
        "OVN_Southbound",
        request,
        Duration::from_secs(20),
    )
    .await
    .unwrap();
    cluster.lead(follower).unwrap();
    peer.until(|peer| peer.synced == 1).await;
    peer.datapath().await;
}

#[tokio::test]
async fn member_without_its_cluster_is_left_for_one_that_has_it() {
    let mut cluster = start();
    let follower = cluster.follower().unwrap();
    let remotes = vec![cluster.members[follower].remote()];
    let mut peer = Peer::synced(options(remotes.clone(), false)).await;
    let datapath = peer.datapath().await;
    // Without a majority it can neither commit nor know what is new.
    {
        for (member, server) in cluster.members.iter_mut().enumerate() {
            if member != follower {
                server.kill().unwrap();
            }
        }
    }
    peer.until(|peer| {
        peer.errors.iter().any(|error| {
            matches!(
                **error,
                SessionError::Unfit(UnfitServer::Disconnected { .. })
            )
        })
    })
    .await;
    {
        for (member, server) in cluster.members.iter_mut().enumerate() {
            if member != follower {
                server.resurrect().unwrap();
            }
        }
    }
    peer.until(|peer| peer.synced == 2).await;
    let mut writer = Writer::start(peer.client.clone(), datapath);
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, options(remotes, false)).await;
}

#[tokio::test]
async fn paused_leader_is_left_after_the_probe() {
    let cluster = start();
    let mut peer = Peer::synced(options(cluster.remotes(), true)).await;
    let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
    writer.progress().await;
    let leader = cluster.leader().unwrap();
    cluster.members[leader].pause().unwrap();
    peer.until(|peer| {
        peer.errors
            .iter()
            .any(|error| matches!(**error, SessionError::Silent { .. }))
    })
    .await;
    writer.progress().await;
    cluster.members[leader].resume().unwrap();
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, options(cluster.remotes(), true)).await;
}
