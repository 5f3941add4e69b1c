//! The mirror, its driver, the server and everybody else who writes to it, in virtual time.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::server::{Server, Told};
use crate::{
    ids::Mac,
    mirror::{
        BindingRow, FailureKind, GroupMembers, Member, Millis, Mirror, Now, RowOperation, Settings,
        recompute::with_clock,
    },
    ovsdb::Uuid,
    topology::AgeThreshold,
};

pub(super) const AGE_MS: i64 = 300_000;
const WALL: i64 = 1_700_000_000_000;
/// Spelt in two ways, to be one address.
const TEXTS: [&str; 5] = ["192.0.2.1", "192.0.2.2", "fd00::1", "FD00:0::1", "fe80::1"];

/// What may happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The source learns a neighbour, or that its MAC is another.
    Learn { text: usize, mac: u8 },
    /// The source's row is refreshed.
    Touch { text: usize },
    /// The source's row goes.
    Unlearn { text: usize },
    /// Somebody writes a follower's row; MAC 0 is no MAC at all.
    Meddle {
        router: usize,
        text: usize,
        mac: u8,
        age_ms: u32,
    },
    /// Somebody deletes a follower's row.
    Delete { router: usize, text: usize },
    /// A router comes or, unless it is the source, goes.
    Router { router: usize },
    /// Another router becomes the source.
    Designate { router: usize },
    /// An address becomes a node's, or no node's.
    NodeIp { text: usize },
    /// A node's address is pinned; MAC 0: not any more.
    Pin { text: usize, mac: u8 },
    /// Time passes.
    Pass { ms: u32 },
    /// The driver reads some of what the server tells.
    Read { messages: usize },
    /// The outcome of a transaction overtakes the changes that it made.
    Overtake,
    /// The driver sends one transaction.
    Send,
    /// The connection breaks, and a new snapshot comes.
    Reconnect { lose: usize },
    /// The next transaction is refused.
    Refuse { kind: usize },
}

pub(super) struct World {
    pub(super) mirror: Mirror,
    pub(super) server: Server,
    pub(super) settings: Settings,
    pub(super) now: Now,
    routers: [bool; 4],
    source: usize,
    node_ips: BTreeSet<usize>,
    pinned: BTreeMap<IpAddr, Mac>,
    /// What the driver's cache holds: what the mirror was told.
    cache: BTreeMap<Uuid, BindingRow>,
}

fn port(router: usize) -> String {
    format!("rtoe-GR_{router}")
}

fn datapath(router: usize) -> Uuid {
    Uuid(uuid::Uuid::from_u128((1 << 64) + router as u128))
}

fn mac(number: u8) -> Option<Mac> {
    (number != 0).then_some(Mac([2, 0, 0, 0, 0, number]))
}

impl World {
    pub(super) fn new(names_faults: bool) -> Self {
        let settings = Settings {
            spread_ms: 0,
            ..Settings::default()
        };
        let mut world = Self {
            mirror: Mirror::new(settings),
            server: Server {
                names_faults,
                ..Server::default()
            },
            settings,
            now: Now {
                at: Millis(1_000_000),
                wall_ms: WALL,
            },
            routers: [true, true, true, false],
            source: 0,
            node_ips: BTreeSet::new(),
            pinned: BTreeMap::new(),
            cache: BTreeMap::new(),
        };
        for router in 0..3 {
            world.server.datapaths.insert(datapath(router));
        }
        world.regroup();
        world.mirror.synced(world.now);
        world
    }

    pub(super) fn members(&self) -> GroupMembers {
        let member = |router: usize| Member {
            port: port(router).into(),
            datapath: datapath(router),
            age: AgeThreshold::from_option(Some(&"300".into())),
        };
        let routers = (0..4).filter(|router| self.routers[*router] && *router != self.source);
        let node_ips = self.node_ips.iter();
        GroupMembers {
            source: self.routers[self.source].then(|| member(self.source)),
            followers: routers.map(member).collect(),
            node_ips: Arc::new(node_ips.map(|text| TEXTS[*text].parse().unwrap()).collect()),
            pinned: Arc::new(self.pinned.clone()),
        }
    }

    fn regroup(&mut self) {
        let members = self.members();
        let known: Vec<BindingRow> = self.cache.values().cloned().collect();
        self.mirror.set_group(members, known, self.now);
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now.at = self.now.at.after(ms);
        self.now.wall_ms += i64::try_from(ms).unwrap();
    }

    pub(super) fn step(&mut self, step: Step) {
        let source = port(self.source);
        let wall = self.now.wall_ms;
        match step {
            Step::Learn { text, mac: number } => {
                if self.routers[self.source] {
                    let mac = mac(number);
                    self.server
                        .put(&source, datapath(self.source), TEXTS[text], mac, wall);
                }
            }
            Step::Touch { text } => self.touch(text),
            Step::Unlearn { text } => {
                if let Some(uuid) = self.server.find(&source, TEXTS[text]) {
                    self.server.delete(uuid);
                }
            }
            Step::Meddle {
                router,
                text,
                mac: number,
                age_ms,
            } => {
                if self.routers[router] && router != self.source {
                    let timestamp = wall - i64::from(age_ms);
                    self.server.put(
                        &port(router),
                        datapath(router),
                        TEXTS[text],
                        mac(number),
                        timestamp,
                    );
                }
            }
            Step::Delete { router, text } => {
                if router != self.source
                    && let Some(uuid) = self.server.find(&port(router), TEXTS[text])
                {
                    self.server.delete(uuid);
                }
            }
            Step::Router { router } => self.toggle(router),
            Step::Designate { router } => {
                if self.routers[router] {
                    self.source = router;
                    self.regroup();
                }
            }
            Step::NodeIp { text } => {
                if !self.node_ips.remove(&text) {
                    self.node_ips.insert(text);
                }
                self.regroup();
            }
            Step::Pin { text, mac: number } => {
                let ip = TEXTS[text].parse().unwrap();
                match mac(number) {
                    Some(mac) => self.pinned.insert(ip, mac),
                    None => self.pinned.remove(&ip),
                };
                self.regroup();
            }
            Step::Pass { ms } => self.pass(ms.into()),
            Step::Read { messages } => {
                for _ in 0..messages {
                    self.read();
                }
            }
            Step::Overtake => {
                let outcome = |told: &Told| matches!(told, Told::Outcome(..));
                let position = self.server.telling.iter().position(outcome);
                if let Some(told) = position.and_then(|at| self.server.telling.remove(at)) {
                    self.server.telling.push_front(told);
                }
            }
            Step::Send => {
                self.send();
            }
            Step::Reconnect { lose } => self.reconnect(lose),
            Step::Refuse { kind } => {
                let kinds = [FailureKind::Unavailable, FailureKind::Constraint];
                self.server.refuse = Some(kinds[kind % 2]);
            }
        }
    }

    /// The source's row is refreshed, as by ovn-controller: by traffic.
    pub(super) fn touch(&mut self, text: usize) {
        let source = port(self.source);
        let Some(uuid) = self.server.find(&source, TEXTS[text]) else {
            return;
        };
        let row = self.server.rows[&uuid].clone();
        self.server.put(
            &source,
            row.datapath,
            TEXTS[text],
            row.mac,
            self.now.wall_ms,
        );
    }

    fn toggle(&mut self, router: usize) {
        if router == self.source {
            return;
        }
        self.routers[router] = !self.routers[router];
        if self.routers[router] {
            self.server.datapaths.insert(datapath(router));
            // The driver groups a router once it has seen all of its rows.
            while self.read() {}
        } else {
            self.server.delete_router(&port(router), datapath(router));
        }
        self.regroup();
    }

    /// The driver reads one message.
    pub(super) fn read(&mut self) -> bool {
        let Some(told) = self.server.telling.pop_front() else {
            return false;
        };
        match told {
            Told::Row(row) => {
                self.cache.insert(row.uuid, row.clone());
                self.mirror.upsert(&row, self.now);
            }
            Told::Gone(uuid) => {
                self.cache.remove(&uuid);
                self.mirror.remove(uuid, self.now);
            }
            Told::Outcome(id, Ok(missed)) => self.mirror.committed(id, &missed, self.now),
            Told::Outcome(id, Err(failure)) => {
                self.mirror.failed(id, &failure, self.now);
            }
        }
        true
    }

    /// The driver sends one transaction; whether there was one.
    pub(super) fn send(&mut self) -> bool {
        let Some(batch) = self.mirror.take_batch(self.now) else {
            return false;
        };
        self.server.transact(&batch, self.now.wall_ms);
        true
    }

    /// The last `lose` messages are lost with the connection; a snapshot follows.
    fn reconnect(&mut self, lose: usize) {
        let keep = self.server.telling.len().saturating_sub(lose);
        for _ in 0..keep {
            self.read();
        }
        self.server.telling.clear();
        self.mirror.disconnected();
        let gone: Vec<Uuid> = (self.cache.keys())
            .filter(|uuid| !self.server.rows.contains_key(uuid))
            .copied()
            .collect();
        for uuid in gone {
            self.cache.remove(&uuid);
            self.mirror.remove(uuid, self.now);
        }
        for (uuid, row) in &self.server.rows {
            if self.cache.get(uuid) != Some(row) {
                self.cache.insert(*uuid, row.clone());
                self.mirror.upsert(row, self.now);
            }
        }
        self.mirror.synced(self.now);
    }

    /// Reads and sends until neither is left.
    pub(super) fn exchange(&mut self) {
        self.server.refuse = None;
        while self.read() || self.send() {}
    }

    /// What a computation from scratch would write.
    pub(super) fn recomputed(&self) -> Vec<RowOperation> {
        let rows: Vec<&BindingRow> = self.server.rows.values().collect();
        with_clock(
            &rows,
            &self.members(),
            &self.settings,
            self.mirror.clock(),
            self.now,
        )
    }

    /// How many of the followers' rows for nodes are missing or wrong, by what the mirror was told.
    pub(super) fn pinned_missing(&self) -> usize {
        let members = self.members();
        let right = |port: &str, ip: IpAddr, mac: Mac| {
            let rows = self.cache.values();
            let mut rows = rows
                .filter(|row| &*row.port == port && row.ip == ip)
                .peekable();
            rows.peek().is_some() && rows.all(|row| row.mac == Some(mac))
        };
        let pairs = (members.followers.iter())
            .flat_map(|follower| members.pinned.iter().map(move |pin| (follower, pin)));
        pairs
            .filter(|(follower, (ip, mac))| !right(&follower.port, **ip, **mac))
            .count()
    }

    /// Whoever ages rows removes those that are old enough.
    pub(super) fn sweep(&mut self) {
        let old = |row: &&BindingRow| row.timestamp + AGE_MS <= self.now.wall_ms;
        let rows: Vec<Uuid> = (self.server.rows.values().filter(old))
            .map(|row| row.uuid)
            .collect();
        for uuid in rows {
            self.server.delete(uuid);
        }
    }
}
