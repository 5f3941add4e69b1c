//! `UplinkState`s, which a server may do without.

use neighsteer_tests::apiserver::{Fault, NODES, UPLINK_STATES, Verb};

use crate::common::{
    MAC, becomes, count, follow, has_nodes, node, only_lists_and_watches, says, serving, until,
    uplink_state, watched,
};

#[tokio::test]
async fn a_server_without_the_kind_is_asked_again_for_it() {
    let server = serving(&["a"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "absence", |status| {
        let absent = status.uplink_states.absent.as_deref();
        status.uplink_states.current && absent.is_some_and(|why| why.contains("404"))
    })
    .await;
    assert_eq!(feed.status().last_error, None);
    server.put(UPLINK_STATES, uplink_state("u", "br1"));
    server.serve(UPLINK_STATES, true);
    becomes(&mut feed, "an uplink", |inventory| {
        inventory.uplinks.len() == 1
    })
    .await;
    says(&feed, "presence", |status| {
        status.uplink_states.absent.is_none()
    })
    .await;
    watched(&server, 2).await;
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_kind_that_goes_is_believed_gone_at_the_third_time() {
    let server = serving(&["a"]).await;
    server.put(UPLINK_STATES, uplink_state("u", "br1"));
    server.serve(UPLINK_STATES, true);
    let mut feed = follow(&server);
    becomes(&mut feed, "an uplink", |inventory| {
        inventory.uplinks.len() == 1
    })
    .await;
    watched(&server, 2).await;
    let before = count(&server, UPLINK_STATES, "", 404);
    server.serve(UPLINK_STATES, false);
    becomes(&mut feed, "no uplink", |inventory| {
        inventory.uplinks.is_empty()
    })
    .await;
    // The watch's own, and three lists.
    assert!(count(&server, UPLINK_STATES, "", 404) >= before + 3);
    has_nodes(&mut feed, &["a"]).await;
}

#[tokio::test]
async fn an_answer_that_there_are_none_is_believed_at_the_third_time() {
    let server = serving(&["a"]).await;
    server.put(UPLINK_STATES, uplink_state("u", "br1"));
    server.serve(UPLINK_STATES, true);
    let mut feed = follow(&server);
    becomes(&mut feed, "an uplink", |inventory| {
        inventory.uplinks.len() == 1
    })
    .await;
    watched(&server, 2).await;
    for _ in 0..2 {
        server.fail(UPLINK_STATES, Verb::List, Fault::Empty);
    }
    server.fail(UPLINK_STATES, Verb::Watch, Fault::Status(410));
    server.cut();
    until(
        "every fault",
        || server.faults_left() == 0,
        || format!("{:#?}", server.recorded()),
    )
    .await;
    watched(&server, 2).await;
    assert_eq!(feed.inventory().unwrap().uplinks.len(), 1);
    server.forget(UPLINK_STATES, "u");
    server.put(NODES, node("a", "10.0.0.9", MAC));
    server.compact();
    becomes(&mut feed, "no uplink", |inventory| {
        inventory.uplinks.is_empty()
    })
    .await;
}

#[tokio::test]
async fn who_may_not_see_the_kind_has_none() {
    let server = serving(&["a"]).await;
    server.serve(UPLINK_STATES, true);
    server.fail(UPLINK_STATES, Verb::List, Fault::Status(403));
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "presence in the end", |status| {
        status.uplink_states.lists >= 2 && status.uplink_states.absent.is_none()
    })
    .await;
    assert_eq!(count(&server, UPLINK_STATES, "", 403), 1);
}

#[tokio::test]
async fn nothing_is_said_before_it_is_known_whether_there_are_uplinks() {
    let server = serving(&["a"]).await;
    server.put(UPLINK_STATES, uplink_state("u", "br1"));
    server.serve(UPLINK_STATES, true);
    for _ in 0..4 {
        server.fail(UPLINK_STATES, Verb::List, Fault::Status(500));
    }
    let mut feed = follow(&server);
    let first = feed.changed().await.unwrap();
    assert_eq!((first.nodes.len(), first.uplinks.len()), (1, 1));
    assert_eq!(server.faults_left(), 0);
}
