//! Gateway routers as the northbound database alone has them.

use std::sync::Arc;

use super::{Prefix, build::Builder};
use crate::{ovsdb::Uuid, rows::Rows};

/// A gateway router of this chassis, whether or not it is in a group: whether the switch has its part
/// does not matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The router's name.
    pub router: Arc<str>,
    /// Its user-defined network, `None` for the default network.
    pub network: Option<Arc<str>>,
    /// The name of its external port, `rtoe-…`.
    pub port: Arc<str>,
    /// That port's row.
    pub port_row: Uuid,
    /// Whether the southbound port is still that of another router, which had the name before: northd
    /// has not yet seen that one go.
    pub is_former_in_southbound: bool,
    /// That port's addresses, sorted; those that cannot be read are left out.
    pub networks: Vec<Prefix>,
    /// The bridge that its physical network is mapped to.
    pub bridge: Option<Arc<str>>,
    /// Whether the physical network is its own (OKEP-6019), so that the bridge is an uplink's.
    pub has_uplink: bool,
}

/// The gateway routers of this chassis that have an external port, by name.
#[must_use]
pub fn places(rows: &Rows) -> Vec<Place> {
    let mut builder = Builder::new(rows);
    let Some(chassis) = builder.chassis() else {
        return Vec::new();
    };
    builder.read_mappings(&chassis);
    let routers = rows.routers.iter().filter(|(_, router)| {
        let pinned = router.options.get("chassis");
        router.name.starts_with("GR_") && pinned.is_some_and(|pinned| **pinned == *chassis)
    });
    let mut places = Vec::new();
    for (row, router) in routers {
        let Ok((port_row, port)) = builder.external_port(router) else {
            continue;
        };
        let localnet = builder.localnet_port(&port.name).ok();
        let physical = localnet.and_then(|(localnet, _)| localnet.options.get("network_name"));
        let network = router.external_ids.get("k8s.ovn.org/network");
        places.push(Place {
            router: Arc::clone(&router.name),
            network: network.cloned(),
            port: Arc::clone(&port.name),
            port_row,
            is_former_in_southbound: builder.is_former(*row, &port.name),
            networks: builder.networks(port),
            bridge: physical.and_then(|physical| builder.mappings.get(&**physical).cloned()),
            has_uplink: physical.is_some() && network == physical,
        });
    }
    places.sort_by(|a, b| a.router.cmp(&b.router));
    places
}
