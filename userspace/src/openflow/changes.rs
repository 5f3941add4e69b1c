//! What must be written so that installed flows become the desired ones.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Cookie, Flow, FlowKey};

/// Writes that bring a bridge from what is installed to what is desired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowChanges {
    /// Ours that are installed and no longer desired.
    pub delete: Vec<Flow>,
    /// Desired that are missing, or installed under our cookie with other actions.
    pub add: Vec<Flow>,
    /// Installed under another cookie with the identity of a desired flow. Adding ours would
    /// overwrite these, so that the desired one is not among `add`.
    pub foreign: Vec<Flow>,
}

impl FlowChanges {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.add.is_empty()
    }
}

/// Compares the flows of one owner. `installed` may hold others' flows too: they are never deleted
/// nor overwritten. The result is sorted by table, priority and match.
#[must_use]
pub fn diff<'a>(
    ours: Cookie,
    desired: &'a [Flow],
    installed: impl IntoIterator<Item = &'a Flow>,
) -> FlowChanges {
    let by_key = |flow: &'a Flow| (flow.key(), flow);
    let installed: BTreeMap<FlowKey, &Flow> = installed.into_iter().map(by_key).collect();
    let desired: BTreeMap<FlowKey, &Flow> = desired.iter().map(by_key).collect();
    let mut changes = FlowChanges::default();
    for (key, flow) in &installed {
        if flow.cookie == ours && !desired.contains_key(key) {
            changes.delete.push((*flow).clone());
        }
    }
    for (key, flow) in desired {
        match installed.get(&key) {
            Some(there) if there.cookie != ours => changes.foreign.push((*there).clone()),
            Some(there) if there.actions == flow.actions => {}
            _ => changes.add.push(flow.clone()),
        }
    }
    changes
}
