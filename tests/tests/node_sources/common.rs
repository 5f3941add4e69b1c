//! A feed of a server, and what is waited for.

use std::{collections::BTreeMap, time::Duration};

use neighsteer::{
    nodes::Inventory,
    ovsdb::Backoff,
    sources::{self, NodeFeed, Patience, SourceConfig, SourceStatus},
};
use neighsteer_tests::apiserver::{ApiServer, NODES, UPLINK_STATES};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

pub const DEADLINE: Duration = Duration::from_secs(30);

/// Impatient, so that tests are quick.
pub fn patience() -> Patience {
    Patience {
        backoff: Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(200),
        },
        answer: Duration::from_secs(10),
        pause: Duration::from_secs(10),
        watch: Duration::from_secs(290),
        absent: Duration::from_millis(50),
        page: 100,
    }
}

pub fn follow(server: &ApiServer) -> NodeFeed {
    follow_with(server, patience())
}

pub fn follow_with(server: &ApiServer, patience: Patience) -> NodeFeed {
    let config = SourceConfig::Kubernetes {
        kubeconfig: Some(server.kubeconfig()),
        context: None,
    };
    sources::start_with(config, patience).unwrap()
}

/// As an API server has them, with much that is of no interest.
pub fn node(name: &str, address: &str, mac: &str) -> Value {
    let config = json!({"default": {
        "mode": "shared", "bridge-id": "breth0", "mac-address": mac,
        "ip-addresses": [format!("{address}/24")], "next-hops": ["10.0.0.254"],
        "node-port-enable": "true", "vlan-id": "0",
    }});
    json!({
        "metadata": {
            "name": name, "uid": "6f1d", "labels": {"kubernetes.io/os": "linux"},
            "annotations": {
                "k8s.ovn.org/node-chassis-id": format!("chassis-{name}"),
                "k8s.ovn.org/l3-gateway-config": config.to_string(),
            },
        },
        "spec": {"podCIDR": "10.244.0.0/24"},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "images": [{"names": ["registry/image:1"], "sizeBytes": 1}],
        },
    })
}

pub const MAC: &str = "02:00:00:00:00:01";

pub fn uplink_state(name: &str, bridge: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"uplinkName": "blue", "nodeName": "a"},
        "status": {"ovsBridge": {"name": bridge}, "macAddress": MAC},
    })
}

/// A server with these nodes.
pub async fn serving(nodes: &[&str]) -> ApiServer {
    let server = ApiServer::start().await.unwrap();
    for (number, name) in nodes.iter().enumerate() {
        server.put(NODES, node(name, &format!("10.0.0.{number}"), MAC));
    }
    server
}

/// The first address of each node by its name.
pub fn addresses(inventory: &Inventory) -> BTreeMap<String, String> {
    let nodes = inventory.nodes.iter();
    nodes
        .map(|(name, node)| {
            let address = node.internal_ips.first().unwrap();
            (name.to_string(), address.to_string())
        })
        .collect()
}

/// Waits for an inventory that is as wanted.
pub async fn becomes(feed: &mut NodeFeed, what: &str, wanted: impl Fn(&Inventory) -> bool) {
    let reached = async {
        loop {
            if feed.inventory().is_some_and(|inventory| wanted(&inventory)) {
                return;
            }
            feed.changed().await.unwrap();
        }
    };
    if timeout(DEADLINE, reached).await.is_err() {
        let (inventory, status) = (feed.inventory(), feed.status());
        panic!("wanted {what}, got {inventory:#?} {status:#?}");
    }
}

pub async fn has_nodes(feed: &mut NodeFeed, names: &[&str]) {
    let what = format!("nodes {names:?}");
    becomes(feed, &what, |inventory| {
        inventory
            .nodes
            .keys()
            .map(|name| &**name)
            .eq(names.iter().copied())
    })
    .await;
}

/// Waits until the source says something of itself.
pub async fn says(feed: &NodeFeed, what: &str, wanted: impl Fn(&SourceStatus) -> bool) {
    until(
        what,
        || wanted(&feed.status()),
        || format!("{:#?}", feed.status()),
    )
    .await;
}

/// Waits until something is so.
pub async fn until(what: &str, is_so: impl Fn() -> bool, seen: impl Fn() -> String) {
    let waited = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    if timeout(DEADLINE, waited).await.is_err() {
        panic!("wanted {what}, got {}", seen());
    }
}

/// Waits until both kinds, or nodes only, are watched.
pub async fn watched(server: &ApiServer, watches: usize) {
    let is_so = || server.watches() == watches;
    let seen = || format!("{} watches: {:#?}", server.watches(), server.recorded());
    until(&format!("{watches} watches"), is_so, seen).await;
}

/// Nothing was asked for but lists and watches of the two kinds.
pub fn only_lists_and_watches(server: &ApiServer) {
    let recorded = server.recorded();
    assert!(!recorded.is_empty());
    for request in recorded {
        assert_eq!(request.method, "GET", "{request:?}");
        assert!(
            [NODES, UPLINK_STATES].contains(&&*request.path),
            "{request:?}"
        );
    }
}

/// How many requests for this path were answered with this status; `word` is in their query.
pub fn count(server: &ApiServer, path: &str, word: &str, status: u16) -> usize {
    let recorded = server.recorded();
    let requests = recorded.iter().filter(|request| {
        request.path == path && request.query.contains(word) && request.status == status
    });
    requests.count()
}
