//! What checks need to see.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use super::{Mirror, evaluate::Judgement};
use crate::mirror::{
    batch::{Limits, Skip},
    clock::{Now, ServerClock},
    queue::Key,
};

impl Mirror {
    pub(in crate::mirror) const fn clock(&self) -> &ServerClock {
        &self.clock
    }

    pub(in crate::mirror) const fn limit(&mut self, limits: Limits) {
        self.settings.limits = limits;
    }

    /// The rows that are held back, as the port and the neighbour.
    pub(in crate::mirror) fn held_back(&self, now: Now) -> BTreeSet<(Arc<str>, IpAddr)> {
        let followers = self.group.followers.iter();
        let ips = || self.neighbours().into_iter();
        followers
            .flat_map(|(slot, follower)| ips().map(move |ip| (follower, Key { ip, slot: *slot })))
            .filter(|(_, key)| {
                let view = self.view(key.ip, now);
                let judged = view.map(|view| self.judge(*key, &view));
                matches!(
                    judged,
                    Ok(Judgement::Rest(Skip::HeldBack | Skip::InFlight, _))
                )
            })
            .map(|(follower, key)| (Arc::clone(&follower.member.port), key.ip))
            .collect()
    }
}
