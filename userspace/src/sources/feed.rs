//! What a source tells, and whoever listens to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;
use tokio::{sync::watch, task::JoinHandle};

use crate::nodes::{Inventory, Node, UplinkState, manifest::Kind};

#[cfg(test)]
mod tests;

/// The newest inventory of a source, and what is known of the source. The source ends with it.
#[derive(Debug)]
pub struct NodeFeed {
    inventory: watch::Receiver<Option<Arc<Inventory>>>,
    status: watch::Receiver<SourceStatus>,
    task: JoinHandle<()>,
}

/// The source's task has ended: nothing new will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task that follows the nodes has ended")]
pub struct SourceEnded;

/// What a source says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// What it is.
    pub source: String,
    /// Whether every node was known at least once.
    pub synced: bool,
    /// What last went wrong; it stays when all is well again, see [`KindStatus::current`].
    pub last_error: Option<String>,
    /// The nodes.
    pub nodes: KindStatus,
    /// The `UplinkState`s.
    pub uplink_states: KindStatus,
}

/// What a source says of one kind of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindStatus {
    /// How many are known.
    pub known: usize,
    /// Whether what is known is the newest that there is.
    pub current: bool,
    /// Why there is none: the server does not know the kind, or does not let us see it.
    pub absent: Option<String>,
    /// How often all of them were taken.
    pub lists: u64,
    /// How often changes were asked for.
    pub watches: u64,
    /// How often the server no longer knew what had changed since (410 Gone).
    pub expired: u64,
    /// How often a connection broke, or was refused.
    pub failures: u64,
    /// How often an object was seen that cannot be told from others.
    pub bad_objects: u64,
}

impl NodeFeed {
    /// The newest inventory; `None` = not every node was known yet. It has at least one node.
    #[must_use]
    pub fn inventory(&self) -> Option<Arc<Inventory>> {
        self.inventory.borrow().clone()
    }

    /// Waits for an inventory that this has not returned yet. Cancelling it loses nothing.
    ///
    /// # Errors
    /// When the source's task has ended.
    pub async fn changed(&mut self) -> Result<Arc<Inventory>, SourceEnded> {
        loop {
            self.inventory.changed().await.map_err(|_| SourceEnded)?;
            if let Some(inventory) = self.inventory.borrow_and_update().clone() {
                return Ok(inventory);
            }
        }
    }

    /// What is known of the source.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        self.status.borrow().clone()
    }

    /// Whether the source's task has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for NodeFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes a feed of what a task publishes.
pub(super) fn feed(source: String, spawn: impl FnOnce(Publisher) -> JoinHandle<()>) -> NodeFeed {
    let (inventory, inventories) = watch::channel(None);
    let (status, statuses) = watch::channel(SourceStatus {
        source,
        ..SourceStatus::default()
    });
    let publisher = Publisher {
        inventory,
        status,
        draft: Mutex::default(),
    };
    NodeFeed {
        inventory: inventories,
        status: statuses,
        task: spawn(publisher),
    }
}

/// A source that has no node to show, which cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one node was given: what was known before is kept")]
pub(super) struct NoNodes;

/// The writing end of a feed.
#[derive(Debug)]
pub(super) struct Publisher {
    inventory: watch::Sender<Option<Arc<Inventory>>>,
    status: watch::Sender<SourceStatus>,
    draft: Mutex<Draft>,
}

/// What is known so far; `None` = not all of them.
#[derive(Debug, Default)]
struct Draft {
    nodes: Option<BTreeMap<Arc<str>, Node>>,
    uplinks: Option<BTreeMap<Arc<str>, UplinkState>>,
}

impl Publisher {
    /// All nodes there are.
    pub(super) fn replace_nodes(&self, nodes: BTreeMap<Arc<str>, Node>) -> Result<(), NoNodes> {
        if nodes.is_empty() {
            return Err(NoNodes);
        }
        self.edit(|draft| replace(&mut draft.nodes, nodes));
        Ok(())
    }

    /// All `UplinkState`s there are.
    pub(super) fn replace_uplinks(&self, uplinks: BTreeMap<Arc<str>, UplinkState>) {
        self.edit(|draft| replace(&mut draft.uplinks, uplinks));
    }

    /// All objects there are.
    pub(super) fn replace(&self, inventory: Inventory) -> Result<(), NoNodes> {
        if inventory.nodes.is_empty() {
            return Err(NoNodes);
        }
        self.edit(|draft| {
            let nodes = replace(&mut draft.nodes, inventory.nodes);
            replace(&mut draft.uplinks, inventory.uplinks) | nodes
        });
        Ok(())
    }

    /// One node came, changed or (`None`) went; no effect before all nodes were given.
    pub(super) fn set_node(&self, name: &Arc<str>, node: Option<Node>) -> Result<(), NoNodes> {
        let mut last = false;
        self.edit(|draft| {
            last = node.is_none()
                && draft
                    .nodes
                    .as_ref()
                    .is_some_and(|nodes| nodes.len() == 1 && nodes.contains_key(name));
            !last && set(&mut draft.nodes, name, node)
        });
        if last { Err(NoNodes) } else { Ok(()) }
    }

    /// One `UplinkState` came, changed or (`None`) went; no effect before all were given.
    pub(super) fn set_uplink(&self, name: &Arc<str>, uplink: Option<UplinkState>) {
        self.edit(|draft| set(&mut draft.uplinks, name, uplink));
    }

    /// How many objects of a kind are known.
    pub(super) fn known(&self, kind: Kind) -> usize {
        self.status.borrow().of(kind).known
    }

    /// Whether every node was known once.
    pub(super) fn is_synced(&self) -> bool {
        self.status.borrow().synced
    }

    /// Changes what the source says of one kind.
    pub(super) fn count(&self, kind: Kind, change: impl FnOnce(&mut KindStatus)) {
        self.status.send_modify(|status| change(status.kind(kind)));
    }

    /// What is known of these kinds is not, or no longer, the newest.
    pub(super) fn failed(&self, kinds: &[Kind], error: String) {
        let mut repeated = true;
        self.status.send_modify(|status| {
            for kind in kinds {
                let kind = status.kind(*kind);
                repeated &= !std::mem::take(&mut kind.current);
                kind.failures = kind.failures.saturating_add(1);
            }
            repeated &= status.last_error.as_ref() == Some(&error);
            status.last_error = Some(error.clone());
        });
        // A server that is away is said to be so once, however often it is asked.
        if repeated {
            tracing::debug!(?kinds, error, "objects cannot be followed");
        } else {
            tracing::warn!(?kinds, error, "objects cannot be followed");
        }
    }

    /// An object cannot be told from others; it does not count.
    pub(super) fn refused(&self, kind: Kind, error: String) {
        let mut repeated = false;
        self.status.send_modify(|status| {
            repeated = status.last_error.as_ref() == Some(&error);
            let kind = status.kind(kind);
            kind.bad_objects = kind.bad_objects.saturating_add(1);
            status.last_error = Some(error.clone());
        });
        if repeated {
            tracing::debug!(%kind, error, "object refused");
        } else {
            tracing::warn!(%kind, error, "object refused");
        }
    }

    /// The source does not have a kind.
    pub(super) fn absent(&self, kind: Kind, why: String) {
        let news = self.status.send_if_modified(|status| {
            let kind = status.kind(kind);
            let differs = !kind.current || kind.absent.as_ref() != Some(&why);
            kind.current = true;
            kind.absent = Some(why.clone());
            differs
        });
        if news {
            tracing::info!(%kind, why, "the source does not have this kind");
        }
    }

    /// What is known of a kind is the newest.
    pub(super) fn current(&self, kind: Kind) {
        let news = self.status.send_if_modified(|status| {
            let kind = status.kind(kind);
            let differs = !kind.current || kind.absent.is_some();
            kind.current = true;
            kind.absent = None;
            differs
        });
        if news {
            let known = self.status.borrow().of(kind).known;
            tracing::info!(%kind, known, "objects are followed");
        }
    }

    fn edit(&self, change: impl FnOnce(&mut Draft) -> bool) {
        // Nothing panics while it is locked; a half-made change would be whole by itself.
        let mut draft = self.draft.lock().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut draft) {
            return;
        }
        let known = (
            draft.nodes.as_ref().map_or(0, BTreeMap::len),
            draft.uplinks.as_ref().map_or(0, BTreeMap::len),
        );
        let inventory = draft.inventory().map(Arc::new);
        self.status.send_modify(|status| {
            (status.nodes.known, status.uplink_states.known) = known;
            status.synced |= inventory.is_some();
        });
        if inventory.is_some() {
            self.inventory.send_replace(inventory);
        }
    }
}

impl SourceStatus {
    const fn kind(&mut self, kind: Kind) -> &mut KindStatus {
        match kind {
            Kind::Node => &mut self.nodes,
            Kind::UplinkState => &mut self.uplink_states,
        }
    }

    const fn of(&self, kind: Kind) -> &KindStatus {
        match kind {
            Kind::Node => &self.nodes,
            Kind::UplinkState => &self.uplink_states,
        }
    }
}

impl Draft {
    fn inventory(&self) -> Option<Inventory> {
        Some(Inventory {
            nodes: self.nodes.clone()?,
            uplinks: self.uplinks.clone()?,
        })
    }
}

/// Whether it made a difference.
fn replace<T: PartialEq>(
    known: &mut Option<BTreeMap<Arc<str>, T>>,
    all: BTreeMap<Arc<str>, T>,
) -> bool {
    let differs = known.as_ref() != Some(&all);
    *known = Some(all);
    differs
}

/// Whether it made a difference.
fn set<T: PartialEq>(
    known: &mut Option<BTreeMap<Arc<str>, T>>,
    name: &Arc<str>,
    object: Option<T>,
) -> bool {
    let Some(known) = known else {
        return false;
    };
    if known.get(name) == object.as_ref() {
        return false;
    }
    match object {
        Some(object) => drop(known.insert(Arc::clone(name), object)),
        None => drop(known.remove(name)),
    }
    true
}
