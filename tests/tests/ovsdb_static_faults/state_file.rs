//! A state directory that cannot be written: a row whose port nobody remembers would stay for ever.

use crate::rig::Rig;

const FOLLOWERS: usize = 5;
const NODES: u16 = 20;

#[tokio::test]
async fn nothing_is_inserted_while_its_port_cannot_be_kept_and_all_is_once_it_can() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    let there = rig.history().of_static_rows().len();
    std::fs::remove_dir_all(rig.state.path()).unwrap();
    rig.plan();
    let says_so = |rig: &Rig| rig.statics.rows.state_error().is_some();
    rig.run_until("word of it", says_so).await;
    let error = rig.statics.rows.state_error().unwrap();
    assert!(error.contains("state directory"), "{error}");
    assert!(rig.status().waiting && rig.status().in_flight == 0);
    assert_eq!(rig.history().of_static_rows().len(), there);

    std::fs::create_dir(rig.state.path()).unwrap();
    rig.finish().await;
    assert_eq!(rig.statics.rows.state_error(), None);
    let kept = std::fs::read_to_string(rig.state.path().join("state.json")).unwrap();
    for gateway in &rig.gateways {
        assert!(kept.contains(&*gateway.port), "{kept}");
    }
}

#[tokio::test]
async fn rows_of_a_port_that_is_gone_go_though_nothing_can_be_kept() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    let new = rig.targets.pop().unwrap();
    rig.plan();
    rig.finish().await;
    let directory = rig.state.path().to_owned();
    std::fs::remove_dir_all(&directory).unwrap();
    // A new follower has to wait.
    rig.targets.push(new);
    rig.plan();
    let says_so = |rig: &Rig| rig.statics.rows.state_error().is_some();
    rig.run_until("word of it", says_so).await;
    rig.lose(0).await;
    rig.hear_of_loss(0);
    let gone = std::sync::Arc::clone(&rig.gateways[0].port);
    rig.run_until("deletion", |rig| {
        rig.status().counters.writes.deleted_urgently == u64::from(NODES)
    })
    .await;
    let rows = rig.rows().await;
    assert_eq!(rig.of_port(&rows, &gone), Vec::<&_>::new());
    std::fs::create_dir(&directory).unwrap();
    rig.finish().await;
}
