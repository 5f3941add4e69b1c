//! No-flood flags and the static forwarding entry.

use std::{collections::BTreeMap, sync::Arc};

use super::BridgePlan;
use crate::{
    ids::{Mac, OfPort},
    openflow::{Port, PortDescription, unixctl::FdbEntry},
    topology::HostEndpoint,
};

/// The entry that `fdb/add` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFdb {
    /// The port's name: the bridge's own stands for LOCAL.
    pub port: Arc<str>,
    /// The port as the forwarding table shows it.
    pub leads_to: Port,
    /// The VLAN, 0 for none.
    pub vlan: u16,
    /// The address.
    pub mac: Mac,
}

/// The port of a bridge that the host is behind.
#[must_use]
pub const fn host_port(host: &HostEndpoint) -> Port {
    match host {
        HostEndpoint::Local => Port::Local,
        HostEndpoint::Representor { ofport, .. } => Port::Number(*ofport),
    }
}

/// No-flood flags to write, and ports that were looked for in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortChanges {
    /// The flag's new value by port; empty where every port is as it should be.
    pub no_flood: BTreeMap<OfPort, bool>,
    /// Ports of the plan that the bridge does not report.
    pub missing: Vec<OfPort>,
}

/// Compares the flags that a plan asks for with the ports as they are. Ports that the plan does not
/// name are left as they are.
#[must_use]
pub fn port_changes(plan: &BridgePlan, ports: &[PortDescription]) -> PortChanges {
    let flags: BTreeMap<OfPort, bool> = ports.iter().map(|it| (it.ofport, it.no_flood)).collect();
    let wanted = plan.no_flood.iter().map(|port| (*port, true));
    let wanted = wanted.chain(plan.flood.iter().map(|port| (*port, false)));
    let mut changes = PortChanges::default();
    for (port, want) in wanted {
        match flags.get(&port) {
            Some(flag) if *flag == want => {}
            Some(_) => {
                changes.no_flood.insert(port, want);
            }
            None => changes.missing.push(port),
        }
    }
    changes
}

impl BridgePlan {
    /// The static entry, if it is wanted and not there. An entry for the address that was learned,
    /// or that leads to another port, does not count.
    #[must_use]
    pub fn missing_fdb(&self, entries: &[FdbEntry]) -> Option<&StaticFdb> {
        self.static_fdb.as_ref().filter(|wanted| {
            !entries.iter().any(|entry| {
                entry.is_static
                    && entry.port.is(wanted.leads_to)
                    && (entry.vlan, entry.mac) == (wanted.vlan, wanted.mac)
            })
        })
    }
}
