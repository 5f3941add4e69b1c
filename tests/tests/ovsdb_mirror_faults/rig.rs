//! A mirror, its server, and what is in there.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use neighsteer::{
    agent::{
        clock::Clock,
        databases::{MAC_BINDING, MAC_BINDING_COLUMNS},
    },
    mirror::{BindingRow, GroupMembers, Pauses, RowOperation, Settings, Status, recompute},
    ovsdb::{
        Backoff, Clause, Client, MonitorRequest, Operation, Options, Remote, Snapshot,
        TableRequest, Uuid,
    },
    topology::BridgeGroup,
};
use neighsteer_tests::{
    database::DatabaseServer,
    mirroring::{Mirroring, SOURCE, Turn, follower_port, group},
    southbound::{self, now},
};

/// How long it may take until all is as it should be.
const CONVERGENCE: Duration = Duration::from_secs(60);
/// Between two looks at the database.
const LOOK: Duration = Duration::from_millis(50);
/// After how many seconds rows expire.
pub const AGE: &str = "300";
/// An hour, ms.
pub const HOUR: i64 = 3_600_000;

/// Quick to try again: a test waits for it.
pub fn settings() -> Settings {
    Settings {
        pauses: Pauses {
            correction_ms: 200,
            longest_retry_ms: 1_000,
            ..Pauses::default()
        },
        compare_ms: 1_000,
        spread_ms: 500,
        ..Settings::default()
    }
}

/// On one server, or whatever else serves the database.
pub struct Rig<S = DatabaseServer> {
    pub server: S,
    /// Where to look what is in the database.
    pub readers: Vec<Remote>,
    /// The source's first, then the followers'.
    pub datapaths: Vec<Uuid>,
    pub group: BridgeGroup,
    pub mirroring: Mirroring,
    /// Another client.
    pub writer: Client,
    pub settings: Settings,
    /// How many ms the node's clock is ahead.
    pub shift: Arc<AtomicI64>,
    /// The connections that were lost so far.
    pub lost: usize,
}

impl Rig {
    /// A mirror of so many followers on a server of its own.
    pub async fn start(followers: usize) -> Self {
        let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
        let remotes = vec![server.remote()];
        Rig::on(server, remotes, followers).await
    }

    /// Starts a killed server again, and the other client with it.
    pub async fn resurrect(&mut self) {
        self.server.resurrect().unwrap();
        self.writer = southbound::writer(self.server.remote()).await.unwrap();
    }

    /// Ends the mirror, as an agent that is killed.
    pub async fn restart_mirror(&mut self) {
        self.mirroring = self.another_mirror(None).await;
    }
}

impl<S> Rig<S> {
    pub async fn on(server: S, remotes: Vec<Remote>, followers: usize) -> Self {
        let writer = southbound::writer(remotes[0].clone()).await.unwrap();
        let datapaths = southbound::datapaths(&writer, followers + 1).await.unwrap();
        let group = group(&datapaths, AGE).unwrap();
        let (shift, settings) = (Arc::default(), settings());
        let mirroring = mirroring(None, remotes.clone(), &group, &shift, settings).await;
        let mut rig = Self {
            server,
            readers: remotes,
            datapaths,
            group,
            mirroring,
            writer,
            settings,
            shift,
            lost: 0,
        };
        rig.converge().await;
        rig
    }

    /// A second agent for the same routers.
    pub async fn another_mirror(&self, lock: Option<&str>) -> Mirroring {
        let remotes = self.readers.clone();
        mirroring(lock, remotes, &self.group, &self.shift, self.settings).await
    }

    pub fn members(&self) -> GroupMembers {
        GroupMembers::of(&self.group, Arc::default())
    }

    pub fn status(&self) -> Status {
        self.mirroring.status().unwrap()
    }

    /// Another client writes.
    pub async fn write(&self, operations: &[Operation]) {
        self.writer.transact(operations).await.unwrap();
    }

    /// The source learns these neighbours now.
    pub async fn learn(&self, ips: &[&str]) {
        let datapath = self.datapaths[0];
        let rows: Vec<Operation> = ips
            .iter()
            .map(|ip| southbound::insert(SOURCE, datapath, ip, now()))
            .collect();
        self.write(&rows).await;
    }

    /// Every row there is, read by a client of its own.
    pub async fn rows(&self) -> Vec<BindingRow> {
        let request =
            MonitorRequest::new().table(TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS));
        let patience = Duration::from_secs(20);
        let snapshot = Snapshot::fetch(&self.readers, "OVN_Southbound", request, patience)
            .await
            .unwrap();
        let rows = snapshot.tables[MAC_BINDING].iter();
        rows.map(|(uuid, row)| BindingRow::parse(*uuid, row).unwrap())
            .collect()
    }

    /// What is still to be written, from nothing but the rows.
    pub fn left_to_do(&self, rows: &[BindingRow]) -> Vec<RowOperation> {
        let shift = Arc::clone(&self.shift);
        recompute(
            rows,
            &self.members(),
            &self.settings,
            Clock::shifted(shift).now(),
        )
    }

    /// The agent's loop, for a while.
    pub async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(turn) = tokio::time::timeout_at(end.into(), self.mirroring.turn()).await {
            if let Turn::Disconnected(error) = turn.unwrap() {
                println!("disconnected: {error}");
                self.lost += 1;
            }
        }
    }

    /// The agent's loop, until something holds.
    pub async fn run_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + CONVERGENCE;
        while !holds(self) {
            assert!(Instant::now() < end, "no {what}: {:?}", self.status());
            self.run_for(LOOK).await;
        }
    }

    /// The agent's loop, until the rows in the database leave nothing to be done; those rows.
    pub async fn converge(&mut self) -> Vec<BindingRow> {
        let end = Instant::now() + CONVERGENCE;
        loop {
            self.run_for(LOOK).await;
            let rows = self.rows().await;
            let left = self.left_to_do(&rows);
            let status = self.status();
            if left.is_empty() && status.synced && status.in_flight == 0 {
                self.check(&rows);
                return rows;
            }
            assert!(
                Instant::now() < end,
                "{} rows to write, the first {:?}: {:?}",
                left.len(),
                left.first(),
                self.status()
            );
        }
    }

    /// What must hold of rows whatever happened.
    fn check(&self, rows: &[BindingRow]) {
        let mut truths = BTreeMap::new();
        for row in rows.iter().filter(|row| &*row.port == SOURCE) {
            truths.insert(row.ip, row.mac);
        }
        for follower in &self.group.followers {
            for (ip, mac) in &truths {
                let of_both = rows
                    .iter()
                    .filter(|row| row.port == follower.external_port && row.ip == *ip);
                let macs: Vec<_> = of_both.map(|row| row.mac).collect();
                assert_eq!(macs, [*mac], "{ip} on {}", follower.external_port);
            }
        }
        // Server and tests share a clock: nothing is of the future.
        let ahead = rows.iter().find(|row| row.timestamp > now() + 1_000);
        assert_eq!(ahead, None);
    }
}

async fn mirroring(
    lock: Option<&str>,
    remotes: Vec<Remote>,
    group: &BridgeGroup,
    shift: &Arc<AtomicI64>,
    settings: Settings,
) -> Mirroring {
    let clock = Clock::shifted(Arc::clone(shift));
    let adjust = |options| Options {
        transact_timeout: Duration::from_secs(30),
        leader_only: true,
        probe_interval: Some(Duration::from_millis(500)),
        backoff: Backoff {
            longest: Duration::from_millis(500),
            ..Backoff::default()
        },
        ..options
    };
    Mirroring::start(lock, remotes, group, clock, settings, adjust)
        .await
        .unwrap()
}

/// Steps the node's clock.
pub fn step<S>(rig: &Rig<S>, ms: i64) {
    rig.shift.fetch_add(ms, Ordering::Relaxed);
}

/// Deletes the rows of one port about one neighbour.
pub fn delete(port: &str, ip: &str) -> Operation {
    Operation::delete(MAC_BINDING)
        .filter(Clause::equal("logical_port", port))
        .filter(Clause::equal("ip", ip))
        .into()
}

/// Gives the source's row about a neighbour another MAC, now.
pub fn relearn(ip: &str, mac: &str) -> Operation {
    Operation::update(MAC_BINDING)
        .filter(Clause::equal("logical_port", SOURCE))
        .filter(Clause::equal("ip", ip))
        .set("mac", mac)
        .set("timestamp", now())
        .into()
}

/// The followers' rows about a neighbour, by port.
pub fn of_followers<'a>(rows: &'a [BindingRow], followers: usize, ip: &str) -> Vec<&'a BindingRow> {
    let ip: std::net::IpAddr = ip.parse().unwrap();
    let ports: Vec<String> = (1..=followers).map(follower_port).collect();
    let has = |row: &&BindingRow| row.ip == ip && ports.iter().any(|port| **port == *row.port);
    rows.iter().filter(has).collect()
}
