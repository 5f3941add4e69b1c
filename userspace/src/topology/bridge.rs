//! The Open vSwitch side of a group.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{IngressPort, SkipReason};
use crate::{
    ids::Mac,
    rows::{Bridge, Interface, Port, Rows},
};

/// A bridge with its ports in order of their names.
pub(super) struct BridgeView<'a> {
    pub(super) bridge: &'a Bridge,
    ports: BTreeMap<&'a str, PortView<'a>>,
    by_localnet: BTreeMap<&'a str, Vec<&'a str>>,
}

struct PortView<'a> {
    port: &'a Port,
    interfaces: Vec<&'a Interface>,
}

impl<'a> BridgeView<'a> {
    pub(super) fn new(rows: &'a Rows, bridge: &'a Bridge) -> Self {
        let mut ports = BTreeMap::new();
        let mut by_localnet: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for port in bridge.ports.iter().filter_map(|uuid| rows.ports.get(uuid)) {
            let interfaces = port.interfaces.iter();
            let interfaces = interfaces.filter_map(|uuid| rows.interfaces.get(uuid));
            let view = PortView {
                port,
                interfaces: interfaces.collect(),
            };
            ports.insert(&*port.name, view);
        }
        for (name, view) in &ports {
            if let Some(localnet) = view.port.external_ids.get("ovn-localnet-port") {
                by_localnet.entry(localnet).or_default().push(name);
            }
        }
        Self {
            bridge,
            ports,
            by_localnet,
        }
    }

    /// Localnet ports that have a patch port here, each with the patch ports' names.
    pub(super) fn localnet_ports(&self) -> impl Iterator<Item = (&'a str, &[&'a str])> {
        self.by_localnet
            .iter()
            .map(|(localnet, ports)| (*localnet, ports.as_slice()))
    }

    /// The patch port that ovn-controller made for a localnet port.
    pub(super) fn patch_port(&self, localnet: &Arc<str>) -> Result<IngressPort, SkipReason> {
        let bridge = || Arc::clone(&self.bridge.name);
        match self.by_localnet.get(&**localnet).map(Vec::as_slice) {
            None | Some([]) => Err(SkipReason::NoPatchPort {
                bridge: bridge(),
                localnet: Arc::clone(localnet),
            }),
            Some([name]) => self.numbered(name),
            Some(several) => Err(SkipReason::SeveralPatchPorts {
                bridge: bridge(),
                localnet: Arc::clone(localnet),
                count: several.len(),
            }),
        }
    }

    /// A port of one interface, with its number.
    pub(super) fn numbered(&self, name: &str) -> Result<IngressPort, SkipReason> {
        let no_number = || SkipReason::NoOfPort(name.into());
        let view = self.ports.get(name).ok_or_else(no_number)?;
        match view.interfaces.as_slice() {
            [interface] => Ok(IngressPort {
                name: Arc::clone(&interface.name),
                ofport: interface.ofport.ok_or_else(no_number)?,
            }),
            _ => Err(no_number()),
        }
    }

    /// The address of the bridge's own port: the one in use, else the configured one.
    pub(super) fn mac(&self) -> Result<Mac, SkipReason> {
        let own = self.ports.get(&*self.bridge.name);
        let interfaces = own.into_iter().flat_map(|view| &view.interfaces);
        let in_use = interfaces
            .filter(|interface| interface.name == self.bridge.name)
            .find_map(|interface| interface.mac_in_use);
        let configured = || self.bridge.other_config.get("hwaddr")?.parse().ok();
        in_use
            .or_else(configured)
            .filter(|mac: &Mac| !mac.is_zero() && !mac.is_multicast())
            .ok_or(SkipReason::NoMac)
    }

    /// Ports that lead somewhere else than to another bridge or to this node: the uplink, on a DPU the
    /// host's representors.
    pub(super) fn outside_ports(&self) -> Vec<&'a str> {
        let ports = self.ports.iter();
        ports
            .filter(|(name, view)| **name != &*self.bridge.name && !view.is_inside())
            .map(|(name, _)| *name)
            .collect()
    }

    /// The uplink: the port that `external_ids:bridge-uplink` names, else the only port of type
    /// system that does not face the host, else the port that has the bridge's name without `br`
    /// before it.
    pub(super) fn uplink(
        &self,
        faces_host: impl Fn(&str) -> bool,
    ) -> Result<IngressPort, SkipReason> {
        if let Some(named) = self.bridge.external_ids.get("bridge-uplink") {
            let port = self.ports.get(&**named);
            let port = port.ok_or_else(|| SkipReason::UplinkMissing(Arc::clone(named)))?;
            if *named == self.bridge.name || port.is_patch() {
                return Err(SkipReason::UplinkInside(Arc::clone(named)));
            }
            return self.uplink_port(port);
        }
        let system: BTreeSet<&str> = self
            .ports
            .iter()
            .filter(|(name, view)| **name != &*self.bridge.name && view.is_system())
            .filter(|(name, _)| !faces_host(name))
            .map(|(name, _)| *name)
            .collect();
        let named_after = self.bridge.name.strip_prefix("br").unwrap_or_default();
        let mut candidates = system.iter();
        let name = match (candidates.next(), candidates.next()) {
            (Some(only), None) => *only,
            _ if self.ports.contains_key(named_after) => named_after,
            (None, _) => return Err(SkipReason::NoUplink),
            _ => {
                let names: Vec<&str> = system.into_iter().collect();
                return Err(SkipReason::SeveralUplinks(names.join(", ")));
            }
        };
        let port = self.ports.get(name).ok_or(SkipReason::NoUplink)?;
        self.uplink_port(port)
    }

    fn uplink_port(&self, view: &PortView<'_>) -> Result<IngressPort, SkipReason> {
        if view.port.interfaces.len() > 1 {
            return Err(SkipReason::BondedUplink(Arc::clone(&view.port.name)));
        }
        self.numbered(&view.port.name)
    }
}

impl PortView<'_> {
    fn is_patch(&self) -> bool {
        self.interfaces.iter().any(|it| &*it.kind == "patch")
    }

    fn is_inside(&self) -> bool {
        let inside = |kind: &str| matches!(kind, "patch" | "internal");
        self.interfaces.iter().any(|it| inside(&it.kind))
    }

    /// Whether its devices are ordinary ones of the system. The column is empty for them too.
    fn is_system(&self) -> bool {
        !self.interfaces.is_empty()
            && self
                .interfaces
                .iter()
                .all(|interface| matches!(&*interface.kind, "" | "system"))
    }
}
