//! Locks of a server.

use std::sync::Arc;

use neighsteer::ovsdb::{Lock, LockState, Operation, Options, TransactError};
use neighsteer_tests::database::DatabaseServer;
use tokio::time::timeout;

use crate::peer::{DEADLINE, Peer, southbound};

async fn becomes(lock: &mut Lock, wanted: LockState) {
    let waited = timeout(DEADLINE, async {
        while lock.state() != wanted {
            lock.changed().await;
        }
    });
    if waited.await.is_err() {
        panic!("{:?} instead of {wanted:?}", lock.state());
    }
}

async fn write(peer: &Peer, name: &str) -> Result<(), TransactError> {
    let write = Operation::comment("under the lock");
    let results = peer.client.transact_locked(name, &[write]).await?;
    assert_eq!(results.len(), 1);
    Ok(())
}

#[tokio::test]
async fn second_client_waits_until_the_first_one_goes() {
    for dedicated_writer in [false, true] {
        let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
        let options = || Options {
            dedicated_writer,
            ..southbound(&server)
        };
        let first = Peer::synced(options()).await;
        let mut held = first.client.lock("one").unwrap();
        becomes(&mut held, LockState::Held).await;
        let second = Peer::synced(options()).await;
        let mut waiting = second.client.lock("one").unwrap();
        becomes(&mut waiting, LockState::Waiting).await;
        write(&first, "one").await.unwrap();
        let error = write(&second, "one").await.unwrap_err();
        assert!(
            matches!(error, TransactError::NotLocked { .. }),
            "{error:?}"
        );
        assert!(error.changed_nothing());
        // As a crash would.
        first.driver.abort();
        becomes(&mut waiting, LockState::Held).await;
        write(&second, "one").await.unwrap();
        becomes(&mut held, LockState::Unknown).await;
    }
}

#[tokio::test]
async fn lock_that_is_dropped_goes_to_the_next_and_can_be_wanted_again() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let first = Peer::synced(southbound(&server)).await;
    let second = Peer::synced(southbound(&server)).await;
    let mut held = first.client.lock("one").unwrap();
    becomes(&mut held, LockState::Held).await;
    let mut waiting = second.client.lock("one").unwrap();
    becomes(&mut waiting, LockState::Waiting).await;
    // Another handle of the same client wants the same.
    let also = first.client.lock("one").unwrap();
    assert_eq!(also.state(), LockState::Held);
    drop(also);
    write(&first, "one").await.unwrap();
    drop(held);
    becomes(&mut waiting, LockState::Held).await;
    let mut again = first.client.lock("one").unwrap();
    becomes(&mut again, LockState::Waiting).await;
    drop(waiting);
    becomes(&mut again, LockState::Held).await;
}

#[tokio::test]
async fn lock_is_asked_for_again_after_a_reconnect() {
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let mut lock = peer.client.lock("one").unwrap();
    becomes(&mut lock, LockState::Held).await;
    server.kill().unwrap();
    becomes(&mut lock, LockState::Unknown).await;
    server.resurrect().unwrap();
    peer.until(|peer| peer.synced == 2).await;
    becomes(&mut lock, LockState::Held).await;
    write(&peer, "one").await.unwrap();
}

#[tokio::test]
async fn holder_from_whom_it_is_stolen_commits_nothing_until_it_is_back() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let mut lock = peer.client.lock("one").unwrap();
    becomes(&mut lock, LockState::Held).await;
    let mut thief = std::process::Command::new("ovsdb-client")
        .arg("steal")
        .arg(server.remote().to_string())
        .arg("one")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    becomes(&mut lock, LockState::Stolen).await;
    let error = write(&peer, "one").await.unwrap_err();
    assert!(
        matches!(error, TransactError::NotLocked { .. }),
        "{error:?}"
    );
    thief.kill().unwrap();
    thief.wait().unwrap();
    becomes(&mut lock, LockState::Held).await;
    write(&peer, "one").await.unwrap();
}

#[tokio::test]
async fn transaction_that_fails_under_a_lock_names_its_own_operations() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let mut lock = peer.client.lock("one").unwrap();
    becomes(&mut lock, LockState::Held).await;
    let operations = [Operation::comment("first"), Operation::Abort];
    let error = peer
        .client
        .transact_locked("one", &operations)
        .await
        .unwrap_err();
    let TransactError::Aborted(aborted) = error else {
        panic!("{error:?}");
    };
    assert_eq!(aborted.operations.len(), 2);
    assert_eq!(aborted.cause().unwrap().0, Some(1));
}

#[tokio::test]
async fn name_that_no_lock_can_have_is_refused_at_once() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::connect(southbound(&server));
    let name: Arc<str> = "a-b".into();
    assert!(peer.client.lock(name).is_err());
}
