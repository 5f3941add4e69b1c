//! Which tables, columns and rows to monitor, as plain data.

use std::sync::Arc;

use crate::ovsdb::{Atom, Datum};

/// A database of the node or of its OVN zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Database {
    /// The configuration of Open vSwitch on this node.
    OpenVSwitch,
    /// What OVN is asked to be.
    Northbound,
    /// What OVN made of it.
    Southbound,
}

impl Database {
    /// The name of its schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenVSwitch => "Open_vSwitch",
            Self::Northbound => "OVN_Northbound",
            Self::Southbound => "OVN_Southbound",
        }
    }
}

/// A table that the agent reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The root of the node's configuration: one row.
    OpenVSwitch,
    /// Bridges of the node.
    Bridge,
    /// Their ports.
    Port,
    /// The network devices of ports.
    Interface,
    /// The root of the northbound database: one row.
    NbGlobal,
    /// Logical routers of the zone.
    LogicalRouter,
    /// Their ports.
    LogicalRouterPort,
    /// Logical switches of the zone.
    LogicalSwitch,
    /// Their ports.
    LogicalSwitchPort,
    /// Southbound ports.
    PortBinding,
    /// Southbound datapaths: of the ports that are known, so that which ones is known only afterwards.
    DatapathBinding,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 11] = [
        Self::OpenVSwitch,
        Self::Bridge,
        Self::Port,
        Self::Interface,
        Self::NbGlobal,
        Self::LogicalRouter,
        Self::LogicalRouterPort,
        Self::LogicalSwitch,
        Self::LogicalSwitchPort,
        Self::PortBinding,
        Self::DatapathBinding,
    ];

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenVSwitch => "Open_vSwitch",
            Self::Bridge => "Bridge",
            Self::Port => "Port",
            Self::Interface => "Interface",
            Self::NbGlobal => "NB_Global",
            Self::LogicalRouter => "Logical_Router",
            Self::LogicalRouterPort => "Logical_Router_Port",
            Self::LogicalSwitch => "Logical_Switch",
            Self::LogicalSwitchPort => "Logical_Switch_Port",
            Self::PortBinding => "Port_Binding",
            Self::DatapathBinding => "Datapath_Binding",
        }
    }

    /// The database that it is in.
    #[must_use]
    pub const fn database(self) -> Database {
        match self {
            Self::OpenVSwitch | Self::Bridge | Self::Port | Self::Interface => {
                Database::OpenVSwitch
            }
            Self::NbGlobal
            | Self::LogicalRouter
            | Self::LogicalRouterPort
            | Self::LogicalSwitch
            | Self::LogicalSwitchPort => Database::Northbound,
            Self::PortBinding | Self::DatapathBinding => Database::Southbound,
        }
    }

    /// The columns that the agent reads. Interface has none that changes with traffic, so that a
    /// node at rest sends no updates.
    #[must_use]
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::OpenVSwitch => &["external_ids", "other_config"],
            Self::Bridge => &[
                "name",
                "ports",
                "datapath_type",
                "external_ids",
                "other_config",
            ],
            Self::Port => &["name", "interfaces", "external_ids"],
            Self::Interface => &["name", "type", "ofport", "mac_in_use"],
            Self::NbGlobal => &["options"],
            Self::LogicalRouter => &["name", "ports", "options", "external_ids"],
            Self::LogicalRouterPort => &["name", "mac", "networks"],
            Self::LogicalSwitch => &["name", "ports", "external_ids"],
            Self::LogicalSwitchPort => &["name", "type", "options", "tag", "tag_request"],
            Self::PortBinding => &["logical_port", "datapath", "type"],
            Self::DatapathBinding => &["external_ids"],
        }
    }
}

/// One clause of `where` (RFC 7047, 5.1): the column, the function and the value it is compared to.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: &'static str,
    /// `==` or `includes`.
    pub function: &'static str,
    /// What it is compared to.
    pub value: Datum,
}

/// A table to monitor.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitoredTable {
    /// The table.
    pub table: Table,
    /// The rows to monitor: those that fulfil any of these, or all rows where there is none.
    pub conditions: Vec<Condition>,
}

/// The tables of one database to monitor on the node with this chassis name
/// (`external_ids:system-id`).
///
/// Rows of other nodes and of pods stay out where a condition can say so: gateway routers of other
/// chassis, switch ports other than router and localnet ones, and southbound ports other than those
/// of this chassis' gateway routers. Datapaths follow from ports: they are not among these tables.
#[must_use]
pub fn monitored(database: Database, chassis: &str) -> Vec<MonitoredTable> {
    let text = |text: &str| Atom::String(Arc::from(text));
    let option_is = |key: &str| Condition {
        column: "options",
        function: "includes",
        value: Datum::Map(vec![(text(key), text(chassis))]),
    };
    let type_is = |kind: &str| Condition {
        column: "type",
        function: "==",
        value: Datum::Scalar(text(kind)),
    };
    Table::ALL
        .into_iter()
        .filter(|table| table.database() == database && *table != Table::DatapathBinding)
        .map(|table| MonitoredTable {
            table,
            conditions: match table {
                Table::LogicalRouter => vec![option_is("chassis")],
                Table::LogicalSwitchPort => vec![type_is("router"), type_is("localnet")],
                Table::PortBinding => vec![option_is("l3gateway-chassis")],
                _ => Vec::new(),
            },
        })
        .collect()
}
