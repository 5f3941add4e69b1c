//! The rows that are known now.

use std::collections::BTreeMap;

use super::{
    Bridge, Database, DatapathBinding, Interface, LogicalRouter, LogicalRouterPort, LogicalSwitch,
    LogicalSwitchPort, NbGlobal, OpenVSwitch, Port, PortBinding, Table, types::FromRow,
};
use crate::ovsdb::{Row, RowError, Uuid};

/// What applying one row did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Something that the agent reads is other than before.
    Changed,
    /// Nothing is.
    Unchanged,
    /// The row cannot be read; it is left out, and what was known of it before is gone.
    Skipped(RowError),
}

/// The rows of every table that the agent reads, by their identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Open_vSwitch.
    pub open_vswitch: BTreeMap<Uuid, OpenVSwitch>,
    /// Bridge.
    pub bridges: BTreeMap<Uuid, Bridge>,
    /// Port.
    pub ports: BTreeMap<Uuid, Port>,
    /// Interface.
    pub interfaces: BTreeMap<Uuid, Interface>,
    /// NB_Global.
    pub nb_global: BTreeMap<Uuid, NbGlobal>,
    /// Logical_Router.
    pub routers: BTreeMap<Uuid, LogicalRouter>,
    /// Logical_Router_Port.
    pub router_ports: BTreeMap<Uuid, LogicalRouterPort>,
    /// Logical_Switch.
    pub switches: BTreeMap<Uuid, LogicalSwitch>,
    /// Logical_Switch_Port.
    pub switch_ports: BTreeMap<Uuid, LogicalSwitchPort>,
    /// Port_Binding.
    pub port_bindings: BTreeMap<Uuid, PortBinding>,
    /// Datapath_Binding, of the ports' datapaths.
    pub datapath_bindings: BTreeMap<Uuid, DatapathBinding>,
    /// Rows that are there and cannot be read.
    pub unreadable: BTreeMap<(Table, Uuid), RowError>,
}

impl Rows {
    /// Takes a row as it is now, or `None` where it was deleted.
    pub fn apply(&mut self, table: Table, uuid: Uuid, row: Option<&Row>) -> Applied {
        let result = match table {
            Table::OpenVSwitch => put(&mut self.open_vswitch, uuid, row),
            Table::Bridge => put(&mut self.bridges, uuid, row),
            Table::Port => put(&mut self.ports, uuid, row),
            Table::Interface => put(&mut self.interfaces, uuid, row),
            Table::NbGlobal => put(&mut self.nb_global, uuid, row),
            Table::LogicalRouter => put(&mut self.routers, uuid, row),
            Table::LogicalRouterPort => put(&mut self.router_ports, uuid, row),
            Table::LogicalSwitch => put(&mut self.switches, uuid, row),
            Table::LogicalSwitchPort => put(&mut self.switch_ports, uuid, row),
            Table::PortBinding => put(&mut self.port_bindings, uuid, row),
            Table::DatapathBinding => put(&mut self.datapath_bindings, uuid, row),
        };
        match result {
            Ok(changed) => {
                let was_unreadable = self.unreadable.remove(&(table, uuid)).is_some();
                if changed || was_unreadable {
                    Applied::Changed
                } else {
                    Applied::Unchanged
                }
            }
            Err(error) => {
                self.unreadable.insert((table, uuid), error.clone());
                Applied::Skipped(error)
            }
        }
    }

    /// Forgets every row of a database.
    pub fn clear(&mut self, database: Database) {
        match database {
            Database::OpenVSwitch => {
                self.open_vswitch.clear();
                self.bridges.clear();
                self.ports.clear();
                self.interfaces.clear();
            }
            Database::Northbound => {
                self.nb_global.clear();
                self.routers.clear();
                self.router_ports.clear();
                self.switches.clear();
                self.switch_ports.clear();
            }
            Database::Southbound => {
                self.port_bindings.clear();
                self.datapath_bindings.clear();
            }
        }
        self.unreadable
            .retain(|(table, _), _| table.database() != database);
    }
}

/// Puts or removes a row; whether that made a difference.
fn put<T: FromRow>(
    rows: &mut BTreeMap<Uuid, T>,
    uuid: Uuid,
    row: Option<&Row>,
) -> Result<bool, RowError> {
    let Some(row) = row else {
        return Ok(rows.remove(&uuid).is_some());
    };
    match T::from_row(row) {
        Ok(new) if rows.get(&uuid) == Some(&new) => Ok(false),
        Ok(new) => {
            rows.insert(uuid, new);
            Ok(true)
        }
        Err(error) => {
            rows.remove(&uuid);
            Err(error)
        }
    }
}
