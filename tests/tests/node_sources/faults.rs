//! What goes wrong, and is right again.

use std::time::Duration;

use neighsteer::sources::Patience;
use neighsteer_tests::apiserver::{Fault, NODES, Verb};

use crate::common::{
    MAC, addresses, becomes, count, follow, follow_with, has_nodes, node, only_lists_and_watches,
    patience, says, serving, until, watched,
};

#[tokio::test]
async fn a_server_that_is_away_at_start_is_waited_for() {
    let mut server = serving(&["a"]).await;
    server.stop();
    let mut feed = follow(&server);
    says(&feed, "failures", |status| status.nodes.failures > 2).await;
    let status = feed.status();
    assert!(!status.synced && !status.nodes.current);
    assert!(status.last_error.unwrap().contains("does not answer"));
    assert_eq!(feed.inventory(), None);
    server.resume().await.unwrap();
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "all well", |status| {
        status.synced && status.nodes.current
    })
    .await;
}

#[tokio::test]
async fn what_is_known_outlives_the_server() {
    let mut server = serving(&["a", "b"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b"]).await;
    watched(&server, 1).await;
    server.stop();
    says(&feed, "a failure", |status| !status.nodes.current).await;
    has_nodes(&mut feed, &["a", "b"]).await;
    server.put(NODES, node("c", "10.0.0.3", MAC));
    server.remove(NODES, "a");
    server.resume().await.unwrap();
    has_nodes(&mut feed, &["b", "c"]).await;
    assert!(feed.status().synced);
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn connections_that_break_lose_nothing() {
    let server = serving(&["a"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    for round in 1..=4 {
        watched(&server, 1).await;
        server.cut();
        let address = format!("10.0.1.{round}");
        server.put(NODES, node("a", &address, MAC));
        becomes(&mut feed, &address, |inventory| {
            addresses(inventory)["a"] == address
        })
        .await;
    }
    assert!(feed.status().nodes.failures >= 4);
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn answers_that_break_off_are_asked_for_again() {
    let server = serving(&["a", "b"]).await;
    server.fail(NODES, Verb::List, Fault::Truncate);
    server.fail(NODES, Verb::List, Fault::Close);
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b"]).await;
    assert!(feed.status().nodes.lists >= 3);
    watched(&server, 1).await;
    server.fail(NODES, Verb::Watch, Fault::Truncate);
    server.cut();
    until(
        "the next watch",
        || server.faults_left() == 0,
        || format!("{:#?}", server.recorded()),
    )
    .await;
    let failures = feed.status().nodes.failures;
    server.put(NODES, node("c", "10.0.0.3", MAC));
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    assert!(feed.status().nodes.failures > failures);
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn answers_that_come_in_small_pieces_are_read() {
    let server = serving(&["a", "b", "c"]).await;
    server.fail(NODES, Verb::List, Fault::Trickle(7));
    server.fail(NODES, Verb::Watch, Fault::Trickle(5));
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    server.put(NODES, node("d", "10.0.0.4", MAC));
    // A letter of two bytes, which come apart.
    let mut last = node("e", "10.0.0.5", MAC);
    last["metadata"]["labels"] = serde_json::json!({"letter": "é", "letters": "éééééééé"});
    server.put(NODES, last);
    has_nodes(&mut feed, &["a", "b", "c", "d", "e"]).await;
    let status = feed.status();
    assert_eq!(
        (status.nodes.lists, status.nodes.failures),
        (1, 0),
        "{status:?}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let server = serving(&["a"]).await;
    server.fail(NODES, Verb::List, Fault::Silence);
    server.fail(NODES, Verb::Watch, Fault::Silence);
    let short = Duration::from_millis(300);
    let mut feed = follow_with(
        &server,
        Patience {
            answer: short,
            ..patience()
        },
    );
    has_nodes(&mut feed, &["a"]).await;
    says(&feed, "two failures", |status| status.nodes.failures >= 2).await;
    let error = feed.status().last_error.unwrap();
    assert!(error.contains("has sent nothing for 0.3 s"), "{error}");
    watched(&server, 1).await;
    server.put(NODES, node("b", "10.0.0.2", MAC));
    has_nodes(&mut feed, &["a", "b"]).await;
}

#[tokio::test]
async fn a_watch_that_is_dead_is_given_up() {
    let server = serving(&["a"]).await;
    server.fail(NODES, Verb::Watch, Fault::Mute);
    let patience = Patience {
        watch: Duration::from_secs(1),
        pause: Duration::from_millis(200),
        ..patience()
    };
    let mut feed = follow_with(&server, patience);
    has_nodes(&mut feed, &["a"]).await;
    server.put(NODES, node("b", "10.0.0.2", MAC));
    has_nodes(&mut feed, &["a", "b"]).await;
    let error = feed.status().last_error.unwrap();
    assert!(error.contains("has sent nothing for 1.2 s"), "{error}");
}

#[tokio::test]
async fn a_new_token_is_taken_when_the_former_one_is_refused() {
    let server = serving(&["a"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    watched(&server, 1).await;
    server.rotate_token("second");
    server.cut();
    says(&feed, "a refusal", |status| {
        let error = status.last_error.as_deref();
        error.is_some_and(|error| error.contains("says 401: Unauthorized"))
    })
    .await;
    has_nodes(&mut feed, &["a"]).await;
    server.put(NODES, node("b", "10.0.0.2", MAC));
    server.write_token("second").unwrap();
    has_nodes(&mut feed, &["a", "b"]).await;
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_server_that_is_unwell_is_asked_again() {
    let server = serving(&["a"]).await;
    for status in [500, 503, 429, 403, 404, 410] {
        server.fail(NODES, Verb::List, Fault::Status(status));
    }
    for body in ["", "<html>", "{}", "{\"metadata\":{},\"items\":[]}"] {
        server.fail(NODES, Verb::List, Fault::Say(body.to_owned()));
    }
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a"]).await;
    assert_eq!(server.faults_left(), 0);
    watched(&server, 1).await;
    for status in [500, 504] {
        server.fail(NODES, Verb::Watch, Fault::Status(status));
    }
    for line in [
        "no JSON",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\"}}}",
        "{\"type\":\"NONE\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}",
        "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd is away\"}}",
        "{\"type\":\"ERROR\",\"object\":{\"code\":410}}",
    ] {
        server.fail(NODES, Verb::Watch, Fault::Say(line.to_owned()));
    }
    server.cut();
    until(
        "every fault",
        || server.faults_left() == 0,
        || format!("{:#?}", server.recorded()),
    )
    .await;
    server.put(NODES, node("b", "10.0.0.2", MAC));
    has_nodes(&mut feed, &["a", "b"]).await;
    says(&feed, "all well", |status| status.nodes.current).await;
    only_lists_and_watches(&server);
}

#[tokio::test]
async fn a_list_without_nodes_is_never_believed() {
    let server = serving(&["a", "b"]).await;
    server.fail(NODES, Verb::List, Fault::Empty);
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b"]).await;
    assert!(feed.status().last_error.unwrap().contains("not one node"));
    watched(&server, 1).await;
    for _ in 0..5 {
        server.fail(NODES, Verb::List, Fault::Empty);
    }
    server.put(NODES, node("c", "10.0.0.3", MAC));
    server.fail(NODES, Verb::Watch, Fault::Status(410));
    server.cut();
    has_nodes(&mut feed, &["a", "b", "c"]).await;
    until(
        "every fault",
        || server.faults_left() == 0,
        || format!("{:#?}", server.recorded()),
    )
    .await;
    assert_eq!(feed.inventory().unwrap().nodes.len(), 3);
}

#[tokio::test]
async fn the_last_node_is_never_removed() {
    let server = serving(&["a", "b"]).await;
    let mut feed = follow(&server);
    has_nodes(&mut feed, &["a", "b"]).await;
    server.remove(NODES, "a");
    server.remove(NODES, "b");
    has_nodes(&mut feed, &["b"]).await;
    says(&feed, "no list that can be believed", |status| {
        status.nodes.lists > 2 && !status.nodes.current
    })
    .await;
    has_nodes(&mut feed, &["b"]).await;
    server.put(NODES, node("c", "10.0.0.3", MAC));
    has_nodes(&mut feed, &["c"]).await;
    says(&feed, "all well", |status| status.nodes.current).await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_believed() {
    let (server, other) = (serving(&["a"]).await, serving(&["b"]).await);
    let mixed = std::fs::read_to_string(server.kubeconfig()).unwrap();
    let authority = |server: &neighsteer_tests::apiserver::ApiServer| {
        let path = server.kubeconfig();
        path.with_file_name("ca.pem").display().to_string()
    };
    let mixed = mixed.replace(&authority(&server), &authority(&other));
    std::fs::write(server.kubeconfig(), mixed).unwrap();
    let feed = follow(&server);
    says(&feed, "failures", |status| status.nodes.failures > 2).await;
    let error = feed.status().last_error.unwrap();
    assert!(error.contains("certificate"), "{error}");
    assert_eq!(feed.inventory(), None);
    assert_eq!(count(&server, NODES, "", 200), 0);
}
