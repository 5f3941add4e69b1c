//! The gateway's masquerade addresses, whose static rows are its own.

use std::net::IpAddr;

use crate::topology::Prefix;

/// The subnets that OVN-Kubernetes has by default, with and without user-defined networks
/// (`fd69::/125` is inside the larger one).
const DEFAULTS: [&str; 3] = ["169.254.0.0/17", "169.254.169.0/29", "fd69::/112"];

/// The masquerade addresses, of now and of former times.
///
/// OVN-Kubernetes counts them from the address of the configured subnet: 1 to 9 for itself (its rows
/// are those of 2, the host, and of 4, the dummy next hop), then two for each user-defined network. All
/// from the first to the subnet's end are spared here, the networks' own included: no node has an
/// address there, so that no row there can be ours, while a row of the gateway's that was deleted would
/// be put back by it, again and again.
///
/// The default subnets are always spared, since rows from before a change of the subnet stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masquerade {
    subnets: Vec<Prefix>,
}

impl Masquerade {
    /// The subnets in force and those that were once.
    #[must_use]
    pub fn new(subnets: impl IntoIterator<Item = Prefix>) -> Self {
        let defaults = DEFAULTS.iter().filter_map(|text| text.parse().ok());
        let mut subnets: Vec<Prefix> = defaults.chain(subnets).collect();
        subnets.sort();
        subnets.dedup();
        Self { subnets }
    }

    /// Whether an address is the gateway's.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.subnets
            .iter()
            .any(|subnet| subnet.contains(ip) && ip > subnet.address)
    }
}

impl Default for Masquerade {
    fn default() -> Self {
        Self::new([])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spared(subnets: &[&str], ip: &str) -> bool {
        let subnets = subnets.iter().map(|subnet| subnet.parse().unwrap());
        Masquerade::new(subnets).contains(ip.parse().unwrap())
    }

    #[test]
    fn the_default_subnets_are_spared_whatever_is_configured() {
        let defaults = [
            "169.254.0.2",
            "169.254.0.4",
            "169.254.0.12",
            "169.254.169.2",
            "169.254.169.4",
            "fd69::2",
            "fd69::4",
            "fd69::c",
        ];
        for ip in defaults {
            assert!(spared(&[], ip) && spared(&["100.64.0.0/17"], ip), "{ip}");
        }
        for ip in [
            "169.254.169.8",
            "172.18.0.4",
            "169.254.128.2",
            "100.64.0.2",
            "fd00::2",
            "fd69:0:0:1::2",
        ] {
            assert!(!spared(&[], ip), "{ip}");
        }
    }

    #[test]
    fn addresses_count_from_the_one_that_is_configured() {
        let subnets = ["100.64.3.8/17", "fd99::10/112"];
        for ip in [
            "100.64.3.10",
            "100.64.3.12",
            "100.64.127.1",
            "fd99::12",
            "fd99::14",
        ] {
            assert!(spared(&subnets, ip), "{ip}");
        }
        for ip in [
            "100.64.3.8",
            "100.64.3.2",
            "100.64.128.1",
            "fd99::2",
            "::ffff:100.64.3.10",
        ] {
            assert!(!spared(&subnets, ip), "{ip}");
        }
    }
}
