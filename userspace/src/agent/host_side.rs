//! What is known of the host on its DPU: sysfs is read for interfaces that are new, and those that
//! were named are followed when they get another name.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    path::PathBuf,
    sync::Arc,
};

use super::{
    mode::{HostConfig, NodeMode},
    model::Model,
};
use crate::{
    datapath::netlink::LinkTable,
    representor::{self, Representors},
    rows::Rows,
    topology::Dpu,
};

/// The host's half of a DPU.
#[derive(Clone, Debug)]
pub struct HostSide {
    sysfs: PathBuf,
    dpu: Dpu,
    links: LinkTable,
    /// The index that a named interface had when it was last seen.
    indexes: BTreeMap<Arc<str>, u32>,
}

/// What became of interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Former and present names of those that were renamed.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
    /// Names that are there now and were not, or are another interface's than before.
    pub came: Vec<Arc<str>>,
    /// Names that are gone, or another interface's.
    pub went: Vec<Arc<str>>,
}

impl LinkChanges {
    /// What is different between two tables.
    #[must_use]
    pub fn between(before: &LinkTable, after: &LinkTable) -> Self {
        let mut changes = Self::default();
        for (index, link) in after {
            match before.get(index) {
                None => changes.came.push(Arc::clone(&link.name)),
                Some(former) if former.name != link.name => {
                    let names = (Arc::clone(&former.name), Arc::clone(&link.name));
                    changes.renamed.push(names);
                }
                Some(_) => {}
            }
        }
        let gone = before
            .iter()
            .filter(|(index, _)| !after.contains_key(index));
        changes.went = gone.map(|(_, link)| Arc::clone(&link.name)).collect();
        changes
    }

    /// Whether nothing is different.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.renamed.is_empty() && self.came.is_empty() && self.went.is_empty()
    }

    /// Every name of which something else may be known now.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let renamed = self.renamed.iter().flat_map(|(from, to)| [from, to]);
        renamed.chain(&self.came).chain(&self.went)
    }
}

/// Computes the groups anew with what is known of the host, where this is its DPU; whether they are
/// other ones.
pub fn rebuild(model: &mut Model, host: Option<&mut HostSide>) -> bool {
    if let Some(host) = host {
        host.learn(model.rows());
        model.set_dpu(host.dpu());
    }
    model.rebuild()
}

impl HostSide {
    /// The host's half, where this is a DPU.
    #[must_use]
    pub fn of(config: &HostConfig) -> Option<Self> {
        (config.mode == NodeMode::Dpu).then(|| Self {
            sysfs: config.sysfs.clone(),
            dpu: Dpu {
                representors: Representors::new(config.representors.clone()),
                address: None,
            },
            links: LinkTable::new(),
            indexes: BTreeMap::new(),
        })
    }

    /// What the topology is built with.
    #[must_use]
    pub const fn dpu(&self) -> &Dpu {
        &self.dpu
    }

    /// Reads sysfs for the switch's interfaces that nothing is known of. Few files, a page at most
    /// each.
    pub fn learn(&mut self, rows: &Rows) {
        let interfaces = rows.interfaces.values();
        let ordinary =
            interfaces.filter(|it| !matches!(&*it.kind, "patch" | "internal" | "geneve" | "vxlan"));
        for interface in ordinary {
            if !self.dpu.representors.knows(&interface.name) {
                let reading = representor::read(&self.sysfs, &interface.name);
                if let Ok(Some(port)) = &reading {
                    tracing::debug!(interface = %interface.name, port = %port.name, "port of an embedded switch");
                }
                self.dpu.representors.learn(&interface.name, reading);
            }
        }
        let names: BTreeSet<&Arc<str>> = rows.interfaces.values().map(|it| &it.name).collect();
        self.dpu.representors.retain(|name| names.contains(name));
    }

    /// Whether sysfs has something that may be told better later.
    #[must_use]
    pub fn is_to_be_read_again(&self) -> bool {
        self.dpu.representors.has_problems()
    }

    /// Has sysfs read again for every interface of which it told nothing: a driver may tell later, and a
    /// file that was empty may be being written.
    pub fn forget_what_told_nothing(&mut self) {
        self.dpu.representors.forget_what_told_nothing();
    }

    /// Takes the address that the node's object has for the host; whether it is another one.
    pub fn set_address(&mut self, address: Option<Ipv4Addr>) -> bool {
        let changed = self.dpu.address != address;
        if changed {
            let address = address.map(|it| it.to_string());
            tracing::info!(address, "the host's address, as its Node object has it");
        }
        self.dpu.address = address;
        changed
    }

    /// Takes the interfaces as they are now, and says what became of them.
    pub fn links_changed(&mut self, links: LinkTable) -> LinkChanges {
        let changes = LinkChanges::between(&self.links, &links);
        for name in changes.names() {
            self.dpu.representors.forget(name);
        }
        self.links = links;
        self.follow_names();
        changes
    }

    /// A named interface is the one that has its name; while none has, the one that had it last,
    /// whatever that is called now.
    fn follow_names(&mut self) {
        let configured = self.dpu.representors.configured();
        let configured: Vec<Arc<str>> = configured.names().map(Arc::clone).collect();
        for name in configured {
            let has_name = self.links.iter().find(|(_, link)| link.name == name);
            if let Some((index, _)) = has_name {
                self.indexes.insert(Arc::clone(&name), *index);
                self.dpu.representors.rename(&name, &name);
                continue;
            }
            let last = self.indexes.get(&name);
            if let Some(link) = last.and_then(|index| self.links.get(index)) {
                tracing::warn!(configured = %name, now = %link.name, "the host's representor has another name now");
                self.dpu.representors.rename(&name, &link.name);
            } else {
                // It is gone: whatever comes with its name is it again.
                self.indexes.remove(&name);
                self.dpu.representors.rename(&name, &name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{datapath::netlink::Link, topology::tests::Node};

    fn table(links: &[(u32, &str)]) -> LinkTable {
        let links = links.iter().map(|(index, name)| {
            let link = Link {
                name: (*name).into(),
                mac: None,
            };
            (*index, link)
        });
        links.collect()
    }

    fn on_dpu(named: &str) -> HostSide {
        HostSide::of(&HostConfig {
            mode: NodeMode::Dpu,
            representors: [named.parse().unwrap()].into_iter().collect(),
            ..HostConfig::default()
        })
        .unwrap()
    }

    fn found(host: &HostSide, ports: &[&str]) -> Option<String> {
        let found = host.dpu().representors.host_of("br-ex", true, ports);
        found.ok().map(str::to_owned)
    }

    #[test]
    fn only_a_dpu_has_a_host_behind_a_representor() {
        assert!(HostSide::of(&HostConfig::default()).is_none());
        let host = HostConfig {
            mode: NodeMode::DpuHost,
            ..HostConfig::default()
        };
        assert!(HostSide::of(&host).is_none());
    }

    /// The host's half, and the rows of a bridge with `pf0hpf`.
    fn reading(sysfs: &Path) -> (HostSide, Rows) {
        let host = HostSide::of(&HostConfig {
            mode: NodeMode::Dpu,
            sysfs: sysfs.to_owned(),
            ..HostConfig::default()
        });
        let mut node = Node::default();
        node.bridge("br-ex", "pf0hpf", &[]);
        (host.unwrap(), node.rows())
    }

    #[test]
    fn what_sysfs_did_not_tell_is_read_again_until_it_does() {
        let sysfs = tempfile::tempdir().unwrap();
        let port = sysfs.path().join("class/net/pf0hpf");
        std::fs::create_dir_all(&port).unwrap();
        std::fs::write(port.join("phys_switch_id"), "abc").unwrap();
        let (mut host, rows) = reading(sysfs.path());
        host.learn(&rows);
        assert!(host.is_to_be_read_again());
        assert_eq!(found(&host, &["pf0hpf"]), None);
        std::fs::write(port.join("phys_port_name"), "pf0hpf").unwrap();
        host.learn(&rows);
        assert!(!host.is_to_be_read_again());
        assert_eq!(found(&host, &["pf0hpf"]).as_deref(), Some("pf0hpf"));
    }

    #[test]
    fn sysfs_that_told_nothing_is_read_again_where_a_bridge_lacks_its_host() {
        let sysfs = tempfile::tempdir().unwrap();
        let port = sysfs.path().join("class/net/pf0hpf");
        std::fs::create_dir_all(&port).unwrap();
        let (mut host, rows) = reading(sysfs.path());
        host.learn(&rows);
        std::fs::write(port.join("phys_switch_id"), "abc").unwrap();
        std::fs::write(port.join("phys_port_name"), "pf0hpf").unwrap();
        host.learn(&rows);
        assert_eq!(found(&host, &["pf0hpf"]), None, "it is known to be plain");
        host.forget_what_told_nothing();
        host.learn(&rows);
        assert_eq!(found(&host, &["pf0hpf"]).as_deref(), Some("pf0hpf"));
    }

    #[test]
    fn changes_are_told_apart() {
        let before = table(&[(1, "lo"), (2, "p0"), (3, "pf0hpf"), (4, "gone")]);
        let after = table(&[(1, "lo"), (2, "p0"), (3, "host0"), (5, "new"), (6, "gone")]);
        let changes = LinkChanges::between(&before, &after);
        let names = |names: &[Arc<str>]| names.join(" ");
        assert_eq!(changes.renamed, [("pf0hpf".into(), "host0".into())]);
        assert_eq!(names(&changes.came), "new gone");
        assert_eq!(names(&changes.went), "gone");
        assert!(LinkChanges::between(&after, &after).is_empty());
    }

    #[test]
    fn a_named_representor_is_followed_through_names_and_its_return() {
        let mut host = on_dpu("rep0-0");
        let ports = ["p0", "rep0-0", "host0"];
        assert_eq!(found(&host, &ports).as_deref(), Some("rep0-0"), "late");
        host.links_changed(table(&[(2, "p0"), (3, "rep0-0")]));
        let renamed = host.links_changed(table(&[(2, "p0"), (3, "host0")]));
        assert_eq!(renamed.renamed.len(), 1);
        assert_eq!(found(&host, &ports).as_deref(), Some("host0"));
        host.links_changed(table(&[(2, "p0")]));
        assert_eq!(found(&host, &ports).as_deref(), Some("rep0-0"), "gone");
        // Another interface that has the index of the former one is not it.
        host.links_changed(table(&[(2, "p0"), (3, "host0")]));
        assert_eq!(found(&host, &ports).as_deref(), Some("rep0-0"));
        host.links_changed(table(&[(2, "p0"), (3, "host0"), (9, "rep0-0")]));
        host.links_changed(table(&[(2, "p0"), (9, "host1")]));
        assert_eq!(found(&host, &["p0", "host1"]).as_deref(), Some("host1"));
        host.links_changed(table(&[(2, "p0"), (9, "host1"), (12, "rep0-0")]));
        assert_eq!(
            found(&host, &["p0", "host1", "rep0-0"]).as_deref(),
            Some("rep0-0"),
            "its name goes before its past"
        );
    }
}
