//! When which neighbour has to be looked at again.

use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
};

use super::clock::Millis;

/// At most one instant per neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    order: BTreeSet<(Millis, IpAddr)>,
    at: HashMap<IpAddr, Millis>,
}

impl Wakes {
    /// Looks at a neighbour no later than at this instant.
    pub(super) fn no_later(&mut self, ip: IpAddr, at: Millis) {
        if self.at.get(&ip).is_none_or(|known| at < *known) {
            self.cancel(ip);
            self.at.insert(ip, at);
            self.order.insert((at, ip));
        }
    }

    pub(super) fn cancel(&mut self, ip: IpAddr) {
        if let Some(at) = self.at.remove(&ip) {
            self.order.remove(&(at, ip));
        }
    }

    pub(super) fn next(&self) -> Option<Millis> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the next neighbour whose instant has come.
    pub(super) fn pop(&mut self, now: Millis) -> Option<IpAddr> {
        let (at, ip) = self.order.first().copied()?;
        if at > now {
            return None;
        }
        self.cancel(ip);
        Some(ip)
    }
}
