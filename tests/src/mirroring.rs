//! The agent's mirror on a database of one's own: no OVN, no switch, no agent process.

mod progress;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use neighsteer::{
    agent::{
        clock::Clock,
        mirroring::{Done, Mirrors},
    },
    ids::{Mac, OfPort},
    mirror::{GroupMembers, RowOperation, Settings, Status},
    ovsdb::{
        Batch, Client, Event, Monitor, MonitorCondition, OperationResult, Options, Remote,
        SessionError, TransactError, Uuid,
    },
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, HostEndpoint, IngressPort},
};
use tokio::{task::JoinHandle, time::timeout};

use crate::southbound;

pub use progress::Progress;

/// The source's external port.
pub const SOURCE: &str = "rtoe-GR_node";
/// The bridge of the group.
pub const BRIDGE: &str = "br-ex";
/// For how long nothing may come of anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A follower's external port; the first one's number is 1.
#[must_use]
pub fn follower_port(number: usize) -> String {
    format!("rtoe-GR_net{number}_node")
}

/// The mirrors with their connection, and the loop that an agent's driver is to them.
#[derive(Debug)]
pub struct Mirroring {
    /// The mirrors.
    pub mirrors: Mirrors,
    monitor: Monitor,
    driver: JoinHandle<()>,
}

/// What a turn was about.
#[derive(Debug)]
pub enum Turn {
    /// Monitored rows changed.
    Changes(Batch),
    /// The connection stands, and these rows are not what they were.
    Synced(Batch),
    /// The connection is lost.
    Disconnected(Arc<SessionError>),
    /// A transaction has ended.
    Written(
        Vec<RowOperation>,
        Result<Vec<OperationResult>, TransactError>,
    ),
    /// A row at fault was read again, or time has passed.
    Other,
}

enum Woken {
    Event(Event),
    Done(Done),
    Due,
}

impl Mirroring {
    /// Connects, and mirrors this group once its rows are known; with a lock, only while it is held.
    ///
    /// # Errors
    /// Where the server does not answer, or the lock's name is none.
    pub async fn start(
        lock: Option<&str>,
        remotes: Vec<Remote>,
        group: &BridgeGroup,
        clock: Clock,
        settings: Settings,
        adjust: impl FnOnce(Options) -> Options,
    ) -> anyhow::Result<Self> {
        let none = MonitorCondition::AnyOf(Vec::new());
        let first = remotes.first().context("a remote is needed")?.clone();
        // As the agent has it.
        let options = adjust(Options {
            dedicated_writer: true,
            remotes,
            ..southbound::options(first, none)
        });
        let (client, mut monitor, driver) = Client::connect(options);
        let driver = tokio::spawn(driver.run());
        southbound::synced(&mut monitor).await?;
        let lock = lock.map(|name| client.lock(name)).transpose()?;
        let mut mirrors = Mirrors::new(client, clock, settings);
        if let Some(lock) = lock {
            mirrors = mirrors.under(lock);
        }
        mirrors.regroup(wanted(group));
        mirrors.synced();
        Ok(Self {
            mirrors,
            monitor,
            driver,
        })
    }

    /// Gives the group another composition.
    pub fn regroup(&mut self, group: &BridgeGroup) {
        self.mirrors.regroup(wanted(group));
    }

    /// One turn of the agent's loop. Cancel-safe.
    ///
    /// # Errors
    /// Where the client has ended.
    pub async fn turn(&mut self) -> anyhow::Result<Turn> {
        let deadline = self.mirrors.next_deadline();
        let woken = tokio::select! {
            biased;
            event = self.monitor.next() => Woken::Event(event.context("the client has ended")?),
            done = self.mirrors.finished() => Woken::Done(done),
            () = due(deadline) => Woken::Due,
        };
        let turn = match woken {
            Woken::Event(Event::Changes(batch)) => {
                self.mirrors.apply(&batch.changes, batch.conditions);
                Turn::Changes(batch)
            }
            Woken::Event(Event::Synced(batch)) => {
                self.mirrors.apply(&batch.changes, batch.conditions);
                self.mirrors.synced();
                Turn::Synced(batch)
            }
            Woken::Event(Event::Disconnected { error }) => {
                self.mirrors.disconnected();
                Turn::Disconnected(error)
            }
            Woken::Done(Done::Batch(finished)) => {
                let (bridge, batch, result) = *finished;
                let turn = Turn::Written(batch.operations.clone(), result.clone());
                let finished = Box::new((bridge, batch, result));
                self.mirrors.settle(Done::Batch(finished));
                turn
            }
            Woken::Done(done) => {
                self.mirrors.settle(done);
                Turn::Other
            }
            Woken::Due => Turn::Other,
        };
        self.mirrors.pump();
        Ok(turn)
    }

    /// Turns until the observer is content.
    ///
    /// # Errors
    /// Where nothing happens any more, or the client has ended.
    pub async fn until(
        &mut self,
        what: &str,
        mut content: impl FnMut(&Turn, &Mirrors) -> bool,
    ) -> anyhow::Result<()> {
        let turns = timeout(PATIENCE, async {
            loop {
                let turn = self.turn().await?;
                if content(&turn, &self.mirrors) {
                    return anyhow::Ok(());
                }
            }
        });
        match turns.await {
            Ok(result) => result,
            Err(_) => bail!("no {what} within {PATIENCE:?}: {:?}", self.status()),
        }
    }

    /// The mirror's state.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.mirrors.status().remove(BRIDGE)
    }
}

impl Drop for Mirroring {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A group as the driver hands it to the mirrors, with no nodes.
fn wanted(group: &BridgeGroup) -> BTreeMap<Arc<str>, GroupMembers> {
    let members = GroupMembers::of(group, Arc::default());
    [(Arc::clone(&group.bridge), members)].into()
}

/// The source on the first datapath, a follower on each of the others, whose rows live for
/// `age` seconds.
///
/// # Errors
/// Where there is no datapath.
pub fn group(datapaths: &[Uuid], age: &str) -> anyhow::Result<BridgeGroup> {
    let ofport = OfPort::from_column(Some(1)).context("1 is a port number")?;
    let router = |number: usize, datapath: &Uuid| GatewayRouter {
        name: format!("GR_net{number}_node").into(),
        network: Some(format!("net{number}").into()),
        external_port: match number {
            0 => SOURCE.into(),
            _ => follower_port(number).into(),
        },
        external_mac: None,
        datapath: Some(*datapath),
        patch_port: format!("patch-net{number}").into(),
        ofport,
        mac_binding_age_threshold: AgeThreshold::from_option(Some(&Arc::from(age))),
    };
    let mut routers = datapaths
        .iter()
        .enumerate()
        .map(|(number, datapath)| router(number, datapath));
    Ok(BridgeGroup {
        bridge: BRIDGE.into(),
        bridge_mac: Mac([2, 0, 0, 0, 0, 2]),
        datapath_type: "netdev".into(),
        host: HostEndpoint::Local,
        uplink: IngressPort {
            name: "eth0".into(),
            ofport,
        },
        secondary: Vec::new(),
        source: routers.next().context("no datapath for the source")?,
        followers: routers.collect(),
        gateway_vlan: None,
        ipv4: true,
        ipv6: true,
        node_addresses: Vec::new(),
    })
}

async fn due(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
