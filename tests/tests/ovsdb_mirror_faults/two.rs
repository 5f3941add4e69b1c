//! Two agents for one chassis.

use neighsteer::ovsdb::LockState;
use neighsteer_tests::mirroring::{BRIDGE, Mirroring};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::rig::{Rig, of_followers, relearn};

const FOLLOWERS: usize = 30;
const LOCK: &str = "neighsteer_mirror_test";

/// Runs a mirror in the background, until it is wanted back.
fn background(mut mirroring: Mirroring) -> (oneshot::Sender<()>, JoinHandle<Mirroring>) {
    let (stop, mut stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = &mut stopped => return mirroring,
                turn = mirroring.turn() => drop(turn.unwrap()),
            }
        }
    });
    (stop, task)
}

fn written(mirroring: &Mirroring) -> u64 {
    mirroring.mirrors.status()[BRIDGE].counters.writes.total()
}

#[tokio::test]
async fn of_two_agents_one_writes_and_the_other_takes_over_when_it_is_gone() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.mirroring = rig.another_mirror(Some(LOCK)).await;
    rig.run_until("lock", |rig| {
        rig.mirroring.mirrors.lock_state() == Some(LockState::Held)
    })
    .await;
    let (stop, second) = background(rig.another_mirror(Some(LOCK)).await);
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    rig.converge().await;
    stop.send(()).unwrap();
    let second = second.await.unwrap();
    assert_eq!(second.mirrors.lock_state(), Some(LockState::Waiting));
    assert_eq!(written(&second), 0);
    assert_eq!(written(&rig.mirroring), 2 * FOLLOWERS as u64);

    // The first one is killed with work to do.
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:11")]).await;
    rig.mirroring = second;
    rig.learn(&["10.0.0.3"]).await;
    rig.run_until("lock", |rig| {
        rig.mirroring.mirrors.lock_state() == Some(LockState::Held)
    })
    .await;
    let rows = rig.converge().await;
    for row in of_followers(&rows, FOLLOWERS, "10.0.0.1") {
        assert_eq!(row.mac.unwrap().to_string(), "02:00:00:00:00:11");
    }
    assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.0.3").len(), FOLLOWERS);
}

#[tokio::test]
async fn two_agents_that_know_nothing_of_each_other_end_with_the_same_rows() {
    let mut rig = Rig::start(FOLLOWERS).await;
    let (stop, second) = background(rig.another_mirror(None).await);
    for round in 0..10 {
        let ips = [format!("10.0.1.{round}"), format!("10.0.2.{round}")];
        rig.learn(&[&ips[0], &ips[1]]).await;
        let mac = format!("02:00:00:00:02:{round:02x}");
        rig.write(&[relearn(&ips[0], &mac)]).await;
    }
    let rows = rig.converge().await;
    stop.send(()).unwrap();
    second.await.unwrap();
    assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.1.9").len(), FOLLOWERS);
    // And then leave each other alone.
    let written = rig.status().counters.writes.total();
    let (stop, second) = background(rig.another_mirror(None).await);
    let comparisons = std::time::Duration::from_millis(2 * rig.settings.compare_ms + 100);
    rig.run_for(comparisons).await;
    stop.send(()).unwrap();
    let second = second.await.unwrap();
    assert_eq!(rig.status().counters.writes.total(), written);
    assert_eq!(self::written(&second), 0);
}
