//! Rows of the southbound database's `MAC_Binding` table.

use std::{net::IpAddr, sync::Arc};

use serde::Serialize;

use super::group::Member;
use crate::{
    ids::Mac,
    ovsdb::{Row, Uuid},
};

/// The columns that [`BindingRow::parse`] reads.
pub const COLUMNS: [&str; 5] = ["logical_port", "ip", "mac", "timestamp", "datapath"];

/// One row: the neighbour that a router knows behind one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingRow {
    /// The row itself.
    pub uuid: Uuid,
    /// The router port.
    pub port: Arc<str>,
    /// The router's `Datapath_Binding`; where it cannot be read, nil.
    pub datapath: Uuid,
    /// The neighbour's address.
    pub ip: IpAddr,
    /// The address as the row spells it: `(logical_port, ip)` is unique as text.
    pub ip_text: Arc<str>,
    /// The neighbour's MAC. `None` where the row has none that can be read: no binding, but the row
    /// still holds its place in the table.
    pub mac: Option<Mac>,
    /// When it was last known to be right, ms since the epoch; 0 where nobody wrote that.
    pub timestamp: i64,
}

/// Why a row tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RowSkip {
    /// No `logical_port`.
    #[error("it has no logical_port")]
    NoPort,
    /// An `ip` that is empty or no address.
    #[error("its ip is no address")]
    BadIp,
    /// A `mac` that is empty or no address.
    #[error("its mac is no address")]
    BadMac,
}

impl BindingRow {
    /// Whether the row belongs to another router than the one that has this port now.
    pub(super) fn is_elsewhere(&self, member: &Member) -> bool {
        !self.datapath.0.is_nil() && self.datapath != member.datapath
    }

    /// Whether the row is this router's: of its port, and not left by a former router with that port.
    #[must_use]
    pub fn belongs_to(&self, member: &Member) -> bool {
        self.port == member.port && !self.is_elsewhere(member)
    }

    /// Reads a row. A MAC that cannot be read is left to the caller, since it matters whose row it is.
    ///
    /// # Errors
    /// Where the row has no port or its ip is empty or no address.
    pub fn parse(uuid: Uuid, row: &Row) -> Result<Self, RowSkip> {
        let port = row.string("logical_port").map_err(|_| RowSkip::NoPort)?;
        if port.is_empty() {
            return Err(RowSkip::NoPort);
        }
        let ip_text = row.string("ip").map_err(|_| RowSkip::BadIp)?;
        Ok(Self {
            uuid,
            port,
            datapath: row.uuid("datapath").unwrap_or(Uuid(uuid::Uuid::nil())),
            ip: ip_text.parse().map_err(|_| RowSkip::BadIp)?,
            ip_text,
            mac: row.string("mac").ok().and_then(|text| text.parse().ok()),
            timestamp: row.integer("timestamp").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ovsdb::{Atom, Datum};

    fn row(port: &str, ip: &str, mac: &str) -> Row {
        let columns: Vec<Arc<str>> = COLUMNS.iter().map(|name| (*name).into()).collect();
        let text = |value: &str| Datum::Scalar(Atom::String(value.into()));
        Row::new(
            columns.into(),
            vec![
                text(port),
                text(ip),
                text(mac),
                Datum::Scalar(Atom::Integer(1_700_000_000_000)),
                Datum::Scalar(Atom::Uuid(Uuid(uuid::Uuid::from_u128(9)))),
            ],
        )
        .unwrap()
    }

    fn parse(port: &str, ip: &str, mac: &str) -> Result<BindingRow, RowSkip> {
        BindingRow::parse(Uuid(uuid::Uuid::from_u128(1)), &row(port, ip, mac))
    }

    #[test]
    fn a_row_keeps_the_text_of_its_address_and_compares_as_an_address() {
        let one = parse("rtoe-GR_node", "FD00::1", "02:00:00:00:00:AA").unwrap();
        let other = parse("rtoe-GR_node", "fd00:0::1", "02:00:00:00:00:aa").unwrap();
        assert_eq!(one.ip, other.ip);
        assert_eq!(&*one.ip_text, "FD00::1");
        assert_eq!(one.mac, other.mac);
        assert_eq!(one.timestamp, 1_700_000_000_000);
    }

    #[test]
    fn a_row_that_tells_nothing_says_why() {
        assert_eq!(
            parse("", "10.0.0.1", "02:00:00:00:00:aa"),
            Err(RowSkip::NoPort)
        );
        for ip in ["", "10.0.0", "10.0.0.1/24", " 10.0.0.1", "unknown"] {
            assert_eq!(
                parse("p", ip, "02:00:00:00:00:aa"),
                Err(RowSkip::BadIp),
                "{ip}"
            );
        }
        assert_eq!(parse("p", "10.0.0.1", "").unwrap().mac, None);
    }

    #[test]
    fn a_row_of_another_shape_is_no_surprise() {
        let empty = Row::new(Arc::from([]), Vec::new()).unwrap();
        assert_eq!(
            BindingRow::parse(Uuid(uuid::Uuid::nil()), &empty),
            Err(RowSkip::NoPort)
        );
    }
}
