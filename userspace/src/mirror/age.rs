//! How long a router keeps a binding that nobody refreshes.

use std::net::IpAddr;

/// A router's aging thresholds (`Logical_Router.options:mac_binding_age_threshold`), in the form of
/// one number of seconds or, since OVN 23.09, one per prefix: `[CIDR:]SECONDS[;...]`, where the
/// longest prefix wins and 0 switches aging off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeThresholds {
    default_ms: Option<u64>,
    /// Longest prefix first.
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefix {
    network: IpAddr,
    length: u8,
    threshold_ms: Option<u64>,
}

/// A threshold that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "mac_binding_age_threshold has the part {part:?}: it should be SECONDS or CIDR:SECONDS, parts separated by ';'"
)]
pub struct ParseAgeError {
    /// The part that cannot be read.
    pub part: String,
}

impl AgeThresholds {
    /// One threshold in ms for every neighbour; `None` for a router that does not age bindings.
    #[must_use]
    pub const fn uniform(threshold_ms: Option<u64>) -> Self {
        Self {
            default_ms: threshold_ms,
            prefixes: Vec::new(),
        }
    }

    /// Reads the option's value.
    ///
    /// # Errors
    /// Where a part is neither a number of seconds nor a prefix with one.
    pub fn parse(option: &str) -> Result<Self, ParseAgeError> {
        let mut thresholds = Self::default();
        for part in option
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let error = || ParseAgeError {
                part: part.to_owned(),
            };
            match part.rsplit_once(':') {
                None => thresholds.default_ms = seconds(part).ok_or_else(error)?,
                Some((cidr, threshold)) => thresholds
                    .prefixes
                    .push(prefix(cidr, threshold).ok_or_else(error)?),
            }
        }
        thresholds
            .prefixes
            .sort_by_key(|prefix| std::cmp::Reverse(prefix.length));
        Ok(thresholds)
    }

    /// The threshold for a neighbour in ms; `None` where its binding does not age.
    #[must_use]
    pub fn for_ip(&self, ip: IpAddr) -> Option<u64> {
        self.prefixes
            .iter()
            .find(|prefix| prefix.contains(ip))
            .map_or(self.default_ms, |prefix| prefix.threshold_ms)
    }
}

/// Seconds as ms, the outer `None` where it is no number; 0 is no aging.
fn seconds(text: &str) -> Option<Option<u64>> {
    let seconds: u32 = text.parse().ok()?;
    Some((seconds != 0).then(|| u64::from(seconds) * 1_000))
}

fn prefix(cidr: &str, threshold: &str) -> Option<Prefix> {
    let (network, length) = match cidr.split_once('/') {
        Some((network, length)) => (network.parse().ok()?, Some(length.parse().ok()?)),
        None => (cidr.parse().ok()?, None),
    };
    let longest = match network {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    let length = length.unwrap_or(longest);
    (length <= longest).then_some(Prefix {
        network,
        length,
        threshold_ms: seconds(threshold)?,
    })
}

impl Prefix {
    fn contains(&self, ip: IpAddr) -> bool {
        match (self.network, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let shift = 32 - u32::from(self.length);
                let differing = network.to_bits() ^ ip.to_bits();
                differing.checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let shift = 128 - u32::from(self.length);
                let differing = network.to_bits() ^ ip.to_bits();
                differing.checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(option: &str, ip: &str) -> Option<u64> {
        AgeThresholds::parse(option)
            .unwrap()
            .for_ip(ip.parse().unwrap())
    }

    #[test]
    fn one_number_holds_for_every_neighbour() {
        assert_eq!(threshold("300", "10.0.0.1"), Some(300_000));
        assert_eq!(threshold("300", "fe80::1"), Some(300_000));
        assert_eq!(threshold("0", "10.0.0.1"), None);
        assert_eq!(threshold("", "10.0.0.1"), None);
    }

    #[test]
    fn the_longest_prefix_wins() {
        let option = "192.168.0.0/16:300;192.168.10.0/24:0;fd00::/64:20;fd00::1:7;600";
        for (ip, expected) in [
            ("192.168.1.1", Some(300_000)),
            ("192.168.10.1", None),
            ("10.0.0.1", Some(600_000)),
            ("fd00::2", Some(20_000)),
            ("fd00::1", Some(7_000)),
            ("fd01::1", Some(600_000)),
        ] {
            assert_eq!(threshold(option, ip), expected, "{ip}");
        }
        assert_eq!(threshold("0.0.0.0/0:5", "10.0.0.1"), Some(5_000));
    }

    #[test]
    fn a_threshold_that_makes_no_sense_is_named() {
        for option in ["x", "-1", "10.0.0.0/33:5", "10.0.0.0/24:", "300;net:5"] {
            assert!(AgeThresholds::parse(option).is_err(), "{option}");
        }
    }
}
