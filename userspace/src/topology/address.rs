//! Addresses with a prefix length.

use std::{fmt, net::IpAddr, str::FromStr};

/// An address with a prefix length, such as `172.18.0.3/16`; the host bits are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// How many of its leading bits name the network.
    pub length: u8,
}

impl Prefix {
    /// Whether the network is a single address.
    #[must_use]
    pub const fn is_host(self) -> bool {
        self.length == Self::width(self.address)
    }

    /// Whether an address is in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let same_leading_bits = |difference: u128, width: u8| {
            let host_bits = u32::from(width.saturating_sub(self.length));
            difference.checked_shr(host_bits).unwrap_or(0) == 0
        };
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_leading_bits(u128::from(network.to_bits() ^ address.to_bits()), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_leading_bits(network.to_bits() ^ address.to_bits(), 128)
            }
            _ => false,
        }
    }

    /// Whether an address of the network is no host's: the network's own and its broadcast address
    /// (RFC 919, 7), or the one of all its routers (RFC 4291, 2.6.1).
    #[must_use]
    pub fn is_reserved(self, address: IpAddr) -> bool {
        let host_bits = u32::from(Self::width(address).saturating_sub(self.length));
        if host_bits < 2 || !self.contains(address) {
            return false;
        }
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shr(32 - host_bits).unwrap_or(0);
                let host = address.to_bits() & mask;
                host == 0 || host == mask
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shr(128 - host_bits).unwrap_or(0);
                address.to_bits() & mask == 0
            }
        }
    }

    const fn width(address: IpAddr) -> u8 {
        match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A text that is no address with a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address with a prefix length, such as 172.18.0.3/16")]
pub struct ParsePrefixError(pub String);

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    /// An address, and `/` with a prefix length that may be absent (a single address).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (address, length) = match text.split_once('/') {
                Some((address, length)) => (address, Some(length)),
                None => (text, None),
            };
            let address = address.parse().ok()?;
            let width = Self::width(address);
            let length = length.map_or(Some(width), |length| length.parse().ok())?;
            (length <= width).then_some(Self { address, length })
        };
        read().ok_or_else(|| ParsePrefixError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_no_hosts_are_told() {
        let reserved = |prefix: &str, address: &str| {
            let prefix: Prefix = prefix.parse().unwrap();
            prefix.is_reserved(address.parse().unwrap())
        };
        for (prefix, address) in [
            ("172.18.0.3/16", "172.18.0.0"),
            ("172.18.0.3/16", "172.18.255.255"),
            ("fd00:18::3/64", "fd00:18::"),
        ] {
            assert!(reserved(prefix, address), "{address} in {prefix}");
        }
        for (prefix, address) in [
            ("172.18.0.3/16", "172.18.1.0"),
            ("172.18.0.3/16", "172.19.0.0"),
            ("10.0.0.0/31", "10.0.0.0"),
            ("10.0.0.0/32", "10.0.0.0"),
            ("fd00:18::3/64", "fd00:18::1"),
            ("fd00:18::3/64", "fd00:18::ffff:ffff:ffff:ffff"),
            ("172.18.0.3/16", "fd00:18::"),
        ] {
            assert!(!reserved(prefix, address), "{address} in {prefix}");
        }
    }
}
