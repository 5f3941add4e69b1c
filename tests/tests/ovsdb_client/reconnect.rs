//! Servers that go and come back.

use std::time::Duration;

use neighsteer::ovsdb::{Operation, Options, SessionError, TransactError};
use neighsteer_tests::database::DatabaseServer;
use tokio::time::timeout;

use crate::peer::{DEADLINE, Peer, southbound};

#[tokio::test]
async fn restart_of_the_server_shows_only_what_differs() {
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuids = peer.bind(datapath, &["a", "b"]).await;
    peer.until(|peer| peer.rows.len() == 2).await;
    server.kill().unwrap();
    peer.until(|peer| !peer.errors.is_empty()).await;
    let error = peer
        .client
        .transact(&[Operation::comment("nobody hears this")])
        .await
        .unwrap_err();
    assert!(
        matches!(error, TransactError::NotConnected { .. }),
        "{error:?}"
    );
    assert!(error.changed_nothing());
    assert_eq!(peer.rows.len(), 2);
    server.resurrect().unwrap();
    // `take` checks that a row that was known does not come as a new one.
    peer.until(|peer| peer.synced == 2).await;
    assert_eq!(peer.rows.len(), 2);
    let delete = Operation::delete("MAC_Binding").by_uuid(uuids[0]);
    peer.client.transact(&[delete.into()]).await.unwrap();
    peer.until(|peer| peer.rows.len() == 1).await;
}

#[tokio::test]
async fn rows_that_changed_while_away_are_the_only_changes_after_the_return() {
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    // One that stays away for long after the first failure.
    let mut away = Peer::synced(Options {
        probe_interval: Some(Duration::from_millis(300)),
        ..southbound(&server)
    })
    .await;
    let datapath = away.datapath().await;
    let uuids = away.bind(datapath, &["a", "b", "c"]).await;
    away.until(|peer| peer.rows.len() == 3).await;
    server.kill().unwrap();
    away.until(|peer| !peer.errors.is_empty()).await;
    // The one is kept away by a full backlog of nothing: it asks at another place.
    server.resurrect().unwrap();
    let writer = Peer::synced(southbound(&server)).await;
    writer
        .client
        .transact(&[
            Operation::delete("MAC_Binding").by_uuid(uuids[0]).into(),
            Operation::update("MAC_Binding")
                .by_uuid(uuids[1])
                .set("mac", "02:00:00:00:00:02")
                .into(),
        ])
        .await
        .unwrap();
    away.until(|peer| {
        peer.synced == 2
            && peer.rows.len() == 2
            && &*peer.rows[&uuids[1]].string("mac").unwrap() == "02:00:00:00:00:02"
    })
    .await;
}

#[tokio::test]
async fn silent_server_is_given_up_after_two_probe_intervals() {
    for local in [true, false] {
        let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
        let remote = if local {
            server.remote()
        } else {
            server.tcp_remote()
        };
        let mut peer = Peer::synced(Options {
            remotes: vec![remote],
            probe_interval: Some(Duration::from_millis(200)),
            ..southbound(&server)
        })
        .await;
        server.pause().unwrap();
        let client = peer.client.clone();
        let lost = tokio::spawn(async move { client.transact(&[Operation::comment("?")]).await });
        peer.until(|peer| !peer.errors.is_empty()).await;
        assert!(
            matches!(*peer.errors[0], SessionError::Silent { .. }),
            "{:?}",
            peer.errors
        );
        let error = timeout(DEADLINE, lost).await.unwrap().unwrap().unwrap_err();
        assert!(
            matches!(error, TransactError::ConnectionLost { .. }),
            "{error:?}"
        );
        assert!(!error.changed_nothing());
        server.resume().unwrap();
        peer.until(|peer| peer.synced == 2).await;
    }
}

#[tokio::test]
async fn quiet_server_that_answers_echoes_is_kept() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(Options {
        probe_interval: Some(Duration::from_millis(20)),
        ..southbound(&server)
    })
    .await;
    // Fifty probes, and nothing else.
    let quiet = timeout(Duration::from_secs(1), peer.monitor.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn database_that_is_not_served_is_named() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::connect(Options {
        database: "OVN_Northbound".into(),
        ..southbound(&server)
    });
    peer.until(|peer| peer.errors.len() >= 2).await;
    let SessionError::Refused { database, .. } = &*peer.errors[0] else {
        panic!("{:?}", peer.errors);
    };
    assert_eq!(database, "OVN_Northbound");
    assert_eq!(peer.synced, 0);
}

#[tokio::test]
async fn transaction_without_an_answer_times_out() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(Options {
        transact_timeout: Duration::from_millis(100),
        ..southbound(&server)
    })
    .await;
    server.pause().unwrap();
    let error = peer
        .client
        .transact(&[Operation::comment("?")])
        .await
        .unwrap_err();
    assert!(matches!(error, TransactError::TimedOut { .. }), "{error:?}");
    server.resume().unwrap();
}

#[tokio::test]
async fn driver_ends_when_the_last_handle_goes() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let clone = peer.client.clone();
    drop((peer.client, peer.monitor));
    clone
        .transact(&[Operation::comment("still served")])
        .await
        .unwrap();
    drop(clone);
    timeout(DEADLINE, peer.driver).await.unwrap().unwrap();
}

#[tokio::test]
async fn driver_that_is_aborted_ends_the_events_and_the_transactions() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    peer.driver.abort();
    assert!(
        timeout(DEADLINE, peer.monitor.next())
            .await
            .unwrap()
            .is_none()
    );
    let error = peer
        .client
        .transact(&[Operation::comment("?")])
        .await
        .unwrap_err();
    assert!(matches!(error, TransactError::ShutDown), "{error:?}");
}

#[tokio::test]
async fn database_that_moves_is_followed_to_its_new_server() {
    let former = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let next = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&former)).await;
    let there = Peer::synced(southbound(&next)).await;
    peer.bind(peer.datapath().await, &["a", "b"]).await;
    there.bind(there.datapath().await, &["c"]).await;
    peer.until(|peer| peer.rows.len() == 2).await;
    peer.client.set_remotes(vec![next.remote()]);
    peer.until(|peer| peer.rows.len() == 1).await;
    assert_eq!(peer.texts("logical_port"), "c");
    assert!(matches!(*peer.errors[0], SessionError::RemotesChanged));
    // The same again is no news.
    peer.client.set_remotes(vec![next.remote()]);
    peer.bind(peer.datapath().await, &["d"]).await;
    peer.until(|peer| peer.rows.len() == 2).await;
    assert_eq!((peer.synced, peer.errors.len()), (2, 1));
}

#[tokio::test]
async fn database_that_moves_while_no_server_answers_is_followed_at_once() {
    let next = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    // Takes connections, and says nothing.
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut peer = Peer::connect(Options {
        remotes: vec![format!("tcp:127.0.0.1:{port}").parse().unwrap()],
        probe_interval: Some(Duration::ZERO),
        ..southbound(&next)
    });
    let _silence = timeout(DEADLINE, silent.accept()).await.unwrap().unwrap();
    peer.client.set_remotes(vec![next.remote()]);
    peer.until(|peer| peer.synced == 1).await;
    assert!(peer.errors.is_empty(), "{:?}", peer.errors);
}
