//! What has to be looked at.

use std::{collections::BTreeSet, net::IpAddr};

use super::ports::PortId;

/// A port's rows for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) port: PortId,
    pub(super) ip: IpAddr,
}

/// Addresses, ports, and rows by port and address: looked at, they show what is to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// At all ports.
    pub(super) ips: BTreeSet<IpAddr>,
    /// With all addresses.
    pub(super) ports: BTreeSet<PortId>,
    /// One by one.
    pub(super) keys: BTreeSet<Key>,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.ips.is_empty() && self.ports.is_empty() && self.keys.is_empty()
    }

    /// Takes over all that another holds.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.ips.append(&mut other.ips);
        self.ports.append(&mut other.ports);
        self.keys.append(&mut other.keys);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
