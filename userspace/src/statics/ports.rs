//! The ports that are known, by name and number.

use std::{collections::BTreeMap, sync::Arc};

use super::{Target, Treatment};
use crate::{mirror::Millis, ovsdb::Uuid};

/// A port's number. It is never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PortId(pub(super) u32);

/// A bridge's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BridgeId(pub(super) usize);

/// A port that is a target or has rows.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) name: Arc<str>,
    /// Where it is a target.
    pub(super) role: Option<Role>,
    /// Its rows, those that are spared left out.
    pub(super) ours: usize,
    /// All its rows.
    pub(super) rows: usize,
    /// Nothing is inserted before: a guard did not hold.
    pub(super) barred_until: Option<Millis>,
    /// How often in a row a guard did not hold.
    pub(super) barred: u32,
}

/// What may be done with a port's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) port_row: Option<Uuid>,
    pub(super) bridge: Option<BridgeId>,
    pub(super) treatment: Treatment,
}

impl Port {
    pub(super) fn treatment(&self) -> Option<Treatment> {
        Some(self.role.as_ref()?.treatment)
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.treatment().is_some_and(Treatment::is_urgent)
    }
}

/// All ports, in order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    ports: BTreeMap<PortId, Port>,
    by_name: BTreeMap<Arc<str>, PortId>,
    bridges: Vec<Arc<str>>,
    next: u32,
}

impl Ports {
    pub(super) fn get(&self, id: PortId) -> Option<&Port> {
        self.ports.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: PortId) -> Option<&mut Port> {
        self.ports.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PortId, &Port)> {
        self.ports.iter().map(|(id, port)| (*id, port))
    }

    /// The bridges that any port ever was on.
    pub(super) fn bridges(&self) -> &[Arc<str>] {
        &self.bridges
    }

    /// The number of a port, which is new where it was not known.
    pub(super) fn intern(&mut self, name: &Arc<str>) -> PortId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = PortId(self.next);
        self.next = self.next.saturating_add(1);
        self.by_name.insert(Arc::clone(name), id);
        let port = Port {
            name: Arc::clone(name),
            role: None,
            ours: 0,
            rows: 0,
            barred_until: None,
            barred: 0,
        };
        self.ports.insert(id, port);
        id
    }

    /// What a target says of a port.
    pub(super) fn role(&mut self, target: &Target) -> Role {
        Role {
            port_row: target.port_row,
            bridge: target.bridge.as_ref().map(|bridge| self.bridge(bridge)),
            treatment: target.treatment,
        }
    }

    fn bridge(&mut self, name: &Arc<str>) -> BridgeId {
        let known = self.bridges.iter().position(|bridge| bridge == name);
        BridgeId(known.unwrap_or_else(|| {
            self.bridges.push(Arc::clone(name));
            self.bridges.len() - 1
        }))
    }

    /// Forgets a port that is no target and has no rows.
    pub(super) fn tidy(&mut self, id: PortId) {
        let idle = |port: &Port| port.role.is_none() && port.rows == 0;
        if self.ports.get(&id).is_some_and(idle)
            && let Some(port) = self.ports.remove(&id)
        {
            self.by_name.remove(&port.name);
        }
    }
}
