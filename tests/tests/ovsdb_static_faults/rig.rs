//! Static rows, their server, and what is in there.

mod history;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use neighsteer::{
    agent::databases::{STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS},
    ids::Mac,
    ovsdb::{
        Client, LockState, MonitorRequest, Operation, OperationResult, Remote, Snapshot,
        TableRequest, Uuid,
    },
    statics::{
        BridgeBindings, Mode, RowOperation, Settings, StaticRow, Status, Target, Treatment, Wanted,
        WantedBindings, recompute,
    },
};
use neighsteer_tests::{
    database::DatabaseServer,
    mirroring::{BRIDGE, SOURCE},
    northbound::{self, Gateway},
    static_rows::{StaticWriter, Turn},
};
use tempfile::TempDir;

pub use history::{History, changes, history};

/// How long it may take until all is as it should be.
const CONVERGENCE: Duration = Duration::from_secs(60);
/// Between two looks at the database.
const LOOK: Duration = Duration::from_millis(50);
pub const LOCK: &str = "neighsteer_static_test";
/// A gateway router's port on another chassis, and one of hybrid overlay.
const FOREIGN_PORTS: [&str; 2] = ["rtoe-GR_net1_elsewhere", "rtos-node"];

/// Small transactions, and quick to try again: a test waits for it.
pub fn settings() -> Settings {
    Settings {
        gather_ms: 100,
        most_gather_ms: 500,
        chunk_rows: 100,
        unseen_ms: 1_000,
        retry_ms: 100,
        longest_retry_ms: 500,
        ..Settings::default()
    }
}

/// A node's address, of one family or the other.
pub fn node_ip(node: u16) -> IpAddr {
    let [high, low] = node.to_be_bytes();
    if node.is_multiple_of(2) {
        Ipv4Addr::new(172, 18, high, low).into()
    } else {
        Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, node).into()
    }
}

/// A MAC, which differs with both.
pub fn mac(node: u16, version: u8) -> Mac {
    let [high, low] = node.to_be_bytes();
    Mac([2, 0, 0, version, high, low])
}

/// On one server, or whatever else serves the database.
pub struct Rig<S = DatabaseServer> {
    pub server: S,
    /// Where to look what is in the database.
    pub readers: Vec<Remote>,
    pub gateways: Vec<Gateway>,
    pub targets: Vec<Target>,
    pub nodes: BTreeMap<IpAddr, Mac>,
    pub mode: Mode,
    pub settings: Settings,
    pub statics: StaticWriter,
    /// Another client.
    pub writer: Client,
    /// Where the ports are kept.
    pub state: TempDir,
    /// Rows that are not ours, as they were.
    foreign: BTreeMap<Uuid, StaticRow>,
    /// The connections that were lost so far.
    pub lost: usize,
}

impl Rig {
    /// So many followers on a server of its own, and so many nodes; nothing is planned yet.
    pub async fn start(followers: usize, nodes: u16) -> Self {
        Self::start_with(followers, nodes, settings()).await
    }

    pub async fn start_with(followers: usize, nodes: u16, settings: Settings) -> Self {
        let server = DatabaseServer::start(DatabaseServer::NORTHBOUND).unwrap();
        let remotes = vec![server.remote()];
        Rig::on(server, remotes, followers, nodes, settings).await
    }

    /// Starts a killed server again, and the other client with it.
    pub async fn resurrect(&mut self) {
        self.server.resurrect().unwrap();
        self.writer = northbound::writer(self.server.remote()).await.unwrap();
    }

    /// All that was ever committed.
    pub fn history(&self) -> History {
        history(&self.server)
    }

    /// Ends a test: all is as wanted, and no row was ever inserted for a port that was not there.
    pub async fn finish(&mut self) {
        self.converge().await;
        self.history().check_ports(&self.gateways);
    }
}

impl<S> Rig<S> {
    pub async fn on(
        server: S,
        remotes: Vec<Remote>,
        followers: usize,
        nodes: u16,
        settings: Settings,
    ) -> Self {
        let writer = northbound::writer(remotes[0].clone()).await.unwrap();
        let gateways = northbound::gateways(&writer, followers).await.unwrap();
        let state = tempfile::tempdir().unwrap();
        let statics = StaticWriter::start(LOCK, remotes.clone(), state.path(), settings.clone());
        let target = |gateway: &Gateway| Target {
            port: Arc::clone(&gateway.port),
            port_row: Some(gateway.port_row),
            bridge: Some(BRIDGE.into()),
            treatment: Treatment::Follower,
        };
        let mut rig = Self {
            server,
            readers: remotes,
            targets: gateways.iter().map(target).collect(),
            gateways,
            nodes: (1..=nodes)
                .map(|node| (node_ip(node), mac(node, 0)))
                .collect(),
            mode: Mode::Write,
            settings,
            statics: statics.await.unwrap(),
            writer,
            state,
            foreign: BTreeMap::new(),
            lost: 0,
        };
        rig.write_foreign_rows().await;
        rig
    }

    /// What OVN-Kubernetes writes for masquerade addresses, and what is on other ports. One of each
    /// does not override, as nobody of ours would have it.
    async fn write_foreign_rows(&mut self) {
        let mut inserts = Vec::new();
        for gateway in &self.gateways {
            for ip in ["169.254.0.2", "169.254.0.4", "fd69::2", "fd69::4"] {
                let overrides = ip != "fd69::4";
                inserts.push(northbound::insert(
                    &gateway.port,
                    ip,
                    "0a:58:a9:fe:00:02",
                    overrides,
                ));
            }
        }
        for port in FOREIGN_PORTS.iter().chain([&SOURCE]) {
            for node in [1, 2, 9_999] {
                let ip = node_ip(node).to_string();
                inserts.push(northbound::insert(port, &ip, "0a:58:00:00:00:01", false));
            }
        }
        self.write(&inserts).await;
        let rows = self.rows().await;
        self.foreign = rows.into_iter().map(|row| (row.uuid, row)).collect();
    }

    /// Another agent for the same chassis.
    pub async fn another_writer(&self, state: &TempDir) -> StaticWriter {
        let mut another = StaticWriter::start(
            LOCK,
            self.readers.clone(),
            state.path(),
            self.settings.clone(),
        )
        .await
        .unwrap();
        another
            .rows
            .plan(self.targets.clone(), Some(&self.wanted()), self.mode);
        another
    }

    /// The bindings of all nodes.
    pub fn wanted(&self) -> WantedBindings {
        let bindings = self.nodes.iter();
        let bridge = BridgeBindings {
            bindings: bindings
                .map(|(ip, mac)| (*ip, Wanted::Binding(*mac)))
                .collect(),
            keep_unlisted: false,
            node_ips: self.nodes.keys().copied().collect(),
        };
        WantedBindings {
            bridges: [(BRIDGE.into(), bridge)].into(),
            warnings: BTreeSet::new(),
        }
    }

    /// Tells the rows of all that is wanted now.
    pub fn plan(&mut self) {
        let remembered = self.statics.rows.remembered();
        let mut targets = self.targets.clone();
        targets.retain(|it| it.treatment != Treatment::Gone || remembered.contains(&it.port));
        let wanted = self.wanted();
        self.statics.rows.plan(targets, Some(&wanted), self.mode);
    }

    /// A node has another MAC from now on.
    pub fn set_mac(&mut self, node: u16, version: u8) {
        self.nodes.insert(node_ip(node), mac(node, version));
        self.plan();
    }

    /// The database loses a gateway router, of which the rows are not told yet.
    pub async fn lose(&self, gateway: usize) {
        self.write(&[northbound::remove(&self.gateways[gateway])])
            .await;
    }

    /// The rows are told that a gateway router is gone.
    pub fn hear_of_loss(&mut self, gateway: usize) {
        let target = &mut self.targets[gateway];
        target.port_row = None;
        target.bridge = None;
        target.treatment = Treatment::Gone;
        self.plan();
    }

    pub fn status(&self) -> Status {
        self.statics.rows.status()
    }

    pub fn lock(&self) -> LockState {
        self.statics.rows.lock_state()
    }

    /// Another client writes.
    pub async fn write(&self, operations: &[Operation]) -> Vec<OperationResult> {
        self.writer.transact(operations).await.unwrap()
    }

    /// Every static row there is, read by a client of its own.
    pub async fn rows(&self) -> Vec<StaticRow> {
        let table = TableRequest::new(STATIC_MAC_BINDING, STATIC_MAC_BINDING_COLUMNS);
        let request = MonitorRequest::new().table(table);
        let patience = Duration::from_secs(20);
        let snapshot = Snapshot::fetch(&self.readers, "OVN_Northbound", request, patience);
        let snapshot = snapshot.await.unwrap();
        let rows = snapshot.rows(STATIC_MAC_BINDING);
        rows.map(|(uuid, row)| StaticRow::parse(uuid, row).unwrap())
            .collect()
    }

    /// The rows of one port for node addresses.
    pub fn of_port<'a>(&self, rows: &'a [StaticRow], port: &str) -> Vec<&'a StaticRow> {
        let of_port = rows.iter().filter(|row| &*row.port == port);
        of_port
            .filter(|row| !self.foreign.contains_key(&row.uuid))
            .collect()
    }

    /// What is still to be written, from nothing but the rows.
    pub fn left_to_do(&self, rows: &[StaticRow]) -> Vec<RowOperation> {
        let (wanted, masquerade) = (self.wanted(), &self.settings.masquerade);
        recompute(rows, &self.targets, Some(&wanted), self.mode, masquerade)
    }

    /// One turn of the agent's loop.
    async fn turn(&mut self) {
        if let Turn::Disconnected(error) = self.statics.turn().await.unwrap() {
            println!("disconnected: {error}");
            self.lost += 1;
        }
    }

    /// The agent's loop, for a while.
    pub async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while tokio::time::timeout_at(end.into(), self.turn())
            .await
            .is_ok()
        {}
    }

    /// The agent's loop, until something holds after a turn.
    pub async fn run_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + CONVERGENCE;
        while !holds(self) {
            let turned = tokio::time::timeout_at(end.into(), self.turn()).await;
            assert!(turned.is_ok(), "no {what}: {:?}", self.status());
        }
    }

    /// Waits until a transaction is due, and lets the rows know nothing of what happens meanwhile.
    pub async fn until_due(&mut self) {
        let due = |rig: &Self| rig.statics.rows.next_deadline();
        self.run_until("deadline", |rig| due(rig).is_some()).await;
        tokio::time::sleep_until(due(self).unwrap().into()).await;
    }

    /// The agent's loop, until so many transactions are committed.
    pub async fn run_until_committed(&mut self, transactions: u64) {
        self.run_until("transactions", |rig| {
            rig.status().counters.transactions >= transactions
        })
        .await;
    }

    /// The agent's loop, until the rows in the database leave nothing to be done; those rows.
    pub async fn converge(&mut self) -> Vec<StaticRow> {
        let end = Instant::now() + CONVERGENCE;
        loop {
            self.run_for(LOOK).await;
            if self.statics.rows.is_idle() {
                let rows = self.rows().await;
                let left = self.left_to_do(&rows);
                if left.is_empty() {
                    self.check(&rows);
                    return rows;
                }
                println!("{} rows to write, the first {:?}", left.len(), left.first());
            }
            assert!(Instant::now() < end, "{:?}", self.status());
        }
    }

    /// What must hold of rows whatever happened.
    fn check(&self, rows: &[StaticRow]) {
        let (theirs, ours): (Vec<_>, Vec<_>) = rows
            .iter()
            .cloned()
            .partition(|row| self.foreign.contains_key(&row.uuid));
        assert_eq!(theirs.len(), self.foreign.len(), "a row of others is gone");
        for row in theirs {
            assert_eq!(self.foreign[&row.uuid], row);
        }
        let mut expected = BTreeSet::new();
        if self.mode == Mode::Write {
            for target in self
                .targets
                .iter()
                .filter(|it| it.treatment == Treatment::Follower)
            {
                let of_port = self.nodes.iter();
                expected.extend(of_port.map(|(ip, mac)| (Arc::clone(&target.port), *ip, *mac)));
            }
        }
        let mut found = BTreeSet::new();
        // What has no address is nobody's binding.
        for row in ours.into_iter().filter(|row| row.ip.is_some()) {
            assert!(row.override_dynamic_mac, "{row:?}");
            let said = (row.port, row.ip.unwrap(), row.mac.unwrap());
            assert!(found.insert(said.clone()), "twice: {said:?}");
        }
        assert_eq!(found.len(), expected.len());
        assert_eq!(found, expected);
    }
}
