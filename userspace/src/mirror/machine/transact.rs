//! What the mirror writes.

use std::{net::IpAddr, sync::Arc};

use super::{
    InFlight, InFlightRow, Mirror,
    evaluate::{Cause, Judgement, View},
};
use crate::mirror::{
    batch::{Batch, BatchId, Reason, RowOperation, RowWrite, Skip},
    clock::Now,
    decide::Need,
    queue::{Key, Lane},
};

/// Where the rows of the next transaction come from.
enum Supply {
    Half(Vec<(Key, Reason)>),
    Lane(Lane, usize),
}

/// Whose turn it is, so that no lane waits for ever while another one is never empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// Transactions in a row for what is urgent.
    urgent: u8,
    /// Those for the rest.
    others: u8,
}

impl Turns {
    /// What is urgent goes first, but for one transaction in sixteen where it does not end.
    const fn is_urgents(&mut self, begins: bool, others_wait: bool) -> bool {
        if begins {
            self.urgent = 0;
        } else if others_wait && self.urgent >= 15 {
            self.urgent = 0;
            return false;
        }
        self.urgent = self.urgent.saturating_add(1);
        true
    }

    /// The order in which the other lanes are looked at: each is first at times.
    const fn next_order(&mut self) -> [Lane; 3] {
        self.others = self.others.wrapping_add(1);
        match self.others % 4 {
            2 => [Lane::Repair, Lane::Refresh, Lane::Backfill],
            0 => [Lane::Refresh, Lane::Backfill, Lane::Repair],
            _ => [Lane::Backfill, Lane::Repair, Lane::Refresh],
        }
    }
}

/// What goes into a transaction.
#[derive(Default)]
struct Taken {
    rows: Vec<InFlightRow>,
    operations: Vec<RowOperation>,
    /// The neighbour looked at last.
    view: Option<(IpAddr, Result<View, Skip>)>,
}

impl Mirror {
    /// The next transaction, if there is anything to write and the server has room for it.
    pub fn take_batch(&mut self, now: Now) -> Option<Batch> {
        if !self.synced {
            return None;
        }
        self.advance(now);
        if self.in_flight.len() >= self.settings.limits.in_flight || now.at < self.pause_until {
            return None;
        }
        loop {
            let supply = self.supply()?;
            let mut taken = Taken::default();
            match supply {
                Supply::Half(half) => {
                    for (key, reason) in half {
                        self.take_row(key, reason, now, &mut taken);
                    }
                }
                Supply::Lane(lane, most) => {
                    // Behind a flood of bindings, a new one would wait for all of them: half of
                    // what is written is what waits longest, the other half is the newest.
                    let flood = lane == Lane::Urgent && self.waits_much(lane);
                    let newest = if flood { most / 2 } else { 0 };
                    while taken.operations.len() < most
                        && let Some((key, reason)) = if taken.operations.len() < newest {
                            self.queue.pop_newest(lane)
                        } else {
                            self.queue.pop(lane)
                        }
                    {
                        self.take_row(key, reason, now, &mut taken);
                    }
                }
            }
            if !taken.operations.is_empty() {
                return Some(self.send(taken, now));
            }
        }
    }

    /// Does what time has brought.
    fn advance(&mut self, now: Now) {
        while let Some(ip) = self.wakes.pop(now.at) {
            self.evaluate(ip, Cause::Settle, now);
        }
        if now.at >= self.compare_at {
            self.compare_at = now.at.after(self.settings.compare_ms);
            self.holds.purge(
                self.settings.pauses.longest_retry_ms.saturating_mul(2),
                now.at,
            );
            for ip in self.neighbours() {
                if self.pins.mac(ip).is_some() {
                    self.agenda.push(ip, Cause::Compare);
                } else {
                    self.evaluate(ip, Cause::Compare, now);
                }
            }
        }
        self.work_off_agenda(now);
    }

    fn supply(&mut self) -> Option<Supply> {
        if let Some(half) = self.halves.pop_front() {
            return Some(Supply::Half(half));
        }
        let limits = self.settings.limits;
        let suspects = self.queue.len(Lane::Suspect) > 0;
        let others = Lane::ALL.into_iter().filter(|lane| *lane != Lane::Urgent);
        let others = others.map(|lane| self.queue.len(lane)).sum::<usize>() > 0;
        if self.queue.len(Lane::Urgent) > 0 && self.turns.is_urgents(!self.burst, others) {
            let first = !std::mem::replace(&mut self.burst, true);
            let most = if first {
                limits.first_rows
            } else {
                self.chunk(Lane::Urgent)
            };
            return Some(Supply::Lane(Lane::Urgent, most.max(1)));
        }
        if suspects && !std::mem::replace(&mut self.last_was_suspect, true) {
            return Some(Supply::Lane(Lane::Suspect, limits.first_rows.max(1)));
        }
        self.last_was_suspect = false;
        for lane in self.turns.next_order().into_iter().chain([Lane::Suspect]) {
            if self.queue.len(lane) > 0 {
                return Some(Supply::Lane(lane, self.chunk(lane).max(1)));
            }
        }
        None
    }

    /// Few, large transactions where much waits or the server is slow.
    fn chunk(&self, lane: Lane) -> usize {
        let limits = self.settings.limits;
        if self.slow || self.waits_much(lane) {
            limits.most_rows
        } else {
            limits.rows
        }
    }

    fn waits_much(&self, lane: Lane) -> bool {
        self.queue.len(lane) >= self.settings.limits.rows.saturating_mul(4)
    }

    /// Decides once more about a row that was queued, and adds what it needs.
    fn take_row(&mut self, key: Key, reason: Reason, now: Now, taken: &mut Taken) {
        let view = match &taken.view {
            Some((ip, view)) if *ip == key.ip => view,
            _ => &taken.view.insert((key.ip, self.view(key.ip, now))).1,
        };
        let judged = match view {
            Ok(view) => match self.judge(key, view) {
                Judgement::Write(need) => Ok((view, need)),
                Judgement::Rest(skip, wake) => Err((skip, wake)),
            },
            Err(skip) => Err((*skip, None)),
        };
        match judged {
            Ok((view, need)) => {
                let reason = fitting(reason, need);
                let Some(operation) = self.operation(key, reason, need, view) else {
                    return;
                };
                self.holds.taken(key, reason, now.at);
                self.writing.insert(key);
                taken.rows.push(InFlightRow {
                    key,
                    reason,
                    need,
                    mac: view.truth.mac,
                    timestamp: operation.write.timestamp(),
                    pinned: view.pinned,
                });
                taken.operations.push(operation);
            }
            Err((skip, wake)) => {
                self.counters.skips.count(skip, 1);
                if let Some(at) = wake {
                    self.wakes.no_later(key.ip, at);
                }
                if skip == Skip::InFlight {
                    let cause = if reason.is_urgent() {
                        Cause::MacChange
                    } else {
                        Cause::Settle
                    };
                    self.parked.insert(key, cause);
                }
                self.finish(key, false, now);
            }
        }
    }

    fn operation(&self, key: Key, reason: Reason, need: Need, view: &View) -> Option<RowOperation> {
        let member = &self.group.followers.get(&key.slot)?.member;
        let truth = &view.truth;
        let timestamp = self.clock.stamp(truth.timestamp, view.times.now);
        let write = match need {
            Need::Insert => RowWrite::Insert {
                port: Arc::clone(&member.port),
                datapath: member.datapath,
                ip: truth.spell(key.ip),
                mac: truth.mac,
                timestamp,
            },
            Need::Correct(uuid) => RowWrite::Update {
                uuid,
                mac: Some(truth.mac),
                timestamp,
            },
            Need::Refresh(uuid) => RowWrite::Update {
                uuid,
                mac: None,
                timestamp,
            },
            Need::Nothing(..) => return None,
        };
        Some(RowOperation {
            reason,
            port: Arc::clone(&member.port),
            ip: key.ip,
            write,
        })
    }

    fn send(&mut self, taken: Taken, now: Now) -> Batch {
        let Taken {
            rows, operations, ..
        } = taken;
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        self.in_flight.insert(
            id,
            InFlight {
                taken: now.at,
                urgent: rows.iter().any(|row| row.reason.is_urgent()),
                rows,
            },
        );
        Batch { id, operations }
    }
}

/// The reason for which a row is really written: it may have changed since it was queued.
const fn fitting(reason: Reason, need: Need) -> Reason {
    match (need, reason) {
        (Need::Refresh(_), _) => Reason::Refresh,
        (Need::Insert, Reason::Refresh | Reason::Correction) => Reason::Fill,
        (Need::Correct(_), Reason::NewBinding) => Reason::MacChange,
        (Need::Correct(_), Reason::MacChange | Reason::Drift) => reason,
        (Need::Correct(_), _) => Reason::Correction,
        _ => reason,
    }
}
