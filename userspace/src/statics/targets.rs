//! Which ports may hold static bindings of node IPs, and what may be done there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;

use crate::{
    ovsdb::Uuid,
    rows::{Rows, Table},
    topology::{Place, SkipReason, Topology, places},
};

/// What may be done with the rows of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// A follower's: every node IP is written there.
    Follower,
    /// The designated source's of an uplink: what it inherited as a follower is updated and deleted,
    /// and nothing is inserted.
    UplinkSource,
    /// The default network's router's: it learns by itself, and what is ours there goes.
    DefaultSource,
    /// A router that is in no group for a reason that the switch has, or that is not known, such as
    /// while ovs-vswitchd restarts: its rows are updated and deleted, and none is inserted.
    Held,
    /// A router whose bridge is left alone, since it is paused or somebody else steers there: its rows
    /// stay as they are. [`targets()`] says this of none; it is for the driver to say, so that the
    /// port is remembered: it may go meanwhile.
    Paused,
    /// A router that the northbound database no longer makes a follower: its rows go at once.
    Leaving,
    /// The router was deleted and made again under the same name, and northd has not seen that yet:
    /// rows go at once, and none is inserted before northd has.
    Recreated,
    /// The port or its router is gone, or on another chassis: the rows that we wrote go at once.
    Gone,
}

impl Treatment {
    /// Whether everything of ours goes without waiting for anything: on OVN 23.03 a row that is left
    /// for a deleted port stops northd.
    #[must_use]
    pub const fn is_urgent(self) -> bool {
        matches!(self, Self::Leaving | Self::Recreated | Self::Gone)
    }
}

/// A port that holds, or may hold, rows of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The router port's name, `logical_port` of its rows.
    pub port: Arc<str>,
    /// Its row in `Logical_Router_Port`; `None` where the port is gone.
    pub port_row: Option<Uuid>,
    /// The bridge whose nodes it should know; `None` where no mapping tells.
    pub bridge: Option<Arc<str>>,
    /// What may be done there.
    pub treatment: Treatment,
}

impl Target {
    /// Its rows stay as they are, but where they are a danger to northd.
    pub fn leave_alone(&mut self) {
        if !self.treatment.is_urgent() {
            self.treatment = Treatment::Paused;
        }
    }
}

/// The ports of this chassis' gateway routers, and those that `remembered` names besides: ports to
/// which this agent has written once ([`StaticBindings::remembered`](super::StaticBindings::remembered)).
/// Sorted by the port's name.
///
/// Ports of other chassis' gateway routers are no targets: whoever runs there owns them.
#[must_use]
pub fn targets(rows: &Rows, topology: &Topology, remembered: &BTreeSet<Arc<str>>) -> Vec<Target> {
    targets_at(&places(rows), rows, topology, remembered)
}

/// The same where [`places`] of the rows are known already: to find them takes most of the time.
#[must_use]
pub fn targets_at(
    places: &[Place],
    rows: &Rows,
    topology: &Topology,
    remembered: &BTreeSet<Arc<str>>,
) -> Vec<Target> {
    let reasons: BTreeMap<&str, &SkipReason> = topology
        .skipped
        .iter()
        .map(|skipped| (&*skipped.object, &skipped.reason))
        .collect();
    let mut targets: BTreeMap<Arc<str>, Target> = BTreeMap::new();
    for place in places {
        let treatment = treatment(place, topology, reasons.get(&*place.router).copied());
        let target = Target {
            port: Arc::clone(&place.port),
            port_row: Some(place.port_row),
            bridge: place.bridge.clone(),
            treatment,
        };
        targets.insert(Arc::clone(&place.port), target);
    }
    let forgotten = remembered
        .iter()
        .filter(|port| !targets.contains_key(*port));
    let forgotten: Vec<Target> = forgotten
        .map(|port| missing(port, rows, topology))
        .collect();
    targets.extend(forgotten.into_iter().map(|it| (Arc::clone(&it.port), it)));
    targets.into_values().collect()
}

/// A port that was written to and that no gateway router of this chassis has.
fn missing(port: &Arc<str>, rows: &Rows, topology: &Topology) -> Target {
    let row = rows.router_ports.iter().find(|(_, row)| row.name == *port);
    // A router whose row cannot be read, or an agent that does not know its own chassis, is no
    // reason to take a port for gone that is there.
    let unreadable = rows
        .unreadable
        .keys()
        .any(|(table, _)| matches!(table, Table::LogicalRouter | Table::LogicalRouterPort));
    let unknown = unreadable || (row.is_some() && topology.chassis.is_none());
    Target {
        port: Arc::clone(port),
        port_row: row.map(|(uuid, _)| *uuid),
        bridge: None,
        treatment: if unknown {
            Treatment::Held
        } else {
            Treatment::Gone
        },
    }
}

fn treatment(place: &Place, topology: &Topology, reason: Option<&SkipReason>) -> Treatment {
    // northd 23.03 would give a row that stays to the former router's port, and could not delete that.
    if place.is_former_in_southbound {
        return Treatment::Recreated;
    }
    if place.network.is_none() {
        return Treatment::DefaultSource;
    }
    for group in &topology.groups {
        if group.source.name == place.router {
            return Treatment::UplinkSource;
        }
        let mut followers = group.followers.iter();
        if let Some(router) = followers.find(|router| router.name == place.router) {
            // Without a datapath northd has not seen the port yet.
            return if router.datapath.is_some() {
                Treatment::Follower
            } else {
                Treatment::Held
            };
        }
    }
    match reason {
        Some(reason) if has_left(reason) => Treatment::Leaving,
        _ => Treatment::Held,
    }
}

/// Whether the northbound database says that a router is no follower (any more). What it says twice
/// or only in part is no such word.
const fn has_left(reason: &SkipReason) -> bool {
    matches!(
        reason,
        SkipReason::NotPrimary(_)
            | SkipReason::NoExternalSwitch(_)
            | SkipReason::NoLocalnetPort(_)
            | SkipReason::OtherVlan { .. }
    )
}
