//! What the static bindings of each bridge's followers should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use serde::Serialize;

use super::{Masquerade, claims::Claims};
use crate::{
    ids::Mac,
    nodes::{Inventory, Node, Problem, UplinkState},
    rows::Rows,
    topology::{Place, Prefix, Topology, places},
};

/// What an address needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// A row with this MAC at every follower.
    Binding(Mac),
    /// A node has the address, and its MAC cannot be told now: rows stay as they are.
    Keep,
}

/// What a bridge's followers need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeBindings {
    /// By the other nodes' addresses on the bridge's network. An address that is not here is no
    /// node's, and rows for it go.
    pub bindings: BTreeMap<IpAddr, Wanted>,
    /// Whether rows stay whose address is not in `bindings`: an object tells none of its addresses.
    pub keep_unlisted: bool,
    /// All addresses of nodes, this one's and those of other networks included: what is not mirrored.
    pub node_ips: BTreeSet<IpAddr>,
}

impl BridgeBindings {
    /// The addresses whose MAC cannot be told: a follower without a row has none until it can.
    pub fn untold(&self) -> impl Iterator<Item = IpAddr> {
        let bindings = self.bindings.iter();
        bindings
            .filter(|(_, wanted)| **wanted == Wanted::Keep)
            .map(|(ip, _)| *ip)
    }

    /// How many rows a follower needs.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.bindings.len() - self.untold().count()
    }
}

/// What all followers need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedBindings {
    /// By bridge. Nothing is changed at the followers of a bridge that is not here, since its nodes are
    /// not known.
    pub bridges: BTreeMap<Arc<str>, BridgeBindings>,
    /// What is wrong with the objects.
    pub warnings: BTreeSet<Warning>,
}

impl WantedBindings {
    /// The same without bindings of IPv6 addresses, whose rows go: for a gateway that has IPv4 only.
    #[must_use]
    pub fn without_ipv6(mut self) -> Self {
        for bridge in self.bridges.values_mut() {
            bridge.bindings.retain(|ip, _| ip.is_ipv4());
        }
        self
    }
}

/// Something about nodes that people should look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Warning {
    /// A node's MAC cannot be told.
    #[error("node {node} has no binding, what there is stays: {problem}")]
    NodeUntold {
        /// The node.
        node: Arc<str>,
        /// Why.
        problem: Problem,
    },
    /// Something of a node is left out.
    #[error("something of node {node} is left out: {problem}")]
    NodeProblem {
        /// The node.
        node: Arc<str>,
        /// What.
        problem: Problem,
    },
    /// The MAC of a node at an uplink cannot be told.
    #[error("UplinkState {object} gives no binding, what there is stays: {problem}")]
    UplinkUntold {
        /// The object's name.
        object: Arc<str>,
        /// Why.
        problem: Problem,
    },
    /// Something of an UplinkState is left out.
    #[error("something of UplinkState {object} is left out: {problem}")]
    UplinkProblem {
        /// The object's name.
        object: Arc<str>,
        /// What.
        problem: Problem,
    },
    /// Several nodes have one address.
    #[error("{ip} is claimed by {}, who differ about its MAC: what there is stays", nodes.join(", "))]
    Conflict {
        /// The address.
        ip: IpAddr,
        /// The nodes.
        nodes: Vec<Arc<str>>,
    },
    /// A node has an address that is the gateway's.
    #[error(
        "node {node} has {ip}, which is one of the gateway's masquerade addresses: it gets no binding"
    )]
    InMasquerade {
        /// The address.
        ip: IpAddr,
        /// The node.
        node: Arc<str>,
    },
    /// A node has an address that is this node's or no host's, or the MAC of this node's bridge.
    #[error(
        "node {node} has {ip}, which is this node's or no host's, or has the MAC of this node's bridge: it gets no binding"
    )]
    Unusable {
        /// The address.
        ip: IpAddr,
        /// The node.
        node: Arc<str>,
    },
    /// Several nodes say that they are on this chassis.
    #[error("{} say that they are on this chassis; taken for this node: {chosen}", nodes.join(", "))]
    SameChassis {
        /// The nodes.
        nodes: Vec<Arc<str>>,
        /// The one that counts.
        chosen: Arc<str>,
    },
    /// This node is not among the nodes.
    #[error(
        "no node has this chassis' name in k8s.ovn.org/node-chassis-id, and none the configured name"
    )]
    OwnNodeUnknown,
    /// This node has no UplinkState for a bridge, or several.
    #[error(
        "{count} uplinks of this node name the bridge {bridge}, so that its nodes are not known"
    )]
    UplinkUnknown {
        /// The bridge.
        bridge: Arc<str>,
        /// How many.
        count: usize,
    },
}

impl Warning {
    /// A short name of its kind, for counters.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NodeUntold { .. } => "node_untold",
            Self::NodeProblem { .. } => "node_problem",
            Self::UplinkUntold { .. } => "uplink_untold",
            Self::UplinkProblem { .. } => "uplink_problem",
            Self::Conflict { .. } => "conflict",
            Self::InMasquerade { .. } => "in_masquerade",
            Self::Unusable { .. } => "unusable",
            Self::SameChassis { .. } => "same_chassis",
            Self::OwnNodeUnknown => "own_node_unknown",
            Self::UplinkUnknown { .. } => "uplink_unknown",
        }
    }
}

/// What says which node is this one, and which addresses are the gateway's.
#[derive(Clone, Copy, Debug)]
pub struct OwnNode<'a> {
    /// The configured name, where there is one: it counts where no node has this chassis' name.
    pub name: Option<&'a str>,
    /// The gateway's addresses.
    pub masquerade: &'a Masquerade,
}

/// What the followers of each bridge need. `None` where the nodes are not known: an inventory without
/// any node is one that was not read.
#[must_use]
pub fn wanted(
    inventory: Option<&Inventory>,
    rows: &Rows,
    topology: &Topology,
    own: OwnNode<'_>,
) -> Option<WantedBindings> {
    wanted_at(inventory, &places(rows), topology, own)
}

/// The same where [`places`] of the rows are known already: to find them takes most of the time.
#[must_use]
pub fn wanted_at(
    inventory: Option<&Inventory>,
    places: &[Place],
    topology: &Topology,
    own: OwnNode<'_>,
) -> Option<WantedBindings> {
    let inventory = inventory.filter(|inventory| !inventory.nodes.is_empty())?;
    let mut planner = Planner {
        inventory,
        own_name: own_node(inventory, topology, own.name),
        masquerade: own.masquerade,
        warnings: BTreeSet::new(),
    };
    match planner.own_name {
        None => drop(planner.warnings.insert(Warning::OwnNodeUnknown)),
        Some(chosen) => {
            let nodes = inventory.nodes.iter();
            let here = nodes.filter(|(_, node)| is_here(node, topology));
            let here: Vec<Arc<str>> = here.map(|(name, _)| Arc::clone(name)).collect();
            if here.len() > 1 {
                planner.warnings.insert(Warning::SameChassis {
                    nodes: here,
                    chosen: Arc::clone(chosen),
                });
            }
        }
    }
    let mut bridges: BTreeMap<Arc<str>, BridgeBindings> = BTreeMap::new();
    let named: BTreeSet<&Arc<str>> = places.iter().filter_map(|it| it.bridge.as_ref()).collect();
    for bridge in named {
        let network = ExternalNetwork::of(bridge, places, topology);
        let bindings = match network.kind {
            Kind::Default => Some(planner.default_network(&network)),
            Kind::Uplink => planner.uplink(bridge, &network),
            Kind::Unknown => None,
        };
        bridges.extend(bindings.map(|bindings| (Arc::clone(bridge), bindings)));
    }
    Some(WantedBindings {
        bridges,
        warnings: planner.warnings,
    })
}

fn is_here(node: &Node, topology: &Topology) -> bool {
    topology.chassis.is_some() && node.chassis == topology.chassis
}

/// Which node is this one: that of this chassis, else the one of the configured name.
#[must_use]
pub fn own_node<'a>(
    inventory: &'a Inventory,
    topology: &Topology,
    name: Option<&str>,
) -> Option<&'a Arc<str>> {
    let on_chassis = |node: &Node| is_here(node, topology);
    let mut same = inventory.nodes.iter().filter(|(_, node)| on_chassis(node));
    let configured = name.and_then(|name| inventory.nodes.get_key_value(name));
    match configured {
        Some((name, node)) if on_chassis(node) => Some(name),
        _ => same.next().or(configured).map(|(name, _)| name),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Default,
    Uplink,
    Unknown,
}

/// The network behind a bridge, as the northbound database describes it: it does not change when the
/// switch restarts.
struct ExternalNetwork {
    kind: Kind,
    subnets: Vec<Prefix>,
    own: BTreeSet<IpAddr>,
    bridge_mac: Option<Mac>,
}

impl ExternalNetwork {
    fn of(bridge: &Arc<str>, places: &[Place], topology: &Topology) -> Self {
        let here = || {
            places
                .iter()
                .filter(|it| it.bridge.as_ref() == Some(bridge))
        };
        let source = topology.group(bridge).map(|group| &group.source.name);
        let kind = if here().any(|place| place.network.is_none()) {
            Kind::Default
        } else if here().any(|place| place.has_uplink) {
            Kind::Uplink
        } else {
            // The default network's router is gone: whose addresses count here is not known.
            Kind::Unknown
        };
        let decides = |place: &&Place| match kind {
            Kind::Default => place.network.is_none(),
            _ => place.has_uplink && source.is_none_or(|source| *source == place.router),
        };
        let networks = here().filter(decides).flat_map(|place| &place.networks);
        let own = here().flat_map(|place| &place.networks);
        let node_addresses = topology.group(bridge).map(|group| &group.node_addresses);
        Self {
            kind,
            subnets: networks.filter(|it| !it.is_host()).copied().collect(),
            own: own
                .map(|network| network.address)
                .chain(node_addresses.into_iter().flatten().copied())
                .collect(),
            bridge_mac: topology.group(bridge).map(|group| group.bridge_mac),
        }
    }
}

struct Planner<'a> {
    inventory: &'a Inventory,
    own_name: Option<&'a Arc<str>>,
    masquerade: &'a Masquerade,
    warnings: BTreeSet<Warning>,
}

impl<'a> Planner<'a> {
    fn default_network(&mut self, network: &ExternalNetwork) -> BridgeBindings {
        let mut drawn = Drawn::new(network);
        for (name, node) in &self.inventory.nodes {
            let problems = node.problems.iter().cloned();
            let problems = problems.map(|problem| Warning::NodeProblem {
                node: Arc::clone(name),
                problem,
            });
            self.warnings.extend(problems);
            // A node without a gateway has no MAC that others could be told: it is mirrored as any
            // neighbour.
            if node.gateway == Err(Problem::GatewayDisabled) {
                continue;
            }
            drawn.keep_unlisted |= node.internal_ips.is_empty() && unreadable(&node.problems);
            drawn.bindings.node_ips.extend(&node.internal_ips);
            if Some(name) == self.own_name {
                let ips = node.internal_ips.iter();
                drawn
                    .contested
                    .extend(ips.map(|ip| (*ip, Arc::clone(name))));
                continue;
            }
            let mac = node.gateway.as_ref().map(|gateway| gateway.mac);
            if let Err(problem) = &mac {
                self.warnings.insert(Warning::NodeUntold {
                    node: Arc::clone(name),
                    problem: (*problem).clone(),
                });
            }
            for ip in &node.internal_ips {
                self.claim(*ip, mac.ok(), name, &mut drawn);
            }
        }
        self.finish(drawn)
    }

    /// `None` where this node's UplinkStates do not say which uplink the bridge is.
    fn uplink(&mut self, bridge: &Arc<str>, network: &ExternalNetwork) -> Option<BridgeBindings> {
        let own_name = self.own_name;
        let states = self.inventory.uplinks.values();
        let ours = |state: &&UplinkState| Some(&state.node) == own_name;
        let named = states
            .filter(ours)
            .filter(|it| it.bridge.as_ref() == Some(bridge));
        let named: BTreeSet<&Arc<str>> = named.map(|state| &state.uplink).collect();
        let mut uplinks = named.iter();
        let (Some(uplink), None) = (uplinks.next(), uplinks.next()) else {
            self.warnings.insert(Warning::UplinkUnknown {
                bridge: Arc::clone(bridge),
                count: named.len(),
            });
            return None;
        };
        let mut drawn = Drawn::new(network);
        for (object, state) in &self.inventory.uplinks {
            if state.uplink != **uplink {
                continue;
            }
            let problems = state.problems.iter().cloned();
            let problems = problems.map(|problem| Warning::UplinkProblem {
                object: Arc::clone(object),
                problem,
            });
            self.warnings.extend(problems);
            let ips = state.addresses.iter().map(|prefix| prefix.address);
            drawn.keep_unlisted |= state.addresses.is_empty() && unreadable(&state.problems);
            drawn.bindings.node_ips.extend(ips.clone());
            if Some(&state.node) == own_name {
                drawn
                    .contested
                    .extend(ips.map(|ip| (ip, Arc::clone(&state.node))));
                continue;
            }
            if let Err(problem) = &state.mac {
                self.warnings.insert(Warning::UplinkUntold {
                    object: Arc::clone(object),
                    problem: problem.clone(),
                });
            }
            for ip in ips {
                self.claim(
                    ip,
                    state.mac.as_ref().ok().copied(),
                    &state.node,
                    &mut drawn,
                );
            }
        }
        Some(self.finish(drawn))
    }

    /// Another node claims an address: it counts where this node reaches it without a router.
    fn claim(&mut self, ip: IpAddr, mac: Option<Mac>, node: &Arc<str>, drawn: &mut Drawn<'_>) {
        if !drawn.subnets.iter().any(|subnet| subnet.contains(ip)) {
            return;
        }
        let unusable = drawn.own.contains(&ip)
            || drawn.subnets.iter().any(|subnet| subnet.is_reserved(ip))
            || mac.is_some_and(|mac| drawn.bridge_mac == Some(mac));
        if unusable {
            self.warnings.insert(Warning::Unusable {
                ip,
                node: Arc::clone(node),
            });
            return;
        }
        if self.masquerade.contains(ip) {
            self.warnings.insert(Warning::InMasquerade {
                ip,
                node: Arc::clone(node),
            });
            return;
        }
        drawn.claims.add(ip, mac, node);
    }

    fn finish(&mut self, mut drawn: Drawn<'_>) -> BridgeBindings {
        let mut bindings = drawn.bindings;
        bindings.node_ips.extend(&drawn.own);
        bindings.keep_unlisted = drawn.keep_unlisted;
        for (ip, node) in &drawn.contested {
            drawn.claims.contest(*ip, node);
        }
        bindings.bindings = drawn.claims.settle(&mut self.warnings);
        // This node's own addresses are the routers' own, whoever else claims them.
        bindings.bindings.retain(|ip, _| !drawn.own.contains(ip));
        bindings
    }
}

/// What is gathered for one bridge.
struct Drawn<'a> {
    subnets: &'a [Prefix],
    own: BTreeSet<IpAddr>,
    bridge_mac: Option<Mac>,
    /// What this node claims: its own addresses are the routers', and the others may be another's.
    contested: Vec<(IpAddr, Arc<str>)>,
    claims: Claims,
    keep_unlisted: bool,
    bindings: BridgeBindings,
}

impl<'a> Drawn<'a> {
    fn new(network: &'a ExternalNetwork) -> Self {
        Self {
            subnets: &network.subnets,
            own: network.own.clone(),
            bridge_mac: network.bridge_mac,
            contested: Vec::new(),
            claims: Claims::default(),
            keep_unlisted: false,
            bindings: BridgeBindings::default(),
        }
    }
}

fn unreadable(problems: &[Problem]) -> bool {
    let mut problems = problems.iter();
    problems.any(|problem| matches!(problem, Problem::Unreadable { .. }))
}
