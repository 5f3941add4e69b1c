//! Which rows wait to be written, most urgent first. A row waits once, whatever happens to it
//! meanwhile: what is written is decided when it is taken.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
};

use serde::Serialize;

use super::{batch::Reason, group::Slot};

/// One follower's row about one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) ip: IpAddr,
    pub(super) slot: Slot,
}

/// How urgent a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// A packet may be waiting for it.
    Urgent,
    /// A new follower's.
    Backfill,
    /// Something is wrong or missing.
    Repair,
    /// Only older than it should be.
    Refresh,
    /// It has failed before: it goes by itself, so that it costs the others nothing.
    Suspect,
}

impl Lane {
    pub(super) const ALL: [Self; 5] = [
        Self::Urgent,
        Self::Backfill,
        Self::Repair,
        Self::Refresh,
        Self::Suspect,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Where a row goes that never failed.
    pub(super) const fn of(reason: Reason) -> Self {
        match reason {
            Reason::NewBinding | Reason::MacChange => Self::Urgent,
            Reason::Backfill => Self::Backfill,
            Reason::Fill | Reason::PutBack | Reason::Correction | Reason::Drift => Self::Repair,
            Reason::Refresh => Self::Refresh,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Wish {
    /// Why it waits, and where; `None` once taken, as long as a stale entry is in some lane.
    waits: Option<(Reason, Lane)>,
    /// The lanes that hold an entry for it.
    entries: u8,
}

/// How many rows wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueDepth {
    /// For new bindings and changed MACs.
    pub urgent: usize,
    /// For new followers.
    pub backfill: usize,
    /// To fill, put back and correct.
    pub repair: usize,
    /// To be refreshed.
    pub refresh: usize,
    /// That failed before.
    pub suspect: usize,
}

/// The rows that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    lanes: [VecDeque<Key>; Lane::ALL.len()],
    waiting: [usize; Lane::ALL.len()],
    wishes: HashMap<Key, Wish>,
}

impl Queue {
    fn lane(&mut self, lane: Lane) -> Option<&mut VecDeque<Key>> {
        self.lanes.get_mut(lane as usize)
    }

    fn count(&mut self, lane: Lane, change: isize) {
        if let Some(waiting) = self.waiting.get_mut(lane as usize) {
            *waiting = waiting.saturating_add_signed(change);
        }
    }

    /// The number of rows that wait in a lane.
    pub(super) fn len(&self, lane: Lane) -> usize {
        self.waiting.get(lane as usize).copied().unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        Lane::ALL.iter().all(|lane| self.len(*lane) == 0)
    }

    pub(super) fn depth(&self) -> QueueDepth {
        QueueDepth {
            urgent: self.len(Lane::Urgent),
            backfill: self.len(Lane::Backfill),
            repair: self.len(Lane::Repair),
            refresh: self.len(Lane::Refresh),
            suspect: self.len(Lane::Suspect),
        }
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.wishes
            .get(&key)
            .is_some_and(|wish| wish.waits.is_some())
    }

    /// Lets a row wait, at the end of its lane or (`first`) at the front. One that waits for
    /// something more urgent keeps its place.
    pub(super) fn push(&mut self, key: Key, reason: Reason, lane: Lane, first: bool) {
        let wish = self.wishes.entry(key).or_insert(Wish {
            waits: None,
            entries: 0,
        });
        let former = wish.waits.map(|(_, lane)| lane);
        if former.is_some_and(|former| former < lane) {
            return;
        }
        wish.waits = Some((reason, lane));
        let new = wish.entries & lane.bit() == 0;
        wish.entries |= lane.bit();
        if former != Some(lane) {
            if let Some(former) = former {
                self.count(former, -1);
            }
            self.count(lane, 1);
        }
        if new && let Some(queue) = self.lane(lane) {
            if first {
                queue.push_front(key);
            } else {
                queue.push_back(key);
            }
        }
    }

    /// Takes the row of a lane that waits longest.
    pub(super) fn pop(&mut self, lane: Lane) -> Option<(Key, Reason)> {
        self.pop_by(lane, VecDeque::pop_front)
    }

    /// Takes the row that has come last into a lane.
    pub(super) fn pop_newest(&mut self, lane: Lane) -> Option<(Key, Reason)> {
        self.pop_by(lane, VecDeque::pop_back)
    }

    fn pop_by(
        &mut self,
        lane: Lane,
        pop: fn(&mut VecDeque<Key>) -> Option<Key>,
    ) -> Option<(Key, Reason)> {
        loop {
            let key = pop(self.lane(lane)?)?;
            let Some(wish) = self.wishes.get_mut(&key) else {
                continue;
            };
            wish.entries &= !lane.bit();
            let taken = match wish.waits {
                Some((reason, waits)) if waits == lane => {
                    wish.waits = None;
                    Some(reason)
                }
                _ => None,
            };
            if wish.waits.is_none() && wish.entries == 0 {
                self.wishes.remove(&key);
            }
            if let Some(reason) = taken {
                self.count(lane, -1);
                self.give_back_memory();
                return Some((key, reason));
            }
        }
    }

    /// A burst should not cost memory for ever.
    fn give_back_memory(&mut self) {
        const KEPT: usize = 4_096;
        if self.wishes.is_empty() && self.wishes.capacity() > KEPT {
            self.wishes.shrink_to(KEPT);
            for lane in &mut self.lanes {
                lane.shrink_to(KEPT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::group::GroupMembers;
    use crate::mirror::group::{Group, Member};
    use crate::ovsdb::Uuid;

    fn keys() -> Vec<Key> {
        let member = |number: u128| Member {
            port: format!("rtoe-{number}").into(),
            datapath: Uuid(uuid::Uuid::from_u128(number)),
            age: crate::topology::AgeThreshold::default(),
        };
        let mut group = Group::default();
        group.replace(GroupMembers {
            followers: (1..=3).map(member).collect(),
            ..GroupMembers::default()
        });
        group
            .followers
            .keys()
            .map(|slot| Key {
                ip: [10, 0, 0, 1].into(),
                slot: *slot,
            })
            .collect()
    }

    #[test]
    fn a_row_waits_once_and_for_the_most_urgent_reason() {
        let key = keys()[0];
        let mut queue = Queue::default();
        queue.push(key, Reason::Refresh, Lane::Refresh, false);
        queue.push(key, Reason::MacChange, Lane::Urgent, false);
        queue.push(key, Reason::Fill, Lane::Repair, false);
        assert_eq!(queue.len(Lane::Refresh), 0);
        assert_eq!(queue.pop(Lane::Repair), None);
        assert_eq!(queue.pop(Lane::Urgent), Some((key, Reason::MacChange)));
        assert_eq!(queue.pop(Lane::Refresh), None);
        assert!(queue.is_empty());
        assert!(queue.wishes.is_empty());
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        let key = keys()[0];
        let mut queue = Queue::default();
        for _ in 0..100 {
            queue.push(key, Reason::Refresh, Lane::Refresh, false);
            queue.push(key, Reason::NewBinding, Lane::Urgent, false);
            assert_eq!(queue.pop(Lane::Urgent), Some((key, Reason::NewBinding)));
        }
        assert!(queue.lanes.iter().all(|lane| lane.len() <= 1));
        queue.push(key, Reason::Refresh, Lane::Refresh, false);
        assert_eq!(queue.pop(Lane::Refresh), Some((key, Reason::Refresh)));
        assert_eq!(queue.pop(Lane::Refresh), None);
    }

    #[test]
    fn rows_that_return_go_to_the_front() {
        let keys = keys();
        let mut queue = Queue::default();
        queue.push(keys[0], Reason::Fill, Lane::Repair, false);
        queue.push(keys[1], Reason::Fill, Lane::Repair, false);
        queue.push(keys[2], Reason::Fill, Lane::Repair, true);
        let order: Vec<Key> = std::iter::from_fn(|| queue.pop(Lane::Repair))
            .map(|(key, _)| key)
            .collect();
        assert_eq!(order, [keys[2], keys[0], keys[1]]);
    }

    #[test]
    fn a_lane_can_be_taken_from_both_ends() {
        let keys = keys();
        let mut queue = Queue::default();
        for key in &keys {
            queue.push(*key, Reason::NewBinding, Lane::Urgent, false);
        }
        let mut taken = vec![queue.pop_newest(Lane::Urgent), queue.pop(Lane::Urgent)];
        queue.push(keys[2], Reason::MacChange, Lane::Urgent, false);
        taken.extend([queue.pop(Lane::Urgent), queue.pop_newest(Lane::Urgent)]);
        let taken: Vec<Key> = taken.into_iter().flatten().map(|(key, _)| key).collect();
        assert_eq!(taken, [keys[2], keys[0], keys[1], keys[2]]);
        assert!(queue.is_empty());
    }
}
