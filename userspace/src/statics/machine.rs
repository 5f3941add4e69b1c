//! The state machine: targets, node IPs and rows in, transactions out.

mod events;
mod outcome;
mod plan;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde::Serialize;

use super::{
    Treatment,
    counters::Counters,
    holds::{Holds, Pauses},
    in_flight::InFlight,
    masquerade::Masquerade,
    ports::{PortId, Ports},
    table::Table,
    wanted::BridgeBindings,
    work::{Key, Work},
};
use crate::{mirror::Millis, ovsdb::Uuid};

/// How static bindings are written. All times in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For how long changes are gathered after the last one.
    pub gather_ms: u64,
    /// For how long at most, from the first one on.
    pub most_gather_ms: u64,
    /// Rows of one transaction at most.
    pub chunk_rows: usize,
    /// From a commit until its rows are looked at again where the monitor has not shown them; longer
    /// where they are many.
    pub unseen_ms: u64,
    /// After a first refusal; doubled with each further one.
    pub retry_ms: u64,
    /// The longest pause after refusals.
    pub longest_retry_ms: u64,
    /// The gateway's own addresses.
    pub masquerade: Masquerade,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gather_ms: 1_000,
            most_gather_ms: 5_000,
            chunk_rows: 5_000,
            unseen_ms: 10_000,
            retry_ms: 1_000,
            longest_retry_ms: 300_000,
            masquerade: Masquerade::default(),
        }
    }
}

impl Settings {
    const fn pauses(&self) -> Pauses {
        Pauses {
            first_ms: self.retry_ms,
            longest_ms: self.longest_retry_ms,
        }
    }
}

/// What is to become of static bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They are written.
    #[default]
    Write,
    /// Those that are there stay right, and none is inserted: until the mirror has written rows of its
    /// own.
    Retain,
    /// All of ours are deleted.
    Withdraw,
}

/// Changes since these instants wait to be written together.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: Millis,
    last: Millis,
}

/// Keeps the `Static_MAC_Binding` rows of this node's gateway routers as node IPs want them.
///
/// ```text
///  row, target or node IP changes ──▶ gathering (1 s, at most 5 s) ──▶ ready ──▶ one transaction
///        │ a port leaves or is gone                                      ▲        under way
///        └──────────▶ urgent, at once ──────▶ one more transaction       └─ refused, not seen ─┘
/// ```
///
/// Every method takes the time, and none waits: call [`take_batch`](Self::take_batch) until it returns
/// `None` after each event, and again at [`next_deadline`](Self::next_deadline). What is written is
/// decided from the rows as they are when a batch is taken, so that what has changed back by then
/// writes nothing. northd computes everything anew for each northbound transaction: there is no next
/// one before the changes of the former are seen.
#[derive(Clone, Debug)]
pub struct StaticBindings {
    settings: Settings,
    mode: Mode,
    ports: Ports,
    table: Table,
    /// Rows of our ports whose address cannot be read.
    unreadable: BTreeMap<Uuid, PortId>,
    /// By bridge; `None` where the nodes are not known.
    wanted: Option<BTreeMap<Arc<str>, BridgeBindings>>,
    /// What has changed since the last window ended.
    changed: Work,
    window: Option<Window>,
    /// What is to be written now.
    ready: Work,
    /// Ports that lose all their rows at once.
    urgent: BTreeSet<PortId>,
    /// Parts of refused transactions in which the row at fault is not found yet.
    halves: VecDeque<Vec<Key>>,
    holds: Holds,
    in_flight: InFlight,
    next_batch: u64,
    synced: bool,
    targets_known: bool,
    /// Nothing is written before: the server was unavailable.
    pause_until: Millis,
    refusals: u32,
    counters: Counters,
}

/// The state at large, for people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Whether the rows known are the server's.
    pub synced: bool,
    /// Whether the nodes are known.
    pub nodes_known: bool,
    /// What is to become of static bindings.
    pub mode: Mode,
    /// Targets, by treatment.
    pub targets: BTreeMap<Treatment, usize>,
    /// Rows known, the gateway's own included.
    pub rows: usize,
    /// Those of them that are ours.
    pub ours: usize,
    /// Rows of our ports whose address cannot be read: they are left alone.
    pub unreadable: usize,
    /// Whether changes wait for their window to end, or to be written.
    pub waiting: bool,
    /// Transactions under way.
    pub in_flight: usize,
    /// Rows that are left alone for a while: refused, or contested by somebody else.
    pub held: usize,
    /// Ports that get no new rows for a while, since they were gone when the last were sent.
    pub barred_ports: usize,
    /// From the start.
    pub counters: Counters,
}

impl StaticBindings {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            mode: Mode::default(),
            ports: Ports::default(),
            table: Table::default(),
            unreadable: BTreeMap::new(),
            wanted: None,
            changed: Work::default(),
            window: None,
            ready: Work::default(),
            urgent: BTreeSet::new(),
            halves: VecDeque::new(),
            holds: Holds::default(),
            in_flight: InFlight::default(),
            next_batch: 0,
            synced: false,
            targets_known: false,
            pause_until: Millis::default(),
            refusals: 0,
            counters: Counters::default(),
        }
    }

    /// When [`take_batch`](Self::take_batch) is to be called again, if nothing happens before. An
    /// instant that has passed means at once; `None`, that only an event can change anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        if !self.synced || !self.targets_known {
            return None;
        }
        let waits = !self.halves.is_empty() || !self.ready.is_empty();
        let ready = (waits && !self.in_flight.has(false))
            || (!self.urgent.is_empty() && !self.in_flight.has(true));
        let bars = self.ports.iter().filter_map(|(_, port)| port.barred_until);
        [
            ready.then_some(self.pause_until),
            self.window_end(),
            self.holds.next(),
            self.in_flight.next(),
            bars.min(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn window_end(&self) -> Option<Millis> {
        let window = self.window?;
        let quiet = window.last.after(self.settings.gather_ms);
        Some(quiet.min(window.first.after(self.settings.most_gather_ms)))
    }

    /// Whether everything is written that there is to write for now. What is held back or barred does
    /// not count.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.synced
            && self.targets_known
            && self.changed.is_empty()
            && self.ready.is_empty()
            && self.urgent.is_empty()
            && self.halves.is_empty()
            && self.in_flight.is_empty()
    }

    /// The ports that [`targets()`](super::targets()) has to be told of: those that rows are or may be
    /// written to. To be kept on disk, and to be there before a batch is sent: rows of ours at a port
    /// that goes while the agent is not running are found by it.
    #[must_use]
    pub fn remembered(&self) -> BTreeSet<Arc<str>> {
        let ports = self.ports.iter().filter(|(id, port)| {
            port.treatment().is_some_and(|treatment| {
                !self.synced
                    || treatment == Treatment::Follower
                    || port.ours > 0
                    || self.in_flight.is_port_busy(*id)
            })
        });
        ports.map(|(_, port)| Arc::clone(&port.name)).collect()
    }

    /// What was done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The state at large.
    #[must_use]
    pub fn status(&self, now: Millis) -> Status {
        let mut targets = BTreeMap::new();
        let mut ours = 0;
        let mut barred_ports = 0;
        for (_, port) in self.ports.iter() {
            if let Some(treatment) = port.treatment() {
                *targets.entry(treatment).or_default() += 1;
                ours += port.ours;
            }
            barred_ports += usize::from(port.barred_until.is_some_and(|until| now < until));
        }
        Status {
            synced: self.synced,
            nodes_known: self.wanted.is_some(),
            mode: self.mode,
            targets,
            rows: self.table.len(),
            ours,
            unreadable: self.unreadable.len(),
            waiting: !(self.changed.is_empty()
                && self.ready.is_empty()
                && self.urgent.is_empty()
                && self.halves.is_empty()),
            in_flight: self.in_flight.uncommitted(),
            held: self.holds.len(),
            barred_ports,
            counters: self.counters,
        }
    }
}
