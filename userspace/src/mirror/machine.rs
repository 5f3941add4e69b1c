//! The state machine: rows and compositions in, transactions out.

#[cfg(test)]
mod tests;

mod events;
mod transact;

pub use transact::RowAtFault;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    net::IpAddr,
};

use serde::Serialize;

use super::{
    batch::{BatchId, Limits, Reason, Skip},
    clock::{ClockState, Millis, Now, ServerClock},
    counters::Counters,
    decide::{Ages, Need, Times, decide},
    group::{Group, Slot},
    holds::{Holds, Pauses},
    progress::Progress,
    queue::{Key, Lane, Queue, QueueDepth},
    table::{Table, Truth},
    wakes::Wakes,
};

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
}

/// Why a row is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The source has a new binding.
    NewBinding,
    /// The source has another MAC.
    MacChange,
    /// The follower is new.
    Backfill,
    /// Something else has changed, or the time has come.
    Settle,
    /// The periodic comparison.
    Compare,
    /// The first snapshot is there. Refreshes that are due wait until the instant given.
    Start(Millis),
    /// A later snapshot is there; the same.
    Resume(Millis),
}

/// What all followers' rows about one neighbour are judged by.
#[derive(Clone, Debug)]
struct View {
    truth: Truth,
    source_age: Option<u64>,
    times: Times,
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Write(Need),
    Rest(Skip, Option<Millis>),
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
}

/// Mirrors the bindings of a group's source to its followers.
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
/// transaction is to be told after the row changes that it made (which is the order in which an OVSDB
/// server sends them).
#[derive(Clone, Debug)]
pub struct Mirror {
    settings: Settings,
    group: Group,
    table: Table,
    clock: ServerClock,
    queue: Queue,
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
            queue: Queue::default(),
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
        Some(if ready {
            timers.min(self.pause_until)
        } else {
            timers
        })
    }

    /// Whether everything is written that there is to write for now.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.synced && self.in_flight.is_empty() && self.queue.is_empty() && self.halves.is_empty()
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
            rows: self.table.rows(),
            queued: self.queue.depth(),
            in_flight: self.in_flight.len(),
            lag_ms: self.lag(now),
            clock: self.clock.state(now),
            counters: self.counters.clone(),
        }
    }

    fn view(&self, ip: IpAddr, now: Now) -> Result<View, Skip> {
        if self.group.members.node_ips.contains(&ip) {
            return Err(Skip::NodeIp);
        }
        let truth = self.table.truth(ip).ok_or(Skip::SourceGone)?;
        let source = self.group.members.source.as_ref();
        Ok(View {
            truth,
            source_age: source.ok_or(Skip::SourceGone)?.age.for_ip(ip),
            times: Times::new(&self.clock, now),
        })
    }

    fn judge(&self, key: Key, view: &View) -> Judgement {
        let Some(follower) = self.group.followers.get(&key.slot) else {
            return Judgement::Rest(Skip::FollowerGone, None);
        };
        if self.writing.contains(&key) {
            return Judgement::Rest(Skip::InFlight, None);
        }
        let age = follower.member.age.for_ip(key.ip);
        let ages = Ages {
            source: view.source_age,
            follower: age,
            cooldown: self.settings.cooldown(age),
        };
        let row = self.table.follower_row(key.ip, key.slot, view.truth.mac);
        let at = view.times.now.at;
        match decide(&view.truth, row.as_ref(), ages, view.times) {
            Need::Nothing(skip, due) => {
                let wait = due.map(|due| due.saturating_sub(view.times.latest));
                let wait = wait.map(|ms| at.after(u64::try_from(ms).unwrap_or(0)));
                Judgement::Rest(skip, wait)
            }
            need => match self.holds.until(key, &need, &self.settings.pauses, at) {
                Some(until) => Judgement::Rest(Skip::HeldBack, Some(until)),
                None => Judgement::Write(need),
            },
        }
    }

    /// Looks at all followers' rows about a neighbour.
    fn evaluate(&mut self, ip: IpAddr, cause: Cause, now: Now) {
        self.wakes.cancel(ip);
        let view = match self.view(ip, now) {
            Ok(view) => view,
            Err(Skip::SourceGone) => return,
            Err(skip) => {
                let rows = self.group.followers.len();
                self.counters
                    .skips
                    .count(skip, u64::try_from(rows).unwrap_or(u64::MAX));
                return;
            }
        };
        for slot in self.slots(cause, now) {
            self.evaluate_row(Key { ip, slot }, cause, &view);
        }
    }

    /// Looks at one row.
    fn evaluate_one(&mut self, key: Key, cause: Cause, now: Now) {
        if let Ok(view) = self.view(key.ip, now) {
            self.evaluate_row(key, cause, &view);
        }
    }

    /// The followers, in the order in which they are served: where a packet may wait, those that have
    /// just sent one come first.
    fn slots(&self, cause: Cause, now: Now) -> Vec<Slot> {
        /// OVN drops a waiting packet after this time (ovn-controller, pinctrl.c).
        const BUFFERED_MS: u64 = 10_000;
        let mut slots: Vec<Slot> = self.group.followers.keys().copied().collect();
        if matches!(cause, Cause::NewBinding | Cause::MacChange) {
            let asked = |slot: &Slot| {
                let follower = self.group.followers.get(slot);
                let asked = follower.and_then(|follower| follower.asked);
                asked.is_some_and(|at| now.at.since(at) <= BUFFERED_MS)
            };
            slots.sort_by_cached_key(|slot| !asked(slot));
        }
        slots
    }

    fn evaluate_row(&mut self, key: Key, cause: Cause, view: &View) {
        let now = view.times.now;
        match self.judge(key, view) {
            Judgement::Rest(skip, wake) => {
                self.counters.skips.count(skip, 1);
                if let Some(at) = wake {
                    self.wakes.no_later(key.ip, at);
                }
                if skip == Skip::InFlight && matches!(cause, Cause::NewBinding | Cause::MacChange) {
                    self.parked.insert(key, cause);
                }
            }
            Judgement::Write(Need::Refresh(_)) if let Some(at) = self.spread(key, cause, view) => {
                self.wakes.no_later(key.ip, at);
            }
            Judgement::Write(need) => {
                let reason = self.reason(key, cause, need);
                let lane = self.lane(key, reason);
                if lane == Lane::Urgent {
                    self.progress.begin(key, now.at);
                }
                self.queue.push(key, reason, lane, false);
            }
        }
    }

    /// Until when a refresh can wait that a snapshot found due.
    fn spread(&self, key: Key, cause: Cause, view: &View) -> Option<Millis> {
        let (Cause::Start(at) | Cause::Resume(at)) = cause else {
            return None;
        };
        let now = view.times.now;
        let age = self
            .group
            .followers
            .get(&key.slot)?
            .member
            .age
            .for_ip(key.ip)?;
        let row = self.table.follower_row(key.ip, key.slot, view.truth.mac)?;
        let expiry = row.timestamp.saturating_add_unsigned(age);
        let left = u64::try_from(expiry.saturating_sub(view.times.latest)).unwrap_or(0);
        (at > now.at && at.since(now.at) < left / 2).then_some(at)
    }

    fn reason(&self, key: Key, cause: Cause, need: Need) -> Reason {
        match (need, cause) {
            (Need::Refresh(_) | Need::Nothing(..), _) => Reason::Refresh,
            (_, Cause::Compare) => Reason::Drift,
            (_, Cause::MacChange) => Reason::MacChange,
            (Need::Insert, Cause::NewBinding) => Reason::NewBinding,
            (Need::Correct(_), Cause::NewBinding) => Reason::MacChange,
            (Need::Insert, Cause::Backfill | Cause::Start(_)) => Reason::Backfill,
            (Need::Insert, _) if self.holds.is_lost(key) => Reason::PutBack,
            (Need::Insert, _) => Reason::Fill,
            (Need::Correct(_), _) => Reason::Correction,
        }
    }
}
