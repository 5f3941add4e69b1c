//! Southbound rows that tests look at.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::Lab;
use super::daemon::Daemon;
use super::error::{LabError, Result};
use super::network::Network;

const COLUMNS: [&str; 6] = [
    "_uuid",
    "logical_port",
    "ip",
    "mac",
    "timestamp",
    "datapath",
];

/// A row of the southbound table `MAC_Binding`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacBinding {
    /// The router port.
    pub logical_port: String,
    /// The neighbour's address, as text.
    pub ip: String,
    /// The neighbour's MAC address, as text.
    pub mac: String,
    /// Milliseconds since the epoch; 0 when never set.
    pub timestamp: u64,
    /// The row's UUID.
    pub uuid: String,
    /// The UUID of the router's datapath.
    pub datapath: String,
}

impl MacBinding {
    fn read(row: &Value) -> Option<Self> {
        let text = |column: &str| Some(row[column].as_str()?.to_owned());
        let uuid = |column: &str| Some(row[column].get(1)?.as_str()?.to_owned());
        Some(Self {
            logical_port: text("logical_port")?,
            ip: text("ip")?,
            mac: text("mac")?,
            timestamp: row["timestamp"].as_u64()?,
            uuid: uuid("_uuid")?,
            datapath: uuid("datapath")?,
        })
    }
}

impl Lab {
    /// The bindings of one address, on whichever ports, sorted by port.
    ///
    /// # Errors
    /// When the southbound database is not reached.
    pub fn mac_bindings(&self, address: IpAddr) -> Result<Vec<MacBinding>> {
        self.select_mac_bindings(json!([["ip", "==", address.to_string()]]))
    }

    /// All bindings, sorted by port.
    ///
    /// # Errors
    /// When the southbound database is not reached.
    pub fn all_mac_bindings(&self) -> Result<Vec<MacBinding>> {
        self.select_mac_bindings(json!([]))
    }

    fn select_mac_bindings(&self, conditions: Value) -> Result<Vec<MacBinding>> {
        let rows = self.with_database(Daemon::Southbound, |southbound| {
            southbound.select("MAC_Binding", conditions, &COLUMNS)
        })?;
        let mut bindings = rows
            .iter()
            .map(|row| {
                MacBinding::read(row).ok_or_else(|| LabError::Unexpected {
                    what: "a MAC_Binding row",
                    text: row.to_string(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        bindings.sort();
        Ok(bindings)
    }

    /// Writes a binding on a router's external port, as if learned now.
    ///
    /// # Errors
    /// When there is one for the port and address already, or no such router.
    pub fn insert_mac_binding(
        &self,
        network: Network,
        ip: &str,
        mac: &str,
        timestamp: u64,
    ) -> Result<()> {
        let port = network.external_port();
        self.with_database(Daemon::Southbound, |southbound| {
            let rows = southbound.select(
                "Port_Binding",
                json!([["logical_port", "==", port]]),
                &["datapath"],
            )?;
            let Some(row) = rows.first() else {
                return Err(LabError::Choice(format!("no port binding of {port}")));
            };
            let binding = json!({"logical_port": port, "ip": ip, "mac": mac,
                "datapath": row["datapath"], "timestamp": timestamp});
            southbound
                .transact(vec![
                    json!({"op": "insert", "table": "MAC_Binding", "row": binding}),
                ])
                .map(drop)
        })
    }

    /// Deletes the bindings of one address on one network's external port.
    ///
    /// # Errors
    /// When the southbound database is not reached.
    pub fn delete_mac_binding(&self, network: Network, ip: &str) -> Result<()> {
        let conditions = json!([
            ["logical_port", "==", network.external_port()],
            ["ip", "==", ip]
        ]);
        self.delete_mac_bindings(conditions)
    }

    /// Deletes all bindings, and waits until ovn-controller has forgotten them.
    ///
    /// # Errors
    /// When OVN does not follow.
    pub fn clear_mac_bindings(&self) -> Result<()> {
        self.delete_mac_bindings(json!([]))?;
        self.sync()
    }

    fn delete_mac_bindings(&self, conditions: Value) -> Result<()> {
        self.with_database(Daemon::Southbound, |southbound| {
            southbound
                .transact(vec![
                    json!({"op": "delete", "table": "MAC_Binding", "where": conditions}),
                ])
                .map(drop)
        })
    }
}
