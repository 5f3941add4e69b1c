//! What is followed while all is well, or nearly.

use std::time::Duration;

use neighsteer::sources::{Patience, SourceEnded};
use neighsteer_tests::apiserver::{ApiServer, Fault, NODES, UPLINK_STATES, Verb};
use serde_json::json;

use crate::common::{
    MAC, addresses, becomes, count, follow, follow_with, has_nodes, node, only_lists_and_watches,
    patience, says, serving, until, uplink_state, watched,
};

#[tokio::test]
async fn nodes_are_followed_as_they_come_and_change_and_go() {
    let server = serving(&["a", "b"]).await;
    server.serve(UPLINK_STATES, true);
    let mut feed = follow(&server);
    assert_eq!(feed.inventory(), None);
    has_nodes(&mut feed, &["a", "b"]).await;
    server.put(NODES, node("c", "fd00::3", MAC));
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    server.put(NODES, node("a", "10.0.0.1", "02:00:00:00:00:99"));
    becomes(&mut feed, "another MAC", |inventory| {
        let gateway = inventory.nodes["a"].gateway.as_ref().unwrap();
        gateway.mac.to_string() == "02:00:00:00:00:99"
    })
    .await;
    server.remove(NODES, "b");
    has_nodes(&mut feed, &["a", "c"]).await;
    server.put(UPLINK_STATES, uplink_state("u", "br1"));
    becomes(&mut feed, "an uplink", |inventory| {
        inventory.uplinks.len() == 1
    })
    .await;
    server.put(UPLINK_STATES, uplink_state("u", "br2"));
    becomes(&mut feed, "another bridge", |inventory| {
        inventory.uplinks["u"].bridge.as_deref() == Some("br2")
    })
    .await;
    server.remove(UPLINK_STATES, "u");
    becomes(&mut feed, "no uplink", |inventory| {
        inventory.uplinks.is_empty()
    })
    .await;
    let status = feed.status();
    assert!(status.synced && status.nodes.current && status.uplink_states.current);
    assert_eq!(
        (status.nodes.known, status.nodes.lists, status.nodes.watches),
        (2, 1, 1)
    );
    assert_eq!(status.last_error, None);
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_change_that_means_nothing_wakes_nobody() {
    let server = serving(&["a"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    let before = feed.inventory().unwrap();
    let mut heartbeat = node("a", "10.0.0.0", MAC);
    heartbeat["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    server.put(NODES, heartbeat);
    server.put(NODES, node("b", "10.0.0.1", MAC));
    // The first inventory that comes is the one with the second node.
    let next = feed.changed().await.unwrap();
    assert_eq!(next.nodes.len(), 2);
    assert_eq!(next.nodes["a"], before.nodes["a"]);
}

#[tokio::test]
async fn a_watch_that_ends_in_time_goes_on_where_it_was() {
    let server = serving(&["a"]).await;
    let patience = Patience {
        watch: Duration::from_secs(1),
        ..patience()
    };
    let mut feed = follow_with(&server, patience);
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "three watches", |status| status.nodes.watches >= 3).await;
    server.put(NODES, node("b", "10.0.0.2", MAC));
    has_nodes(&mut feed, &["a", "b"]).await;
    let status = feed.status();
    assert_eq!(
        (status.nodes.lists, status.nodes.failures),
        (1, 0),
        "{status:?}"
    );
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_bookmark_spares_a_list() {
    let server = serving(&["a"]).await;
    let patience = Patience {
        watch: Duration::from_secs(1),
        ..patience()
    };
    let mut feed = follow_with(&server, patience);
    has_nodes(&mut feed, &["a"]).await;
    // Versions go on, but not because of nodes.
    for bridge in ["br1", "br2", "br3"] {
        server.put(UPLINK_STATES, uplink_state("u", bridge));
    }
    watched(&server, 1).await;
    server.bookmark();
    // The next watch starts from the bookmark: 1 + 3.
    until(
        "a watch from the bookmark's version",
        || count(&server, NODES, "resourceVersion=4", 200) > 0,
        || format!("{:#?}", server.recorded()),
    )
    .await;
    server.compact();
    server.cut();
    server.put(NODES, node("b", "10.0.0.2", MAC));
    has_nodes(&mut feed, &["a", "b"]).await;
    let status = feed.status();
    let (expired, lists) = (status.nodes.expired, status.nodes.lists);
    assert_eq!((expired, lists), (0, 1), "{status:?}");
}

#[tokio::test]
async fn what_a_watch_cannot_tell_any_more_a_list_does() {
    let server = serving(&["a", "b", "c"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    watched(&server, 1).await;
    // 410 as an event, in the middle of a watch.
    server.forget(NODES, "b");
    server.compact();
    has_nodes(&mut feed, &["a", "c"]).await;
    assert!(feed.status().nodes.expired >= 1);
    // And as an answer.
    watched(&server, 1).await;
    server.fail(NODES, Verb::Watch, Fault::Status(410));
    server.forget(NODES, "c");
    server.cut();
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "two of 410", |status| status.nodes.expired == 2).await;
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_long_list_is_taken_page_by_page() {
    let server = ApiServer::start().await.unwrap();
    for number in 0..250 {
        let address = format!("10.0.{}.{}", number / 200, number % 200 + 1);
        server.put(NODES, node(&format!("n{number:03}"), &address, MAC));
    }
    let mut feed = follow(&server);
    becomes(&mut feed, "all nodes", |inventory| {
        inventory.nodes.len() == 250
    })
    .await;
    // The first list comes from the server's cache, at once.
    assert_eq!(count(&server, NODES, "resourceVersion=0", 200), 1);
    watched(&server, 1).await;
    server.forget(NODES, "n249");
    server.compact();
    becomes(&mut feed, "one less", |inventory| {
        inventory.nodes.len() == 249
    })
    .await;
    assert_eq!(count(&server, NODES, "limit=100", 200), 3);
    assert_eq!(count(&server, NODES, "continue=", 200), 2);
    let inventory = feed.inventory().unwrap();
    assert_eq!(addresses(&inventory)["n248"], "10.0.1.49");
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn an_object_that_cannot_be_told_from_others_costs_itself_only() {
    let server = serving(&["a"]).await;
    server.put(NODES, node("", "10.0.0.7", MAC));
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    assert_eq!(feed.status().nodes.bad_objects, 1);
    let mut malformed = node("b", "10.0.0.2", MAC);
    malformed["metadata"]["annotations"]["k8s.ovn.org/l3-gateway-config"] = json!("{");
    server.put(NODES, malformed);
    server.put(NODES, node("c", "10.0.0.3", MAC));
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    let inventory = feed.inventory().unwrap();
    assert!(inventory.nodes["b"].gateway.is_err());
    assert!(inventory.nodes["c"].gateway.is_ok());
    // Another event without a name costs itself as well.
    server.put(NODES, node("", "10.0.0.8", MAC));
    says(&feed, "two bad ones", |status| {
        status.nodes.bad_objects == 2
    })
    .await;
    server.put(NODES, node("d", "10.0.0.4", MAC));
    has_nodes(&mut feed, &["a", "b", "c", "d"]).await;
    assert_eq!(feed.status().nodes.failures, 0);
}

#[tokio::test]
async fn nothing_goes_on_after_the_feed() {
    let server = serving(&["a"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    watched(&server, 1).await;
    drop(feed);
    let seen = || format!("{} connections", server.connections());
    until("no connection", || server.connections() == 0, seen).await;
    assert_eq!(
        SourceEnded.to_string(),
        "the task that follows the nodes has ended"
    );
}
