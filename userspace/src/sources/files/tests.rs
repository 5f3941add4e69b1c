use std::{
    collections::BTreeSet, fs, net::IpAddr, os::unix::fs::symlink, path::Path, time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::*;
use crate::{
    nodes::Inventory,
    sources::{NodeFeed, SourceConfig, SourceStatus, feed::feed, start},
};

const DEADLINE: Duration = Duration::from_secs(20);

fn node(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    })
}

fn list(nodes: &[(&str, &str)]) -> String {
    let items: Vec<Value> = nodes
        .iter()
        .map(|(name, address)| node(name, address))
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn follow(path: &Path) -> NodeFeed {
    start(SourceConfig::Files(path.to_owned())).unwrap()
}

/// As `name=address` by the name.
fn addresses(inventory: &Inventory) -> BTreeSet<String> {
    let nodes = inventory.nodes.iter();
    nodes
        .map(|(name, node)| {
            let address: &IpAddr = node.internal_ips.first().unwrap();
            format!("{name}={address}")
        })
        .collect()
}

async fn becomes(feed: &mut NodeFeed, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|&text| text.to_owned()).collect();
    let mut last = None;
    let reached = async {
        loop {
            last = feed.inventory().as_deref().map(addresses);
            if last.as_ref() == Some(&wanted) {
                return;
            }
            feed.changed().await.unwrap();
        }
    };
    if timeout(DEADLINE, reached).await.is_err() {
        panic!("wanted {wanted:?}, got {last:?}: {:?}", feed.status());
    }
}

async fn says(feed: &NodeFeed, what: impl Fn(&SourceStatus) -> bool) -> SourceStatus {
    let said = async {
        while !what(&feed.status()) {
            sleep(Duration::from_millis(10)).await;
        }
        feed.status()
    };
    let Ok(status) = timeout(DEADLINE, said).await else {
        panic!("{:?}", feed.status());
    };
    status
}

/// As editors and configuration managers do it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[tokio::test]
async fn a_directory_is_followed_file_by_file() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.json"), list(&[("a", "10.0.0.1"), ("b", "10.0.0.2")])).unwrap();
    fs::write(at("notes.txt"), "no manifest").unwrap();
    fs::write(at(".hidden.yaml"), "no: [manifest").unwrap();
    let mut feed = follow(directory.path());
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.2"]).await;
    fs::write(
        at("c.yaml"),
        "apiVersion: v1\nkind: Node\nmetadata: {name: c}\nstatus:\n  addresses:\n  \
         - type: InternalIP\n    address: fd00::3\n---\napiVersion: k8s.ovn.org/v1alpha1\n\
         kind: UplinkState\nmetadata: {name: u}\nspec: {uplinkName: blue, nodeName: c}\n",
    )
    .unwrap();
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.2", "c=fd00::3"]).await;
    assert_eq!(&*feed.inventory().unwrap().uplinks["u"].uplink, "blue");
    replace(&at("a.json"), &list(&[("a", "10.0.0.9")]));
    becomes(&mut feed, &["a=10.0.0.9", "c=fd00::3"]).await;
    fs::remove_file(at("c.yaml")).unwrap();
    becomes(&mut feed, &["a=10.0.0.9"]).await;
    let status = says(&feed, |status| status.nodes.current).await;
    assert!(status.synced);
    assert_eq!(status.last_error, None);
}

#[tokio::test]
async fn a_file_that_comes_later_is_waited_for() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("nodes");
    let mut feed = follow(&path);
    let status = says(&feed, |status| status.last_error.is_some()).await;
    assert!(
        status
            .last_error
            .unwrap()
            .starts_with(path.to_str().unwrap())
    );
    assert!(!status.synced);
    // A file that is named counts whatever its name ends with.
    fs::write(&path, list(&[("a", "10.0.0.1")])).unwrap();
    becomes(&mut feed, &["a=10.0.0.1"]).await;
    replace(&path, &list(&[("a", "10.0.0.2")]));
    becomes(&mut feed, &["a=10.0.0.2"]).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_parsed_keeps_its_former_content() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.yaml"), list(&[("a", "10.0.0.1")])).unwrap();
    fs::write(at("b.yaml"), list(&[("b", "10.0.0.2")])).unwrap();
    let mut feed = follow(directory.path());
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.2"]).await;
    for broken in [
        "",
        "kind: [",
        "{\"kind\": \"List\", \"items\": [{\"kind\"",
        "7",
    ] {
        fs::write(at("a.yaml"), broken).unwrap();
        let told = at("a.yaml").display().to_string();
        let is_told = |status: &SourceStatus| {
            !status.nodes.current && status.last_error.as_ref().unwrap().contains(&told)
        };
        let failures = feed.status().nodes.failures;
        says(&feed, is_told).await;
        // What others hold goes on.
        let address = format!("10.0.1.{failures}");
        replace(&at("b.yaml"), &list(&[("b", &address)]));
        becomes(&mut feed, &["a=10.0.0.1", &format!("b={address}")]).await;
    }
}

#[tokio::test]
async fn nothing_is_known_until_every_file_could_be_read_once() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.yaml"), list(&[("a", "10.0.0.1")])).unwrap();
    fs::write(at("b.yaml"), "kind: [").unwrap();
    let mut feed = follow(directory.path());
    let status = says(&feed, |status| status.last_error.is_some()).await;
    assert!(!status.synced);
    assert_eq!(feed.inventory(), None);
    replace(&at("b.yaml"), &list(&[("b", "10.0.0.2")]));
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.2"]).await;
    // Later ones only add nothing.
    fs::write(at("c.yaml"), "kind: [").unwrap();
    says(&feed, |status| !status.nodes.current).await;
    replace(&at("a.yaml"), &list(&[("a", "10.0.0.9")]));
    becomes(&mut feed, &["a=10.0.0.9", "b=10.0.0.2"]).await;
}

#[tokio::test]
async fn no_file_left_is_no_cluster_without_nodes() {
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("a.json"), list(&[("a", "10.0.0.1")])).unwrap();
    let mut feed = follow(&manifests);
    becomes(&mut feed, &["a=10.0.0.1"]).await;
    fs::remove_file(manifests.join("a.json")).unwrap();
    let status = says(&feed, |status| !status.nodes.current).await;
    assert!(status.last_error.unwrap().contains("not one node"));
    becomes(&mut feed, &["a=10.0.0.1"]).await;
    fs::remove_dir(&manifests).unwrap();
    let failures = feed.status().nodes.failures;
    says(&feed, |status| status.nodes.failures > failures).await;
    becomes(&mut feed, &["a=10.0.0.1"]).await;
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("b.json"), list(&[("b", "10.0.0.2")])).unwrap();
    becomes(&mut feed, &["b=10.0.0.2"]).await;
    says(&feed, |status| status.nodes.current).await;
}

#[tokio::test]
async fn files_that_change_by_a_link_are_taken_together() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    // As kubelet lays out what a pod mounts.
    for (version, address) in [("..1", "10.0.0.1"), ("..2", "10.0.0.2")] {
        fs::create_dir(at(version)).unwrap();
        for file in ["a", "b"] {
            let path = at(version).join(format!("{file}.json"));
            fs::write(path, list(&[(file, address)])).unwrap();
        }
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/a.json", at("a.json")).unwrap();
    symlink("..data/b.json", at("b.json")).unwrap();
    let mut feed = follow(directory.path());
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.1"]).await;
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    let next = timeout(DEADLINE, feed.changed()).await.unwrap().unwrap();
    let wanted = ["a=10.0.0.2", "b=10.0.0.2"].map(str::to_owned);
    assert_eq!(addresses(&next), BTreeSet::from(wanted));
}

#[tokio::test]
async fn what_no_watch_tells_is_seen_by_looking_again() {
    let directory = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    let target = elsewhere.path().join("nodes.json");
    fs::write(&target, list(&[("a", "10.0.0.1")])).unwrap();
    symlink(&target, directory.path().join("nodes.json")).unwrap();
    let files = Files {
        look_again: Duration::from_millis(50),
        ..Files::new(directory.path().to_owned()).unwrap()
    };
    let mut feed = feed(files.name(), |publisher| tokio::spawn(files.run(publisher)));
    becomes(&mut feed, &["a=10.0.0.1"]).await;
    replace(&target, &list(&[("a", "10.0.0.2")]));
    becomes(&mut feed, &["a=10.0.0.2"]).await;
}

#[tokio::test]
async fn an_object_that_cannot_be_told_from_others_costs_itself_only() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.json"), list(&[("a", "10.0.0.1"), ("", "10.0.0.7")])).unwrap();
    fs::write(at("b.json"), list(&[("b", "10.0.0.2"), ("a", "10.0.0.3")])).unwrap();
    let mut feed = follow(directory.path());
    becomes(&mut feed, &["a=10.0.0.1", "b=10.0.0.2"]).await;
    let status = says(&feed, |status| status.nodes.bad_objects == 2).await;
    let error = status.last_error.unwrap();
    assert!(error.contains("Node a is left out"), "{error}");
    assert!(says(&feed, |status| status.nodes.current).await.synced);
}

#[test]
fn what_can_hold_no_manifests_is_refused() {
    let path = PathBuf::from("/dev/null");
    let error = start(SourceConfig::Files(path)).unwrap_err();
    assert!(error.to_string().starts_with("/dev/null is neither"));
}
