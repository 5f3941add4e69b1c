//! Two agents for one chassis.

use neighsteer::ovsdb::LockState;
use neighsteer_tests::static_rows::StaticWriter;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::rig::{LOCK, Rig};

const FOLLOWERS: usize = 10;
const NODES: u16 = 60;

/// Runs static rows in the background, until they are wanted back.
pub fn background(mut statics: StaticWriter) -> (oneshot::Sender<()>, JoinHandle<StaticWriter>) {
    let (stop, mut stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = &mut stopped => return statics,
                turn = statics.turn() => drop(turn.unwrap()),
            }
        }
    });
    (stop, task)
}

#[tokio::test]
async fn of_two_agents_one_writes_and_the_other_takes_over_with_nothing_to_write() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.run_until("lock", |rig| rig.lock() == LockState::Held)
        .await;
    let state = tempfile::tempdir().unwrap();
    let (stop, second) = background(rig.another_writer(&state).await);
    rig.converge().await;
    rig.set_mac(1, 1);
    rig.converge().await;
    stop.send(()).unwrap();
    let second = second.await.unwrap();
    assert_eq!(second.rows.lock_state(), LockState::Waiting);
    assert_eq!(second.rows.status().counters.writes.total(), 0);

    rig.statics = second;
    rig.plan();
    rig.run_until("lock", |rig| rig.lock() == LockState::Held)
        .await;
    let committed = rig.history().of_static_rows().len();
    rig.finish().await;
    assert_eq!(rig.status().counters.writes.total(), 0);
    assert_eq!(rig.history().of_static_rows().len(), committed);
    // And writes what comes.
    rig.set_mac(2, 1);
    rig.finish().await;
    assert_eq!(rig.status().counters.writes.total(), FOLLOWERS as u64);
}

#[tokio::test]
async fn an_agent_whose_lock_is_stolen_amid_writes_commits_nothing_until_it_is_back() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.run_until_committed(1).await;
    let mut thief = std::process::Command::new("ovsdb-client")
        .arg("steal")
        .arg(rig.server.remote().to_string())
        .arg(LOCK)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    rig.run_until("theft", |rig| rig.lock() == LockState::Stolen)
        .await;
    rig.set_mac(1, 1);
    let committed = rig.history().of_static_rows().len();
    rig.run_for(std::time::Duration::from_millis(
        rig.settings.longest_retry_ms,
    ))
    .await;
    assert_eq!(rig.history().of_static_rows().len(), committed);
    thief.kill().unwrap();
    thief.wait().unwrap();
    rig.finish().await;
    assert_eq!(rig.lock(), LockState::Held);
}
