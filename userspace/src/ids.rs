//! Small identities that the field has names for.

use std::{fmt, str::FromStr};

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// `33:33:00:00:00:01`, of `ff02::1`: all IPv6 nodes (RFC 2464, 7).
    pub const ALL_NODES: Self = Self([0x33, 0x33, 0, 0, 0, 1]);

    /// Whether the group bit is set (multicast and broadcast).
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether every byte is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        let [a, b, c, d, e, f] = self.0;
        a | b | c | d | e | f == 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not an Ethernet address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address: six pairs of hex digits with colons are wanted")]
pub struct ParseMacError(pub String);

impl FromStr for Mac {
    type Err = ParseMacError;

    /// Six pairs of hex digits, either case, parted by colons.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMacError(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(error)?;
            if part.len() != 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(error());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() {
            return Err(error());
        }
        Ok(Self(bytes))
    }
}

impl serde::Serialize for Mac {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Mac {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An OpenFlow port number that a frame can really be sent to: 1..=65279 (OVS reserves the rest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct OfPort(u16);

impl OfPort {
    /// The highest number of a real port (`OFPP_MAX`, 0xff00, exclusive).
    pub const MAX: u16 = 0xfeff;

    /// The number that the `Interface.ofport` column holds, unless it is empty, -1 or reserved.
    #[must_use]
    pub fn from_column(ofport: Option<i64>) -> Option<Self> {
        let number = u16::try_from(ofport?).ok()?;
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// The number, host order.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for OfPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_address_reads_back_in_either_case() {
        let mac: Mac = "02:42:AC:12:00:0f".parse().unwrap();
        assert_eq!(mac.to_string(), "02:42:ac:12:00:0f");
    }

    #[test]
    fn a_text_that_is_no_mac_address_is_refused() {
        for text in [
            "",
            "02:42:ac:12:00",
            "02:42:ac:12:00:0f:01",
            "2:42:ac:12:00:0f",
            "+2:42:ac:12:00:0f",
            "unknown",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_real_port_number_is_an_ofport() {
        assert_eq!(OfPort::from_column(Some(7)).map(OfPort::get), Some(7));
        for column in [
            None,
            Some(-1),
            Some(0),
            Some(0xff00),
            Some(65534),
            Some(70000),
        ] {
            assert_eq!(OfPort::from_column(column), None, "{column:?}");
        }
    }
}
