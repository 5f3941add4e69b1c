//! What a server has committed, transaction by transaction.

use std::collections::BTreeMap;

use neighsteer::agent::databases::STATIC_MAC_BINDING;
use neighsteer_tests::{database::DatabaseServer, northbound::Gateway};
use serde_json::Value;

/// All of a server's transactions.
pub struct History(Vec<Value>);

/// Reads them.
pub fn history(server: &DatabaseServer) -> History {
    History(server.history().unwrap())
}

/// What a transaction changed in a table, by row: the columns, or `null`.
pub fn changes<'a>(
    transaction: &'a Value,
    table: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let rows = transaction.get(table).and_then(Value::as_object);
    rows.into_iter().flatten().map(|(uuid, row)| (&**uuid, row))
}

impl History {
    /// The transactions that changed static rows.
    pub fn of_static_rows(&self) -> Vec<&Value> {
        let all = self.0.iter();
        all.filter(|it| it.get(STATIC_MAC_BINDING).is_some())
            .collect()
    }

    /// The static rows that were ever inserted for a port.
    pub fn inserted_for(&self, port: &str) -> usize {
        let all = self.0.iter();
        let rows = all.flat_map(|it| changes(it, STATIC_MAC_BINDING));
        rows.filter(|(_, row)| row["logical_port"] == port).count()
    }

    /// Asserts that no row was ever inserted for a gateway router whose port was not there.
    pub fn check_ports(&self, gateways: &[Gateway]) {
        let mut there: BTreeMap<&str, &str> = BTreeMap::new();
        for transaction in &self.0 {
            for (uuid, row) in changes(transaction, "Logical_Router_Port") {
                match row.get("name").and_then(Value::as_str) {
                    Some(name) => drop(there.insert(uuid, name)),
                    None if row.is_null() => drop(there.remove(uuid)),
                    None => {}
                }
            }
            for (_, row) in changes(transaction, STATIC_MAC_BINDING) {
                let Some(port) = row.get("logical_port").and_then(Value::as_str) else {
                    continue;
                };
                if gateways.iter().any(|gateway| &*gateway.port == port) {
                    let is_there = there.values().any(|name| *name == port);
                    assert!(is_there, "a row for {port}, which is gone: {row}");
                }
            }
        }
    }
}
