//! When a router's bindings expire.

use std::{net::IpAddr, sync::Arc, time::Duration};

use super::Prefix;

/// `Logical_Router.options:mac_binding_age_threshold` (ovn-nb(5)): seconds, or with OVN ≥ 24.03 a
/// list `[CIDR:]seconds;…` in which the longest prefix wins and an entry without a prefix is for all
/// other addresses. 0 means that bindings do not expire, and so does a text that OVN cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeThreshold {
    text: Option<Arc<str>>,
    default_seconds: u32,
    by_prefix: Vec<(Prefix, u32)>,
}

impl AgeThreshold {
    /// Reads the option; `None` where the router has none.
    #[must_use]
    pub fn from_option(text: Option<&Arc<str>>) -> Self {
        let entries = text.and_then(|text| {
            let entries = text.split(';').filter(|entry| !entry.trim().is_empty());
            entries.map(|entry| read_entry(entry.trim())).collect()
        });
        let mut threshold = Self {
            text: text.cloned(),
            ..Self::default()
        };
        let entries: Vec<(Option<Prefix>, u32)> = entries.unwrap_or_default();
        for (prefix, seconds) in entries {
            match prefix {
                Some(prefix) => threshold.by_prefix.push((prefix, seconds)),
                None => threshold.default_seconds = seconds,
            }
        }
        threshold
            .by_prefix
            .sort_by_key(|(prefix, _)| (std::cmp::Reverse(prefix.length), *prefix));
        threshold
    }

    /// The option as it was written.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The threshold of addresses that no prefix covers, in seconds; 0: they do not expire.
    #[must_use]
    pub const fn default_seconds(&self) -> u32 {
        self.default_seconds
    }

    /// After what time without a refresh a binding of this address expires, if it does.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Option<Duration> {
        let covering = self.by_prefix.iter();
        let seconds = covering
            .clone()
            .find(|(prefix, _)| prefix.contains(address))
            .map_or(self.default_seconds, |(_, seconds)| *seconds);
        (seconds != 0).then(|| Duration::from_secs(seconds.into()))
    }
}

impl serde::Serialize for AgeThreshold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// One entry: the seconds are what follows the last colon, since IPv6 has colons of its own.
fn read_entry(entry: &str) -> Option<(Option<Prefix>, u32)> {
    match entry.rsplit_once(':') {
        Some((prefix, seconds)) => Some((Some(prefix.parse().ok()?), seconds.parse().ok()?)),
        None => Some((None, entry.parse().ok()?)),
    }
}
