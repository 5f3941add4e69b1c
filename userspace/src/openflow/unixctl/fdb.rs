//! The output of `fdb/show`.

use crate::{
    ids::{Mac, OfPort},
    openflow::Port,
};

/// One address that a bridge knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdbEntry {
    /// Where frames to the address go.
    pub port: FdbPort,
    /// The VLAN, 0 for none.
    pub vlan: u16,
    /// The address.
    pub mac: Mac,
    /// Whether it was added by hand and so does not age.
    pub is_static: bool,
}

/// The port of a forwarding entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdbPort {
    /// The bridge itself.
    Local,
    /// A port by number.
    Number(OfPort),
    /// Anything else, for example a port that has gone.
    Other,
}

impl FdbPort {
    /// Whether it is that port of a flow.
    #[must_use]
    pub fn is(self, port: Port) -> bool {
        match self {
            Self::Local => port == Port::Local,
            Self::Number(number) => port == Port::Number(number),
            Self::Other => false,
        }
    }
}

/// A line of `fdb/show` that has another shape than expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line:?} is no forwarding entry: port, VLAN, MAC and age are wanted")]
pub struct ParseFdbError {
    /// The line.
    pub line: String,
}

/// Reads the table, heading included.
pub(super) fn parse(text: &str) -> Result<Vec<FdbEntry>, ParseFdbError> {
    text.lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            parse_line(line).ok_or_else(|| ParseFdbError {
                line: line.to_owned(),
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Option<FdbEntry> {
    let mut words = line.split_whitespace();
    let port = words.next()?;
    let vlan = words.next()?.parse().ok()?;
    let mac = words.next()?.parse().ok()?;
    let age = words.next()?;
    let port = if port == "LOCAL" {
        FdbPort::Local
    } else {
        port.parse()
            .ok()
            .and_then(|number| OfPort::from_column(Some(number)))
            .map_or(FdbPort::Other, FdbPort::Number)
    };
    Some(FdbEntry {
        port,
        vlan,
        mac,
        is_static: age == "static",
    })
}
