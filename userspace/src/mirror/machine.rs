//! The state machine: rows and compositions in, transactions out.

#[cfg(test)]
mod tests;

mod evaluate;
mod events;
#[cfg(test)]
mod inspect;
mod outcome;
mod pinned;
mod transact;

pub use outcome::RowAtFault;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    net::IpAddr,
};

use evaluate::Cause;
use pinned::{Agenda, Pins};
use serde::Serialize;
use transact::Turns;

use super::{
    batch::{BatchId, Limits, Reason},
    clock::{ClockState, Millis, Now, ServerClock},
    counters::Counters,
    decide::Need,
    group::Group,
    holds::{Holds, Pauses},
    progress::Progress,
    queue::{Key, Queue, QueueDepth},
    table::Table,
    wakes::Wakes,
};
use crate::ids::Mac;

/// How the mirror behaves. All times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How much is written at once.
    pub limits: Limits,
    /// How long rows are held back.
    pub pauses: Pauses,
    /// A right row is not refreshed sooner than this after its timestamp; half of the follower's age
    /// threshold where `None`, and never more than three quarters of it.
    pub cooldown_ms: Option<u64>,
    /// For how long refreshes of a source are gathered.
    pub coalesce_ms: u64,
    /// Between two comparisons of everything.
    pub compare_ms: u64,
    /// Over how long the refreshes that a start or a reconnection finds due are spread.
    pub spread_ms: u64,
    /// From how much difference on the clocks differ.
    pub clock_tolerance_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            pauses: Pauses::default(),
            cooldown_ms: None,
            coalesce_ms: 100,
            compare_ms: 60_000,
            spread_ms: 30_000,
            clock_tolerance_ms: 5_000,
        }
    }
}

/// Rows that do not age are put back this often at most, where nothing else is configured.
const COOLDOWN_WITHOUT_AGING_MS: u64 = 150_000;

impl Settings {
    /// The cooldown of rows with this age threshold.
    pub(super) fn cooldown(&self, age: Option<u64>) -> u64 {
        let configured = self.cooldown_ms;
        match age {
            Some(age) => configured.unwrap_or(age / 2).min(age / 4 * 3),
            None => configured.unwrap_or(COOLDOWN_WITHOUT_AGING_MS),
        }
    }

    /// The cooldown of a pinned row with this age threshold, which is when it is refreshed: nothing
    /// else calls for that. It differs by address, by up to an eighth of the threshold, or rows that
    /// were written together would be due together for ever; and it is a quarter of it at least.
    pub(super) fn pinned_cooldown(&self, age: Option<u64>, ip: IpAddr) -> u64 {
        let cooldown = self.cooldown(age);
        let Some(age) = age else {
            return cooldown;
        };
        let cooldown = cooldown.max(age / 4);
        let room = (age / 4 * 3).saturating_sub(cooldown).min(age / 8);
        cooldown.saturating_add(phase(ip) % room.saturating_add(1))
    }
}

/// A number that differs from address to address (FNV-1a).
fn phase(ip: IpAddr) -> u64 {
    let bytes = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A transaction under way.
#[derive(Clone, Debug)]
struct InFlight {
    taken: Millis,
    urgent: bool,
    rows: Vec<InFlightRow>,
}

#[derive(Clone, Copy, Debug)]
struct InFlightRow {
    key: Key,
    reason: Reason,
    need: Need,
    mac: Mac,
    timestamp: i64,
    pinned: bool,
}

/// Mirrors the bindings of a group's source to its followers, and keeps those of nodes there.
///
/// ```text
///                set_group, upsert, remove
///                          │
///             ┌────────────▼───────────┐  synced   ┌────────┐
///   start ──▶ │ gathering a snapshot   │ ────────▶ │ synced │ ─▶ take_batch ─▶ in flight
///             │ (nothing is planned)   │ ◀──────── │        │ ◀─ committed, failed
///             └────────────────────────┘disconnected└────────┘
/// ```
///
/// Every method takes the time, and none waits: call [`take_batch`](Self::take_batch) until it returns
/// `None` after each event, and again at [`next_deadline`](Self::next_deadline). The outcome of a
/// transaction is best told after the row changes that it made, which is the order in which an OVSDB
/// server sends them; where it overtakes them, the rows are left alone for a moment.
#[derive(Clone, Debug)]
pub struct Mirror {
    settings: Settings,
    group: Group,
    table: Table,
    pins: Pins,
    clock: ServerClock,
    queue: Queue,
    /// Neighbours whose rows are looked at as the queue has room for what they need.
    agenda: Agenda,
    /// Parts of refused transactions in which the row at fault is not found yet.
    halves: VecDeque<Vec<(Key, Reason)>>,
    holds: Holds,
    wakes: Wakes,
    progress: Progress,
    in_flight: BTreeMap<BatchId, InFlight>,
    writing: HashSet<Key>,
    /// What has happened to rows while they were being written.
    parked: HashMap<Key, Cause>,
    next_batch: u64,
    synced: bool,
    ever_synced: bool,
    compare_at: Millis,
    /// Nothing is written before: the server was unavailable.
    pause_until: Millis,
    refusals: u32,
    /// The last transaction took long.
    slow: bool,
    /// The first, small chunk of what is urgent is out.
    burst: bool,
    last_was_suspect: bool,
    turns: Turns,
    counters: Counters,
}

/// The state of the mirror, for people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Whether the rows known are the server's.
    pub synced: bool,
    /// The source's port.
    pub source: Option<String>,
    /// The number of followers.
    pub followers: usize,
    /// The source's bindings.
    pub bindings: usize,
    /// The nodes' bindings that are kept on every follower.
    pub pinned: usize,
    /// How many of the followers' rows for them are missing, or have another MAC.
    pub pinned_missing: usize,
    /// Rows known, of the source and the followers.
    pub rows: usize,
    /// Rows that wait.
    pub queued: QueueDepth,
    /// Transactions under way.
    pub in_flight: usize,
    /// For how long the oldest new or changed source row is not served, ms.
    pub lag_ms: Option<u64>,
    /// How the node's clock compares with the database's timestamps.
    pub clock: ClockState,
    /// From its start.
    pub counters: Counters,
}

impl Mirror {
    /// A mirror that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            clock: ServerClock::new(settings.clock_tolerance_ms),
            settings,
            group: Group::default(),
            table: Table::default(),
            pins: Pins::default(),
            queue: Queue::default(),
            agenda: Agenda::default(),
            halves: VecDeque::new(),
            holds: Holds::default(),
            wakes: Wakes::default(),
            progress: Progress::default(),
            in_flight: BTreeMap::new(),
            writing: HashSet::new(),
            parked: HashMap::new(),
            next_batch: 0,
            synced: false,
            ever_synced: false,
            compare_at: Millis::default(),
            pause_until: Millis::default(),
            refusals: 0,
            slow: false,
            burst: false,
            last_was_suspect: false,
            turns: Turns::default(),
            counters: Counters::default(),
        }
    }

    /// When [`take_batch`](Self::take_batch) is to be called again, if nothing happens before. An
    /// instant that has passed means at once; `None`, that only an event can change anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        if !self.synced {
            return None;
        }
        let timers = self
            .wakes
            .next()
            .map_or(self.compare_at, |wake| wake.min(self.compare_at));
        let waits = !self.queue.is_empty() || !self.halves.is_empty();
        let ready = waits && self.in_flight.len() < self.settings.limits.in_flight;
        Some(if self.has_room_for_more() {
            Millis::default()
        } else if ready {
            timers.min(self.pause_until)
        } else {
            timers
        })
    }

    /// Whether everything is written that there is to write for now.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let waits = !self.queue.is_empty() || !self.halves.is_empty() || !self.agenda.is_empty();
        self.synced && self.in_flight.is_empty() && !waits
    }

    /// How long the oldest new or changed source row is not served, ms.
    #[must_use]
    pub fn lag(&self, now: Now) -> Option<u64> {
        self.progress.lag(now.at)
    }

    /// What was done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The state at large.
    #[must_use]
    pub fn status(&self, now: Now) -> Status {
        let source = self.group.members.source.as_ref();
        Status {
            synced: self.synced,
            source: source.map(|source| source.port.to_string()),
            followers: self.group.followers.len(),
            bindings: self.table.source_bindings(),
            pinned: self.pins.len(),
            pinned_missing: self.pinned_missing(),
            rows: self.table.rows(),
            queued: self.queue.depth(),
            in_flight: self.in_flight.len(),
            lag_ms: self.lag(now),
            clock: self.clock.state(now),
            counters: self.counters.clone(),
        }
    }
}
