//! Looks at rows and lets those wait that have to be written.

use std::net::IpAddr;

use super::Mirror;
use crate::mirror::{
    batch::{Reason, Skip},
    clock::{Millis, Now},
    decide::{Ages, Need, Times, decide},
    group::Slot,
    queue::{Key, Lane},
    table::Truth,
};

/// Why a row is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
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
pub(super) struct View {
    pub(super) truth: Truth,
    pub(super) source_age: Option<u64>,
    /// Whether the truth is what is pinned, and not what the source says.
    pub(super) pinned: bool,
    pub(super) times: Times,
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Write(Need),
    Rest(Skip, Option<Millis>),
}

impl Mirror {
    pub(super) fn view(&self, ip: IpAddr, now: Now) -> Result<View, Skip> {
        let times = Times::new(&self.clock, now);
        if let Some(mac) = self.pins.mac(ip) {
            return Ok(View {
                truth: Truth {
                    mac,
                    timestamp: self.clock.fresh(now),
                    text: None,
                },
                source_age: None,
                pinned: true,
                times,
            });
        }
        if self.group.members.node_ips.contains(&ip) {
            return Err(Skip::NodeIp);
        }
        let truth = self.table.truth(ip).ok_or(Skip::SourceGone)?;
        let source = self.group.members.source.as_ref();
        Ok(View {
            truth,
            source_age: source.ok_or(Skip::SourceGone)?.age_ms(ip),
            pinned: false,
            times,
        })
    }

    pub(super) fn judge(&self, key: Key, view: &View) -> Judgement {
        let Some(follower) = self.group.followers.get(&key.slot) else {
            return Judgement::Rest(Skip::FollowerGone, None);
        };
        if self.writing.contains(&key) {
            return Judgement::Rest(Skip::InFlight, None);
        }
        let age = follower.member.age_ms(key.ip);
        let ages = Ages {
            source: view.source_age,
            follower: age,
            cooldown: if view.pinned {
                self.settings.pinned_cooldown(age, key.ip)
            } else {
                self.settings.cooldown(age)
            },
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
    pub(super) fn evaluate(&mut self, ip: IpAddr, cause: Cause, now: Now) {
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
        let slots: Vec<Slot> = self.group.followers.keys().copied().collect();
        for slot in slots {
            self.evaluate_row(Key { ip, slot }, cause, &view);
        }
    }

    /// Looks at one row.
    pub(super) fn evaluate_one(&mut self, key: Key, cause: Cause, now: Now) {
        if let Ok(view) = self.view(key.ip, now) {
            self.evaluate_row(key, cause, &view);
        }
    }

    pub(super) fn evaluate_row(&mut self, key: Key, cause: Cause, view: &View) {
        let now = view.times.now;
        match self.judge(key, view) {
            Judgement::Rest(skip, wake) => {
                self.counters.skips.count(skip, 1);
                if let Some(at) = wake {
                    self.wakes.no_later(key.ip, at);
                }
                if skip == Skip::InFlight && matches!(cause, Cause::NewBinding | Cause::MacChange) {
                    self.progress.begin(key, now.at);
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
        let age = self.group.followers.get(&key.slot)?.member.age_ms(key.ip)?;
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
