//! What is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    ids::OfPort,
    openflow::{InstalledFlow, Port, PortDescription, unixctl::FdbEntry},
    rows::Rows,
};

/// One bridge as it is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// All of its flows, whoever owns them.
    pub flows: Vec<InstalledFlow>,
    /// Its ports as it describes them over OpenFlow.
    pub ports: Vec<PortDescription>,
    /// Its forwarding table.
    pub fdb: Vec<FdbEntry>,
    /// What its ports are called.
    pub names: PortNames,
}

/// The names of ports by number, which OpenFlow cuts off, and what is behind a bridge's patch ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNames {
    bridge: Arc<str>,
    names: BTreeMap<OfPort, Arc<str>>,
    /// The same of all bridges.
    of_bridges: BTreeMap<Arc<str>, BTreeMap<OfPort, Arc<str>>>,
    patches: BTreeSet<OfPort>,
    /// The port on this bridge, by the name of the other bridge's end of the same patch.
    peers: BTreeMap<Arc<str>, Arc<str>>,
}

impl PortNames {
    /// Reads them out of the switch's rows. The two ends of a patch are told by the localnet port
    /// that ovn-controller made both for (`external_ids:ovn-localnet-port`).
    #[must_use]
    pub fn of(rows: &Rows, bridge: &str) -> Self {
        let mut found = Self {
            bridge: bridge.into(),
            ..Self::default()
        };
        let mut here: BTreeMap<&str, &Arc<str>> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for row in rows.bridges.values() {
            let is_own = &*row.name == bridge;
            let mut names = BTreeMap::new();
            for port in row.ports.iter().filter_map(|uuid| rows.ports.get(uuid)) {
                if let Some(localnet) = port.external_ids.get("ovn-localnet-port") {
                    if is_own {
                        here.insert(localnet, &port.name);
                    } else {
                        elsewhere.push((localnet, &port.name));
                    }
                }
                let interfaces = port.interfaces.iter();
                for interface in interfaces.filter_map(|it| rows.interfaces.get(it)) {
                    let Some(ofport) = interface.ofport else {
                        continue;
                    };
                    names.insert(ofport, Arc::clone(&interface.name));
                    if is_own && &*interface.kind == "patch" {
                        found.patches.insert(ofport);
                    }
                }
            }
            if is_own {
                found.names.clone_from(&names);
            }
            found.of_bridges.insert(Arc::clone(&row.name), names);
        }
        for (localnet, name) in elsewhere {
            if let Some(own) = here.get(&**localnet) {
                found.peers.insert(Arc::clone(name), Arc::clone(own));
            }
        }
        found
    }

    /// The name of a port of any bridge, `LOCAL` included, by what Open vSwitch prints for it.
    #[must_use]
    pub fn printed(&self, bridge: &str, port: &str) -> Option<Arc<str>> {
        if port == "LOCAL" {
            return Some(bridge.into());
        }
        let number = OfPort::from_column(port.parse().ok())?;
        self.of_bridges.get(bridge)?.get(&number).map(Arc::clone)
    }

    /// A port as people know it: by name, or by number where it has none.
    #[must_use]
    pub fn name(&self, port: Port) -> Arc<str> {
        match port {
            Port::Local => Arc::clone(&self.bridge),
            Port::Number(number) => self
                .names
                .get(&number)
                .map_or_else(|| number.to_string().into(), Arc::clone),
        }
    }

    /// The port of a name or a number, `LOCAL` and the bridge's own name included.
    #[must_use]
    pub fn port(&self, text: &str) -> Option<Port> {
        if *text == *self.bridge || text.eq_ignore_ascii_case("LOCAL") {
            return Some(Port::Local);
        }
        let named = self.names.iter().find(|(_, name)| &***name == text);
        let number =
            || OfPort::from_column(text.parse().ok()).filter(|port| self.names.contains_key(port));
        named
            .map(|(port, _)| *port)
            .or_else(number)
            .map(Port::Number)
    }

    /// The numbers of patch ports.
    #[must_use]
    pub const fn patches(&self) -> &BTreeSet<OfPort> {
        &self.patches
    }

    /// The port on this bridge whose other end has this name on another bridge.
    #[must_use]
    pub fn behind(&self, peer: &str) -> Option<&Arc<str>> {
        self.peers.get(peer)
    }
}
