//! Objects of any kind as `kubectl get` prints them, one by one or in lists.

use std::sync::Arc;

use serde_json::Value;

use super::{Node, ObjectError, UplinkState};

/// The group and version of `UplinkState`.
pub const UPLINK_STATE_VERSION: &str = "k8s.ovn.org/v1alpha1";

/// What documents hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Nodes by name, in the documents' order.
    pub nodes: Vec<(Arc<str>, Node)>,
    /// `UplinkState`s by name, in the documents' order.
    pub uplinks: Vec<(Arc<str>, UplinkState)>,
    /// Nodes and `UplinkState`s that cannot be told from others.
    pub bad: Vec<(Kind, ObjectError)>,
    /// How many objects are of other kinds.
    pub others: usize,
    /// How many documents, or items of lists, do not say of which kind they are.
    pub not_objects: usize,
}

/// The kinds that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `Node` of `v1`.
    Node,
    /// `UplinkState` of [`UPLINK_STATE_VERSION`].
    UplinkState,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Node => "Node",
            Self::UplinkState => "UplinkState",
        })
    }
}

impl Manifest {
    /// Adds one document. An empty one is none.
    pub fn add(&mut self, document: &Value) {
        self.add_as(document, None);
    }

    /// Whether nothing in it is an object.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.uplinks.is_empty()
            && self.bad.is_empty()
            && self.others == 0
            && self.not_objects == 0
    }

    /// `listed`: what items are that do not say it themselves.
    fn add_as(&mut self, object: &Value, listed: Option<Kind>) {
        if object.is_null() {
            return;
        }
        let field = |name| object.get(name).and_then(Value::as_str);
        let kind = match (field("apiVersion"), field("kind")) {
            (Some("v1"), Some("List")) => return self.add_items(object, None),
            (Some("v1"), Some("NodeList")) => return self.add_items(object, Some(Kind::Node)),
            (Some(UPLINK_STATE_VERSION), Some("UplinkStateList")) => {
                return self.add_items(object, Some(Kind::UplinkState));
            }
            (Some("v1"), Some("Node")) => Some(Kind::Node),
            (Some(UPLINK_STATE_VERSION), Some("UplinkState")) => Some(Kind::UplinkState),
            (None, None) if listed.is_some() => listed,
            (Some(_), Some(_)) => None,
            _ => {
                self.not_objects = self.not_objects.saturating_add(1);
                return;
            }
        };
        match kind {
            Some(Kind::Node) => match Node::read(object) {
                Ok(node) => self.nodes.push(node),
                Err(error) => self.bad.push((Kind::Node, error)),
            },
            Some(Kind::UplinkState) => match UplinkState::read(object) {
                Ok(uplink) => self.uplinks.push(uplink),
                Err(error) => self.bad.push((Kind::UplinkState, error)),
            },
            None => self.others = self.others.saturating_add(1),
        }
    }

    fn add_items(&mut self, list: &Value, listed: Option<Kind>) {
        for item in list
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.add_as(item, listed);
        }
    }
}
