//! Objects, their versions, and what has changed since which.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where nodes are.
pub const NODES: &str = "/api/v1/nodes";
/// Where `UplinkState`s are.
pub const UPLINK_STATES: &str = "/apis/k8s.ovn.org/v1alpha1/uplinkstates";

/// All objects. One version counts for all kinds, as it does in etcd.
#[derive(Debug, Default)]
pub(super) struct Store {
    version: u64,
    collections: BTreeMap<&'static str, Collection>,
    /// The version up to which changes are forgotten.
    compacted: u64,
    /// Bookmarks that were sent, and the version of each.
    bookmarks: Vec<u64>,
}

#[derive(Debug, Default)]
struct Collection {
    is_served: Option<bool>,
    objects: BTreeMap<String, Value>,
    /// By version: what a watch is told.
    events: Vec<(u64, Value)>,
}

/// A page of a list, or why there is none.
#[derive(Debug)]
pub(super) enum Page {
    /// This one.
    Found(Value),
    /// It would go on from a version that is forgotten.
    Expired,
}

impl Store {
    pub(super) fn put(&mut self, path: &'static str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = name(&object);
        let collection = self.collections.entry(path).or_default();
        let known = collection.objects.insert(name, object.clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        collection.tell(self.version, kind, path, object);
    }

    pub(super) fn remove(&mut self, path: &'static str, name: &str) {
        self.version += 1;
        let collection = self.collections.entry(path).or_default();
        let removed = collection.objects.remove(name);
        let mut object = removed.unwrap_or_else(|| panic!("{path} has no {name}"));
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        collection.tell(self.version, "DELETED", path, object);
    }

    pub(super) fn forget(&mut self, path: &'static str, name: &str) {
        self.version += 1;
        let collection = self.collections.entry(path).or_default();
        collection.objects.remove(name);
    }

    pub(super) fn bookmark(&mut self) {
        self.bookmarks.push(self.version);
    }

    /// How many bookmarks there were.
    pub(super) const fn bookmarks(&self) -> usize {
        self.bookmarks.len()
    }

    /// A bookmark as a watch of a kind is told it, with the version of its number.
    pub(super) fn bookmark_event(&self, number: usize, path: &str) -> (u64, Value) {
        let version = self.bookmarks[number];
        let (api, kind) = kind(path);
        let event = json!({"type": "BOOKMARK", "object": {
            "kind": kind, "apiVersion": api,
            "metadata": {"resourceVersion": version.to_string()},
        }});
        (version, event)
    }

    pub(super) fn compact(&mut self) {
        self.compacted = self.version;
        for collection in self.collections.values_mut() {
            collection.events.clear();
        }
    }

    pub(super) fn serve(&mut self, path: &'static str, serves: bool) {
        self.collections.entry(path).or_default().is_served = Some(serves);
    }

    /// Nodes unless it was told otherwise, the others only then.
    pub(super) fn serves(&self, path: &str) -> bool {
        let told = self.collections.get(path);
        told.and_then(|collection| collection.is_served)
            .unwrap_or(path == NODES)
    }

    pub(super) const fn is_forgotten(&self, version: u64) -> bool {
        version < self.compacted
    }

    /// Some objects by name, after what a page before has said.
    pub(super) fn page(&self, path: &str, limit: Option<usize>, after: Option<&str>) -> Page {
        let (version, last) = match after.and_then(|token| token.split_once('/')) {
            Some((version, last)) => (version.parse().unwrap_or(0), last),
            None => (self.version.max(1), ""),
        };
        if self.is_forgotten(version) {
            return Page::Expired;
        }
        let empty = BTreeMap::new();
        let objects = self
            .collections
            .get(path)
            .map(|collection| &collection.objects);
        let rest: Vec<(&String, &Value)> = objects
            .unwrap_or(&empty)
            .iter()
            .filter(|(name, _)| last.is_empty() || name.as_str() > last)
            .collect();
        let taken = limit.unwrap_or(usize::MAX).min(rest.len());
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if taken < rest.len() {
            metadata["continue"] = json!(format!("{version}/{}", rest[taken - 1].0));
        }
        let items: Vec<&Value> = rest[..taken].iter().map(|(_, object)| *object).collect();
        let (api, kind) = kind(path);
        Page::Found(json!({
            "kind": format!("{kind}List"), "apiVersion": api, "metadata": metadata, "items": items,
        }))
    }

    /// What has changed after a version.
    pub(super) fn since(&self, path: &str, version: u64) -> Vec<(u64, Value)> {
        let events = self
            .collections
            .get(path)
            .map(|collection| &collection.events);
        let events = events.into_iter().flatten();
        events.filter(|event| event.0 > version).cloned().collect()
    }
}

impl Collection {
    fn tell(&mut self, version: u64, what: &str, path: &str, mut object: Value) {
        // Items of lists do not say what they are; those of events do.
        let (api, kind) = kind(path);
        object["apiVersion"] = json!(api);
        object["kind"] = json!(kind);
        let event = json!({"type": what, "object": object});
        self.events.push((version, event));
    }
}

fn kind(path: &str) -> (&'static str, &'static str) {
    match path {
        NODES => ("v1", "Node"),
        _ => ("k8s.ovn.org/v1alpha1", "UplinkState"),
    }
}

fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.unwrap_or_else(|| panic!("an object without name: {object}"))
        .to_owned()
}
