//! Flows of others that bear on ours.

use std::{collections::BTreeMap, fmt};

use super::{BridgePlan, diff};
use crate::openflow::{Cookie, InstalledFlow};

/// The cookies of ovnkube-node's own flows on external bridges: the usual one, path MTU discovery,
/// gratuitous ARP and services with a local traffic policy. Those of other services are hashes.
const MANAGER_COOKIES: [Cookie; 4] = [
    Cookie(0xdef_f105),
    Cookie(0x0304),
    Cookie(0x0305),
    Cookie(0xe7_45ec_f105),
];

/// Flows of OVN-Kubernetes on a bridge, counted by cookie. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerFlows {
    /// How many flows have which cookie.
    pub by_cookie: BTreeMap<Cookie, usize>,
}

impl fmt::Display for ManagerFlows {
    /// `130 flows with cookie 0xdeff105, 2 with 0x304`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (cookie, count)) in self.by_cookie.iter().rev().enumerate() {
            match (index, count) {
                (0, 1) => write!(f, "1 flow with cookie {cookie}")?,
                (0, _) => write!(f, "{count} flows with cookie {cookie}")?,
                _ => write!(f, ", {count} with {cookie}")?,
            }
        }
        Ok(())
    }
}

/// The flows of OVN-Kubernetes among those of a bridge, which then has a manager:
/// [`Install::Complete`](super::Install::Complete) is not for it.
#[must_use]
pub fn manager_flows(installed: &[InstalledFlow]) -> Option<ManagerFlows> {
    let mut by_cookie = BTreeMap::new();
    for InstalledFlow { flow, .. } in installed {
        if MANAGER_COOKIES.contains(&flow.cookie) {
            *by_cookie.entry(flow.cookie).or_insert(0) += 1;
        }
    }
    (!by_cookie.is_empty()).then_some(ManagerFlows { by_cookie })
}

/// Flows of others with the table, priority and match of ours: another program steers on the bridge.
/// Ours would overwrite these, whatever their cookies. The catch-all is everybody's, and no sign of
/// another program.
#[must_use]
pub fn foreign_gate(plan: &BridgePlan, installed: &[InstalledFlow]) -> Vec<String> {
    let foreign = diff(&plan.flows, installed).foreign;
    foreign.iter().map(ToString::to_string).collect()
}
