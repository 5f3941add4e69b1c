use std::collections::BTreeSet;

use super::*;
use crate::nodes::Problem;

fn node(address: &str) -> Node {
    Node {
        chassis: None,
        internal_ips: BTreeSet::from([address.parse().unwrap()]),
        gateway: Err(Problem::GatewayDisabled),
        dpu_host: None,
        problems: vec![],
    }
}

fn nodes(names: &[&str]) -> BTreeMap<Arc<str>, Node> {
    names
        .iter()
        .map(|name| (Arc::from(*name), node("10.0.0.1")))
        .collect()
}

fn uplinks() -> BTreeMap<Arc<str>, UplinkState> {
    let state = UplinkState {
        uplink: "blue".into(),
        node: "a".into(),
        bridge: None,
        mac: Err(Problem::Missing("status.macAddress")),
        addresses: vec![],
        problems: vec![],
    };
    [("u".into(), state)].into()
}

/// A feed of what a test publishes.
fn tested() -> (NodeFeed, Arc<Publisher>) {
    let mut publisher = None;
    let feed = feed("a test".to_owned(), |made| {
        let made = Arc::new(made);
        publisher = Some(Arc::clone(&made));
        tokio::spawn(std::future::pending())
    });
    (feed, publisher.unwrap())
}

#[tokio::test]
async fn nothing_is_published_before_both_kinds_are_known() {
    let (mut feed, publisher) = tested();
    publisher
        .set_node(&"early".into(), Some(node("10.0.0.9")))
        .unwrap();
    publisher.replace_nodes(nodes(&["a"])).unwrap();
    assert_eq!(feed.inventory(), None);
    assert!(!feed.status().synced);
    publisher.replace_uplinks(BTreeMap::new());
    let inventory = feed.changed().await.unwrap();
    assert_eq!(inventory.nodes, nodes(&["a"]));
    assert!(feed.status().synced);
    assert_eq!(feed.status().nodes.known, 1);
}

#[tokio::test]
async fn an_inventory_without_nodes_is_never_published() {
    let (feed, publisher) = tested();
    publisher.replace_uplinks(uplinks());
    assert_eq!(publisher.replace_nodes(BTreeMap::new()), Err(NoNodes));
    assert_eq!(publisher.replace(Inventory::default()), Err(NoNodes));
    assert_eq!(feed.inventory(), None);
    publisher.replace_nodes(nodes(&["a", "b"])).unwrap();
    assert_eq!(publisher.replace_nodes(BTreeMap::new()), Err(NoNodes));
    assert_eq!(publisher.set_node(&"a".into(), None), Ok(()));
    assert_eq!(publisher.set_node(&"c".into(), None), Ok(()));
    assert_eq!(publisher.set_node(&"b".into(), None), Err(NoNodes));
    let inventory = feed.inventory().unwrap();
    assert_eq!(inventory.nodes, nodes(&["b"]));
    assert_eq!(inventory.uplinks, uplinks());
}

#[tokio::test]
async fn what_makes_no_difference_wakes_nobody() {
    let (mut feed, publisher) = tested();
    let both = Inventory {
        nodes: nodes(&["a", "b"]),
        uplinks: uplinks(),
    };
    publisher.replace(both.clone()).unwrap();
    assert_eq!(*feed.changed().await.unwrap(), both);
    publisher.replace(both.clone()).unwrap();
    publisher.replace_nodes(both.nodes.clone()).unwrap();
    publisher
        .set_node(&"a".into(), Some(node("10.0.0.1")))
        .unwrap();
    publisher.set_uplink(&"none".into(), None);
    assert!(!feed.inventory.has_changed().unwrap());
    publisher.set_uplink(&"u".into(), None);
    assert_eq!(feed.changed().await.unwrap().uplinks, BTreeMap::new());
}

#[tokio::test]
async fn the_end_of_a_source_is_noticed() {
    for panics in [false, true] {
        let mut feed = feed("a test".to_owned(), |publisher| {
            tokio::spawn(async move {
                publisher.replace(Inventory::default()).unwrap_err();
                assert!(!panics, "the source's own fault");
            })
        });
        assert_eq!(feed.changed().await, Err(SourceEnded));
    }
}

#[tokio::test]
async fn an_error_that_is_over_is_still_told() {
    let (feed, publisher) = tested();
    publisher.current(Kind::Node);
    publisher.failed(&[Kind::Node], "away".to_owned());
    assert!(!feed.status().nodes.current);
    publisher.current(Kind::Node);
    let status = feed.status();
    assert!(status.nodes.current && !status.uplink_states.current);
    assert_eq!(status.last_error.as_deref(), Some("away"));
    assert_eq!(
        (status.nodes.failures, status.uplink_states.failures),
        (1, 0)
    );
}
