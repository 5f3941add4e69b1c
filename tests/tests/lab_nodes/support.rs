//! A rig with other nodes on the wire.

use std::{collections::BTreeSet, net::IpAddr};

use neighsteer::ids::Mac;
use neighsteer_tests::lab::{
    AgentProcess, Manifests, Network, PeerNode, StaticBinding, wait_until,
};

use crate::rig::{PATIENCE, Rig, STEER};

/// What a row says: port, address, MAC.
pub type Said = (String, IpAddr, Mac);

/// A rig, the manifests of its nodes, and what OVN-Kubernetes wrote itself.
pub struct Nodes {
    pub rig: Rig,
    pub manifests: Manifests,
    pub peers: Vec<PeerNode>,
    pub masquerade: Vec<StaticBinding>,
}

impl Nodes {
    /// Puts other nodes on the wire of a rig, which the manifests know of.
    pub fn on(rig: Rig, peers: u8) -> Self {
        let masquerade = rig.lab.add_masquerade_bindings().unwrap();
        Self {
            masquerade,
            ..Self::on_bare(rig, peers)
        }
    }

    /// The same where OVN-Kubernetes has written nothing.
    pub fn on_bare(rig: Rig, peers: u8) -> Self {
        let manifests = rig.lab.manifests().unwrap();
        let peers = (1..=peers)
            .map(|number| {
                let peer = rig.lab.add_peer_node(number).unwrap();
                manifests.put(&peer).unwrap();
                peer
            })
            .collect();
        Self {
            rig,
            manifests,
            peers,
            masquerade: Vec::new(),
        }
    }

    /// The flags of an agent that steers, mirrors and reads the manifests, and further ones.
    pub fn flags<'a>(&'a self, further: &[&'a str]) -> Vec<&'a str> {
        let nodes = self.manifests.directory().to_str().unwrap();
        [&STEER, &["--nodes", nodes][..], further].concat()
    }

    pub fn agent(&self, further: &[&str]) -> AgentProcess {
        self.rig.agent(&self.flags(further))
    }

    /// What every follower should have: each peer's addresses with its MAC.
    pub fn wanted(&self) -> BTreeSet<Said> {
        let followers = self.rig.lab.udns();
        followers
            .flat_map(|network| {
                self.peers.iter().flat_map(move |peer| {
                    let said = move |ip| (network.external_port(), ip, peer.mac());
                    peer.addresses().map(said)
                })
            })
            .collect()
    }

    /// What the northbound rows say, those of the masquerade addresses apart.
    pub fn written(&self) -> BTreeSet<Said> {
        let rows = self.rig.lab.static_bindings().unwrap();
        let ours = rows.into_iter().filter(|row| !row.is_masquerade());
        ours.map(|row| {
            assert!(row.override_dynamic_mac, "{row:?}");
            (
                row.logical_port,
                row.ip.parse().unwrap(),
                row.mac.parse().unwrap(),
            )
        })
        .collect()
    }

    /// What the southbound rows of followers say about these addresses.
    pub fn learnt(&self, addresses: &BTreeSet<IpAddr>) -> BTreeSet<Said> {
        let rows = self.rig.lab.all_mac_bindings().unwrap();
        let source = Network::DEFAULT.external_port();
        rows.into_iter()
            .filter(|row| row.logical_port != source)
            .map(|row| {
                (
                    row.logical_port,
                    row.ip.parse().unwrap(),
                    row.mac.parse().unwrap(),
                )
            })
            .filter(|(_, ip, _)| addresses.contains(ip))
            .collect()
    }

    /// The addresses of all peers.
    pub fn addresses(&self) -> BTreeSet<IpAddr> {
        self.peers.iter().flat_map(PeerNode::addresses).collect()
    }

    /// Waits until the northbound rows are what is wanted, no more and no less.
    pub fn wait_for_static_rows(&self) {
        let wanted = self.wanted();
        wait_until(PATIENCE, "the static bindings of all node IPs", || {
            let written = self.written();
            if written == wanted {
                return Ok(());
            }
            let missing: Vec<_> = wanted.difference(&written).take(3).collect();
            let wrong: Vec<_> = written.difference(&wanted).take(3).collect();
            Err(format!(
                "{} of {}; missing {missing:?}, wrong {wrong:?}; {}",
                written.len(),
                wanted.len(),
                self.rig.status()["nodes"]
            ))
        })
        .unwrap();
    }

    /// Waits until the southbound rows are what is wanted, no more and no less.
    pub fn wait_for_dynamic_rows(&self) {
        let wanted = self.wanted();
        let addresses = self.addresses();
        wait_until(PATIENCE, "the dynamic bindings of all node IPs", || {
            let learnt = self.learnt(&addresses);
            if learnt == wanted {
                return Ok(());
            }
            let missing: Vec<_> = wanted.difference(&learnt).take(3).collect();
            let wrong: Vec<_> = learnt.difference(&wanted).take(3).collect();
            Err(format!(
                "{} of {}; missing {missing:?}, wrong {wrong:?}; {}",
                learnt.len(),
                wanted.len(),
                self.rig.status()["nodes"]
            ))
        })
        .unwrap();
    }

    /// Asserts that what OVN-Kubernetes wrote is as it was.
    pub fn masquerade_rows_are_untouched(&self) {
        let rows = self.rig.lab.static_bindings().unwrap();
        let theirs: Vec<_> = rows
            .into_iter()
            .filter(StaticBinding::is_masquerade)
            .collect();
        assert_eq!(theirs, self.masquerade);
    }
}
