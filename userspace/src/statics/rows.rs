//! Rows of the northbound database's `Static_MAC_Binding` table (ovn-nb(5)).

use std::{net::IpAddr, sync::Arc};

use serde::Serialize;

use crate::{
    ids::Mac,
    ovsdb::{Row, Uuid},
};

/// The columns that [`StaticRow::parse`] reads.
pub const COLUMNS: [&str; 4] = ["logical_port", "ip", "mac", "override_dynamic_mac"];

/// One row: a MAC that a router port always uses for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRow {
    /// The row itself.
    pub uuid: Uuid,
    /// The router port.
    pub port: Arc<str>,
    /// The address; `None` where the row has none that can be read.
    pub ip: Option<IpAddr>,
    /// The MAC; `None` where the row has none that can be read.
    pub mac: Option<Mac>,
    /// Whether it goes before what the router learns.
    pub override_dynamic_mac: bool,
}

/// Why a row tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RowSkip {
    /// No `logical_port`.
    #[error("it has no logical_port")]
    NoPort,
}

impl StaticRow {
    /// Reads a row. `(logical_port, ip)` is unique as text: the same address may be there in several
    /// spellings.
    ///
    /// # Errors
    /// Where the row has no port.
    pub fn parse(uuid: Uuid, row: &Row) -> Result<Self, RowSkip> {
        let port = row.string("logical_port").map_err(|_| RowSkip::NoPort)?;
        if port.is_empty() {
            return Err(RowSkip::NoPort);
        }
        Ok(Self {
            uuid,
            port,
            ip: row.string("ip").ok().and_then(|text| text.parse().ok()),
            mac: row.string("mac").ok().and_then(|text| text.parse().ok()),
            override_dynamic_mac: row.boolean("override_dynamic_mac").unwrap_or(false),
        })
    }
}
