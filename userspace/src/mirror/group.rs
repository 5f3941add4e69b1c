//! The gateway routers that share a bridge.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use crate::{
    ids::Mac,
    ovsdb::Uuid,
    topology::{AgeThreshold, BridgeGroup, GatewayRouter},
};

/// A gateway router as the mirror sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its external port, such as `rtoe-GR_node`.
    pub port: Arc<str>,
    /// Its `Datapath_Binding`.
    pub datapath: Uuid,
    /// When its bindings expire.
    pub age: AgeThreshold,
}

impl Member {
    /// A router, unless northd has not made its datapath yet: its bindings could refer to none.
    #[must_use]
    pub fn of(router: &GatewayRouter) -> Option<Self> {
        Some(Self {
            port: Arc::clone(&router.external_port),
            datapath: router.datapath?,
            age: router.mac_binding_age_threshold.clone(),
        })
    }

    /// After how many ms a neighbour's binding expires, if it does.
    pub(super) fn age_ms(&self, ip: IpAddr) -> Option<u64> {
        let age = self.age.of(ip)?;
        Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The gateway routers that share a bridge: one that learns, and those that are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMembers {
    /// The designated source. Without one, nothing is mirrored.
    pub source: Option<Member>,
    /// The others.
    pub followers: Vec<Member>,
    /// Addresses of nodes, which have static bindings and are not mirrored.
    pub node_ips: Arc<BTreeSet<IpAddr>>,
    /// Addresses of nodes with the MACs that every follower is to have for them, whatever the source
    /// says: their rows are written, refreshed and put back from here. Of an address that is in
    /// `node_ips` as well, this counts.
    pub pinned: Arc<BTreeMap<IpAddr, Mac>>,
}

impl GroupMembers {
    /// The routers of a bridge, as far as they have datapaths, with nothing pinned. This node's own
    /// addresses, which are every router's, count as nodes' too.
    #[must_use]
    pub fn of(group: &BridgeGroup, node_ips: Arc<BTreeSet<IpAddr>>) -> Self {
        let own = group.node_addresses.iter().copied();
        let own: BTreeSet<IpAddr> = own.filter(|it| !node_ips.contains(it)).collect();
        let node_ips = if own.is_empty() {
            node_ips
        } else {
            Arc::new(&*node_ips | &own)
        };
        Self {
            source: Member::of(&group.source),
            followers: group.followers.iter().filter_map(Member::of).collect(),
            node_ips,
            pinned: Arc::default(),
        }
    }

    /// The same routers with these pinned bindings: of other nodes, never of this node's own
    /// addresses.
    #[must_use]
    pub fn with_pinned(self, pinned: Arc<BTreeMap<IpAddr, Mac>>) -> Self {
        Self { pinned, ..self }
    }
}

/// A follower's number. It is never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot(u32);

impl Slot {
    pub(super) const FIRST: Self = Self(0);
    pub(super) const LAST: Self = Self(u32::MAX);

    pub(super) const fn number(self) -> u32 {
        self.0
    }
}

/// Whose a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Source,
    Follower(Slot),
}

#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) member: Member,
}

/// The members with their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) members: GroupMembers,
    pub(super) followers: BTreeMap<Slot, Follower>,
    places: HashMap<Arc<str>, Place>,
    next: u32,
}

/// What a new composition changes.
#[derive(Debug, Default)]
pub(super) struct Regrouping {
    /// Places whose rows no longer count.
    pub(super) dropped: Vec<Place>,
    /// Ports whose rows are not known yet.
    pub(super) unknown: BTreeSet<Arc<str>>,
    /// The new followers.
    pub(super) added: Vec<Slot>,
    /// Followers that stay, whose bindings expire after another time than before.
    pub(super) aged: Vec<Slot>,
    /// Whether the source is another one.
    pub(super) source: bool,
    /// The addresses of nodes that are treated otherwise than before.
    pub(super) nodes: Vec<(IpAddr, NodeChange)>,
}

/// How a node's address is treated otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeChange {
    /// It was not pinned.
    Pinned,
    /// It was pinned to another MAC.
    Moved,
    /// It is not pinned any more, or has become or ceased to be a node's: what the source says
    /// counts, or nothing does.
    Released,
}

/// What is different about the nodes, by address.
fn node_changes(before: &GroupMembers, after: &GroupMembers) -> Vec<(IpAddr, NodeChange)> {
    let mut changes = BTreeMap::new();
    if before.pinned != after.pinned {
        for (ip, mac) in &*after.pinned {
            match before.pinned.get(ip) {
                None => changes.insert(*ip, NodeChange::Pinned),
                Some(former) if former != mac => changes.insert(*ip, NodeChange::Moved),
                Some(_) => None,
            };
        }
        let gone = before.pinned.keys();
        let gone = gone.filter(|ip| !after.pinned.contains_key(ip));
        changes.extend(gone.map(|ip| (*ip, NodeChange::Released)));
    }
    if before.node_ips != after.node_ips {
        let others = before.node_ips.symmetric_difference(&after.node_ips);
        let others = others.filter(|ip| !after.pinned.contains_key(ip));
        changes.extend(others.map(|ip| (*ip, NodeChange::Released)));
    }
    changes.into_iter().collect()
}

impl Group {
    pub(super) fn place(&self, port: &str) -> Option<Place> {
        self.places.get(port).copied()
    }

    pub(super) fn member(&self, place: Place) -> Option<&Member> {
        match place {
            Place::Source => self.members.source.as_ref(),
            Place::Follower(slot) => self.followers.get(&slot).map(|follower| &follower.member),
        }
    }

    /// Takes a new composition; `None` where it is the one that holds already.
    pub(super) fn replace(&mut self, mut members: GroupMembers) -> Option<Regrouping> {
        let source_port = members
            .source
            .as_ref()
            .map(|source| Arc::clone(&source.port));
        let mut seen = BTreeSet::new();
        members.followers.retain(|member| {
            Some(&member.port) != source_port.as_ref() && seen.insert(Arc::clone(&member.port))
        });
        if members == self.members {
            return None;
        }
        let mut change = Regrouping {
            source: members.source != self.members.source,
            nodes: node_changes(&self.members, &members),
            ..Regrouping::default()
        };
        self.replace_source(members.source.as_ref(), &mut change);
        self.replace_followers(&members.followers, &mut change);
        self.members = members;
        Some(change)
    }

    fn replace_source(&mut self, source: Option<&Member>, change: &mut Regrouping) {
        let former = self.members.source.as_ref();
        if same_router(former, source) {
            return;
        }
        if let Some(former) = former {
            self.places.remove(&former.port);
            change.dropped.push(Place::Source);
        }
        if let Some(source) = source {
            if let Some(Place::Follower(slot)) =
                self.places.insert(Arc::clone(&source.port), Place::Source)
            {
                self.followers.remove(&slot);
                change.dropped.push(Place::Follower(slot));
            }
            change.unknown.insert(Arc::clone(&source.port));
        }
    }

    fn replace_followers(&mut self, members: &[Member], change: &mut Regrouping) {
        let wanted: HashMap<&str, &Member> = members
            .iter()
            .map(|member| (&*member.port, member))
            .collect();
        let places = &mut self.places;
        self.followers.retain(|slot, follower| {
            let now = wanted.get(&*follower.member.port).copied();
            let stays = same_router(Some(&follower.member), now);
            if !stays {
                places.remove(&follower.member.port);
                change.dropped.push(Place::Follower(*slot));
            }
            stays
        });
        for member in members {
            if let Some(Place::Follower(slot)) = self.places.get(&member.port).copied() {
                if let Some(follower) = self.followers.get_mut(&slot) {
                    if follower.member.age != member.age {
                        change.aged.push(slot);
                    }
                    follower.member = member.clone();
                }
                continue;
            }
            let slot = Slot(self.next);
            self.next = self.next.saturating_add(1);
            self.places
                .insert(Arc::clone(&member.port), Place::Follower(slot));
            self.followers.insert(
                slot,
                Follower {
                    member: member.clone(),
                },
            );
            change.added.push(slot);
            change.unknown.insert(Arc::clone(&member.port));
        }
    }
}

/// A router that was made anew under the same name is another one: its rows went with the old one.
fn same_router(one: Option<&Member>, other: Option<&Member>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.port == other.port && one.datapath == other.datapath,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{Network, Node};

    #[test]
    fn the_nodes_own_addresses_are_not_mirrored_whatever_others_are_named() {
        let topology = Node::new(&[Network::default_network()]).topology();
        let group = topology.group("breth0").unwrap();
        let other: IpAddr = "172.18.0.4".parse().unwrap();
        let members = GroupMembers::of(group, Arc::new([other].into()));
        let wanted = ["172.18.0.3", "172.18.0.4", "fd00::3"].map(|it| it.parse().unwrap());
        assert_eq!(*members.node_ips, BTreeSet::from(wanted));
    }
}
