//! Who says that an address is his.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::wanted::{Wanted, Warning};
use crate::ids::Mac;

/// The claims to the addresses of one bridge's network.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<IpAddr, Claim>);

#[derive(Debug, Default)]
struct Claim {
    told: BTreeSet<Mac>,
    untold: bool,
    claimants: BTreeSet<Arc<str>>,
}

impl Claims {
    /// A node claims an address, with its MAC as far as that can be told.
    pub(super) fn add(&mut self, ip: IpAddr, mac: Option<Mac>, claimant: &Arc<str>) {
        let claim = self.0.entry(ip).or_default();
        match mac {
            Some(mac) => {
                claim.told.insert(mac);
            }
            None => claim.untold = true,
        }
        claim.claimants.insert(Arc::clone(claimant));
    }

    /// This node claims an address that is none of its routers': that matters where another does, too.
    pub(super) fn contest(&mut self, ip: IpAddr, claimant: &Arc<str>) {
        if let Some(claim) = self.0.get_mut(&ip) {
            claim.untold = true;
            claim.claimants.insert(Arc::clone(claimant));
        }
    }

    /// What follows of them. Nodes that agree on the MAC do not contradict each other.
    pub(super) fn settle(self, warnings: &mut BTreeSet<Warning>) -> BTreeMap<IpAddr, Wanted> {
        let settled = self.0.into_iter().map(|(ip, claim)| {
            let mut told = claim.told.iter();
            match (told.next(), told.next(), claim.untold) {
                (Some(only), None, false) => (ip, Wanted::Binding(*only)),
                (None, ..) => (ip, Wanted::Keep),
                _ => {
                    let nodes = claim.claimants.into_iter().collect();
                    warnings.insert(Warning::Conflict { ip, nodes });
                    (ip, Wanted::Keep)
                }
            }
        });
        settled.collect()
    }
}
