//! Northbound `Static_MAC_Binding` rows: those that tests look at, and those that OVN-Kubernetes makes.

use serde_json::{Value, json};

use super::{
    Lab,
    daemon::Daemon,
    error::{LabError, Result},
};

const TABLE: &str = "Static_MAC_Binding";

/// A row of the northbound table `Static_MAC_Binding`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaticBinding {
    /// The router port.
    pub logical_port: String,
    /// The neighbour's address, as text.
    pub ip: String,
    /// The neighbour's MAC address, as text.
    pub mac: String,
    /// Whether it goes before a learnt one.
    pub override_dynamic_mac: bool,
    /// The row's UUID.
    pub uuid: String,
}

impl StaticBinding {
    fn read(row: &Value) -> Option<Self> {
        let text = |column: &str| Some(row[column].as_str()?.to_owned());
        Some(Self {
            logical_port: text("logical_port")?,
            ip: text("ip")?,
            mac: text("mac")?,
            override_dynamic_mac: row["override_dynamic_mac"].as_bool()?,
            uuid: row["_uuid"].get(1)?.as_str()?.to_owned(),
        })
    }
}

/// The addresses behind the routers that OVN-Kubernetes invents, and their MACs: the next hop that is
/// nowhere, which every router has, and the host, which those of UDNs have.
const NEXT_HOPS: [(&str, &str); 2] = [
    ("169.254.0.4", "0a:58:a9:fe:00:04"),
    ("fd69::4", "0a:58:1b:ac:71:41"),
];
const HOSTS: [(&str, &str); 2] = [
    ("169.254.0.2", "0a:58:a9:fe:00:02"),
    ("fd69::2", "0a:58:e0:ff:1d:9b"),
];

impl Lab {
    /// All rows, sorted by port.
    ///
    /// # Errors
    /// When the northbound database is not reached.
    pub fn static_bindings(&self) -> Result<Vec<StaticBinding>> {
        let columns = ["_uuid", "logical_port", "ip", "mac", "override_dynamic_mac"];
        let rows = self.with_database(Daemon::Northbound, |northbound| {
            northbound.select(TABLE, json!([]), &columns)
        })?;
        let mut bindings = rows
            .iter()
            .map(|row| {
                StaticBinding::read(row).ok_or_else(|| LabError::Unexpected {
                    what: "a Static_MAC_Binding row",
                    text: row.to_string(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        bindings.sort();
        Ok(bindings)
    }

    /// Writes a row as somebody else would.
    ///
    /// # Errors
    /// When there is one for the port and address already.
    pub fn insert_static_binding(&self, port: &str, ip: &str, mac: &str) -> Result<()> {
        self.with_database(Daemon::Northbound, |northbound| {
            northbound.transact(vec![insert(port, ip, mac)]).map(drop)
        })
    }

    /// Deletes all rows of a port.
    ///
    /// # Errors
    /// When the northbound database is not reached.
    pub fn delete_static_bindings(&self, port: &str) -> Result<()> {
        self.with_database(Daemon::Northbound, |northbound| {
            northbound
                .transact(vec![json!({"op": "delete", "table": TABLE,
                    "where": [["logical_port", "==", port]]})])
                .map(drop)
        })
    }

    /// Gives every router the rows that OVN-Kubernetes makes for its masquerade addresses; returns
    /// them, sorted by port.
    ///
    /// # Errors
    /// When it was done before.
    pub fn add_masquerade_bindings(&self) -> Result<Vec<StaticBinding>> {
        let rows = self.networks().flat_map(|network| {
            let hosts = (!network.is_default()).then_some(HOSTS);
            let of_network = NEXT_HOPS.into_iter().chain(hosts.into_iter().flatten());
            of_network.map(move |(ip, mac)| insert(&network.external_port(), ip, mac))
        });
        let rows = rows.collect();
        self.with_database(Daemon::Northbound, |northbound| {
            northbound.transact(rows).map(drop)
        })?;
        let all = self.static_bindings()?;
        Ok(all
            .into_iter()
            .filter(StaticBinding::is_masquerade)
            .collect())
    }
}

impl StaticBinding {
    /// Whether it is one of [`Lab::add_masquerade_bindings`].
    #[must_use]
    pub fn is_masquerade(&self) -> bool {
        let mut all = NEXT_HOPS.iter().chain(&HOSTS);
        all.any(|(ip, _)| *ip == self.ip)
    }
}

fn insert(port: &str, ip: &str, mac: &str) -> Value {
    json!({"op": "insert", "table": TABLE, "row": {
        "logical_port": port, "ip": ip, "mac": mac, "override_dynamic_mac": true,
    }})
}
