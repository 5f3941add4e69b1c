//! Which flows that hand a frame to several gateway routers neighbour and multicast traffic reaches.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{FanOut, Observed, leads::Leads, region::Region};
use crate::{
    ids::{Mac, OfPort},
    openflow::{Action, Flow, Match, Port, Protocol},
    plan::host_port,
    topology::BridgeGroup,
};

/// A kind of neighbour or multicast traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// ARP to the shared address.
    UnicastArp,
    /// A Neighbor Solicitation to the shared address.
    UnicastNs,
    /// A Neighbor Advertisement to the shared address.
    UnicastNa,
    /// A Router Advertisement to the shared address.
    UnicastRa,
    /// ARP to all.
    BroadcastArp,
    /// A Neighbor Solicitation to a group.
    MulticastNs,
    /// A Neighbor Advertisement to all nodes.
    MulticastNa,
    /// A Router Advertisement to all nodes.
    MulticastRa,
    /// Anything else to a group.
    OtherMulticast,
}

impl TrafficKind {
    const ALL: [Self; 9] = [
        Self::UnicastArp,
        Self::UnicastNs,
        Self::UnicastNa,
        Self::UnicastRa,
        Self::BroadcastArp,
        Self::MulticastNs,
        Self::MulticastNa,
        Self::MulticastRa,
        Self::OtherMulticast,
    ];

    /// Whether it goes to a group.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        !matches!(
            self,
            Self::UnicastArp | Self::UnicastNs | Self::UnicastNa | Self::UnicastRa
        )
    }

    const fn is_arp(self) -> bool {
        matches!(self, Self::UnicastArp | Self::BroadcastArp)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::UnicastArp => "unicast ARP",
            Self::UnicastNs => "unicast NS",
            Self::UnicastNa => "unicast NA",
            Self::UnicastRa => "unicast RA",
            Self::BroadcastArp => "broadcast ARP",
            Self::MulticastNs => "multicast NS",
            Self::MulticastNa => "multicast NA",
            Self::MulticastRa => "multicast RA",
            Self::OtherMulticast => "other multicast",
        }
    }

    /// Its frames on a bridge, by one port.
    fn region(self, group: &BridgeGroup, in_port: Port) -> Region {
        let icmpv6_type = match self {
            Self::UnicastNs | Self::MulticastNs => Some(135),
            Self::UnicastNa | Self::MulticastNa => Some(136),
            Self::UnicastRa | Self::MulticastRa => Some(134),
            Self::UnicastArp | Self::BroadcastArp | Self::OtherMulticast => None,
        };
        let dl_dst = match self {
            Self::UnicastArp | Self::UnicastNs | Self::UnicastNa | Self::UnicastRa => {
                Some(group.bridge_mac)
            }
            Self::BroadcastArp => Some(Mac::BROADCAST),
            Self::MulticastNa | Self::MulticastRa => Some(Mac::ALL_NODES),
            // Solicited-node groups differ, and so do others.
            Self::MulticastNs | Self::OtherMulticast => None,
        };
        let protocol = match self {
            _ if self.is_arp() => Some(Protocol::Arp),
            Self::OtherMulticast => None,
            _ => Some(Protocol::Icmp6),
        };
        Region {
            fields: Match {
                in_port: Some(in_port),
                dl_vlan: group.gateway_vlan,
                dl_dst,
                protocol,
                icmpv6_type,
                ..Match::default()
            },
            multicast: self.is_multicast(),
        }
    }
}

impl fmt::Display for TrafficKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The gateway routers' patch ports that a flow outputs to by their numbers.
struct Outputs {
    routers: BTreeSet<OfPort>,
    ports: usize,
    floods: bool,
    normal: bool,
}

/// Patch ports on the bridge, as far as this matters.
struct Routers {
    /// Those that are not of secondary localnet networks: each has a gateway router behind it,
    /// whether or not it is in the group.
    all: BTreeSet<OfPort>,
    source: OfPort,
    /// Whether flooded frames reach the source.
    source_floods: bool,
}

/// The flows that traffic reaches and that hand it to more than one gateway router, in the order of
/// the pipeline.
///
/// A flow counts as out of reach only where, for each kind of traffic that it would take, a single
/// flow of a higher priority takes all of it; what cannot be told counts as within reach.
pub(super) fn fan_outs(group: &BridgeGroup, observed: &Observed) -> Vec<FanOut> {
    let secondary: BTreeSet<OfPort> = group.secondary.iter().map(|it| it.ofport).collect();
    let source = group.source.ofport;
    let mut ports = observed.ports.iter();
    let routers = Routers {
        all: observed.names.patches() - &secondary,
        source,
        source_floods: !ports.any(|port| port.ofport == source && port.no_flood),
    };
    let pipeline = Pipeline::new(observed, &routers);
    if pipeline.suspects == 0 {
        return Vec::new();
    }
    let mut found: BTreeMap<usize, FanOut> = BTreeMap::new();
    for (kind, region) in traffic(group, observed) {
        pipeline.walk(&region, |entry| {
            let reached = routers.reached(&entry.outputs, kind, region.in_port());
            if reached < 2 {
                return;
            }
            let fan_out = found.entry(entry.position).or_insert_with(|| FanOut {
                flow: entry.flow.clone(),
                outputs: entry.outputs.ports,
                routers: 0,
                traffic: BTreeSet::new(),
                in_ports: BTreeSet::new(),
            });
            fan_out.routers = fan_out.routers.max(reached);
            fan_out.traffic.insert(kind);
            let port = region.in_port().map(|port| observed.names.name(port));
            fan_out.in_ports.extend(port);
        });
    }
    found.into_values().collect()
}

/// What comes in by which port: by the ingress ports everything, by the host's and the routers' own
/// ports what goes to all or to a group. Routers that no suspected flow names as ingress port are
/// alike, so that the first follower stands for them.
fn traffic(group: &BridgeGroup, observed: &Observed) -> Vec<(TrafficKind, Region)> {
    let has_family = |kind: &TrafficKind| match kind {
        TrafficKind::OtherMulticast => true,
        kind if kind.is_arp() => group.ipv4,
        _ => group.ipv6,
    };
    let ingress: BTreeSet<Port> = group.ingress_ports().map(|it| it.ofport.into()).collect();
    let outputs_to_several = |flow: &Flow| {
        let is_output = |action: &&Action| matches!(action, Action::Output(_));
        flow.actions.iter().filter(is_output).nth(1).is_some()
    };
    let named = observed.flows.iter().map(|it| &it.flow);
    let named = named.filter(|flow| outputs_to_several(flow));
    let mut inner: BTreeSet<Port> = named.filter_map(|flow| flow.matches.in_port).collect();
    inner.insert(Port::Local);
    inner.insert(host_port(&group.host));
    inner.insert(group.source.ofport.into());
    inner.extend(group.followers.first().map(|it| Port::from(it.ofport)));
    let kinds = || TrafficKind::ALL.into_iter().filter(has_family);
    let outside = ingress
        .iter()
        .flat_map(|port| kinds().map(move |kind| (kind, *port)));
    let inside = inner.difference(&ingress).flat_map(|port| {
        let kinds = kinds().filter(|it| it.is_multicast() && *it != TrafficKind::OtherMulticast);
        kinds.map(move |kind| (kind, *port))
    });
    outside
        .chain(inside)
        .map(|(kind, port)| (kind, kind.region(group, port)))
        .collect()
}

impl Routers {
    fn outputs(&self, flow: &Flow) -> Outputs {
        let ports: BTreeSet<Port> = flow
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Output(port) => Some(*port),
                _ => None,
            })
            .collect();
        let numbers = ports.iter().filter_map(|port| match port {
            Port::Number(number) => Some(*number),
            Port::Local => None,
        });
        let is_all = |action: &Action| matches!(action, Action::Other(text) if &**text == "ALL");
        if flow.actions.iter().any(is_all) {
            // Whatever their no-flood flag says.
            return Outputs {
                routers: self.all.clone(),
                ports: self.all.len(),
                floods: true,
                normal: false,
            };
        }
        Outputs {
            routers: numbers.filter(|it| self.all.contains(it)).collect(),
            ports: ports.len(),
            floods: flow.actions.contains(&Action::Flood),
            normal: flow.actions.contains(&Action::Normal),
        }
    }

    /// Whether a flow may hand a frame to several routers: to two by number, or to one that is not
    /// the source while the flood reaches the source.
    fn is_suspect(&self, outputs: &Outputs) -> bool {
        let follower = outputs.routers.iter().any(|port| *port != self.source);
        outputs.routers.len() > 1
            || (follower && self.source_floods && (outputs.floods || outputs.normal))
    }

    /// How many routers get a frame, those aside that lack no-flood against the design. It never
    /// goes back by the port that it came in by.
    fn reached(&self, outputs: &Outputs, kind: TrafficKind, in_port: Option<Port>) -> usize {
        let mut reached = outputs.routers.clone();
        if self.source_floods && (outputs.floods || (outputs.normal && kind.is_multicast())) {
            reached.insert(self.source);
        }
        if let Some(Port::Number(number)) = in_port {
            reached.remove(&number);
        }
        reached.len()
    }
}

struct Entry<'a> {
    /// Its place in the pipeline.
    position: usize,
    flow: &'a Flow,
    outputs: Outputs,
    is_suspect: bool,
    leads: Leads,
}

/// The flows of a bridge by table, the highest priority first.
struct Pipeline<'a> {
    tables: BTreeMap<u8, Vec<Entry<'a>>>,
    suspects: usize,
}

impl<'a> Pipeline<'a> {
    fn new(observed: &'a Observed, routers: &Routers) -> Self {
        let mut flows: Vec<&Flow> = observed.flows.iter().map(|it| &it.flow).collect();
        flows.sort_by(|a, b| {
            let by_match = || a.matches.cmp(&b.matches);
            (a.table, b.priority)
                .cmp(&(b.table, a.priority))
                .then_with(by_match)
        });
        let mut pipeline = Self {
            tables: BTreeMap::new(),
            suspects: 0,
        };
        for (position, flow) in flows.into_iter().enumerate() {
            let outputs = routers.outputs(flow);
            let is_suspect = routers.is_suspect(&outputs);
            pipeline.suspects += usize::from(is_suspect);
            pipeline.tables.entry(flow.table).or_default().push(Entry {
                position,
                flow,
                outputs,
                is_suspect,
                leads: Leads::of(flow),
            });
        }
        pipeline
    }

    /// Calls back for each suspected flow that frames of the set reach.
    fn walk(&self, region: &Region, mut reached: impl FnMut(&Entry<'a>)) {
        let mut waiting = vec![0];
        let mut seen = BTreeSet::from([0]);
        while let Some(number) = waiting.pop() {
            let Some(table) = self.tables.get(&number) else {
                continue;
            };
            let touched: Vec<(&Entry<'a>, Region)> = table
                .iter()
                .filter_map(|entry| Some((entry, region.intersect(&entry.flow.matches)?)))
                .collect();
            for (index, (entry, taken)) in touched.iter().enumerate() {
                if !entry.is_suspect && entry.leads == Leads::Nowhere {
                    continue;
                }
                let above = touched.iter().take(index);
                let mut above = above.filter(|(it, _)| it.flow.priority > entry.flow.priority);
                if above.any(|(it, _)| taken.is_covered_by(&it.flow.matches)) {
                    continue;
                }
                if entry.is_suspect {
                    reached(entry);
                }
                let next = self.tables.keys().copied();
                let next = next.filter(|next| entry.leads.contains(*next));
                waiting.extend(next.filter(|next| seen.insert(*next)));
            }
        }
    }
}
