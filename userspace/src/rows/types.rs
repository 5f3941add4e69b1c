//! One type a table, with the columns that the agent reads.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    ids::{Mac, OfPort},
    ovsdb::{Row, RowError, Uuid},
};

/// A column such as `external_ids`.
pub type StringMap = BTreeMap<Arc<str>, Arc<str>>;

/// Open_vSwitch: the root of the node's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVSwitch {
    /// `system-id`, `ovn-bridge-mappings` and much else.
    pub external_ids: StringMap,
    /// `hw-offload`.
    pub other_config: StringMap,
}

/// Bridge of the Open_vSwitch database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its name, which its local port has too.
    pub name: Arc<str>,
    /// References to Port.
    pub ports: Vec<Uuid>,
    /// `system` (or empty), `netdev`, …
    pub datapath_type: Arc<str>,
    /// `bridge-uplink` names the uplink port.
    pub external_ids: StringMap,
    /// `hwaddr` sets the address of the local port.
    pub other_config: StringMap,
}

/// Port of the Open_vSwitch database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: Arc<str>,
    /// References to Interface: one, or more for a bond.
    pub interfaces: Vec<Uuid>,
    /// `ovn-localnet-port` names the logical port whose patch port this is.
    pub external_ids: StringMap,
}

/// Interface of the Open_vSwitch database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: Arc<str>,
    /// Empty or `system`, `internal`, `patch`, …
    pub kind: Arc<str>,
    /// Its OpenFlow number, once it has one.
    pub ofport: Option<OfPort>,
    /// The Ethernet address in use.
    pub mac_in_use: Option<Mac>,
}

/// NB_Global: the root of the northbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbGlobal {
    /// `northd_internal_version` says which northd was last active.
    pub options: StringMap,
}

/// Logical_Router of the northbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalRouter {
    /// Its name.
    pub name: Arc<str>,
    /// References to Logical_Router_Port.
    pub ports: Vec<Uuid>,
    /// `chassis` makes it a gateway router.
    pub options: StringMap,
    /// `k8s.ovn.org/network`, `k8s.ovn.org/role`, `physical_ips`.
    pub external_ids: StringMap,
}

/// Logical_Router_Port of the northbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalRouterPort {
    /// Its name.
    pub name: Arc<str>,
    /// Its Ethernet address, as text.
    pub mac: Arc<str>,
    /// Its addresses with prefix lengths.
    pub networks: Vec<Arc<str>>,
}

/// Logical_Switch of the northbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalSwitch {
    /// Its name.
    pub name: Arc<str>,
    /// References to Logical_Switch_Port.
    pub ports: Vec<Uuid>,
    /// `k8s.ovn.org/network`, `k8s.ovn.org/topology`.
    pub external_ids: StringMap,
}

/// Logical_Switch_Port of the northbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalSwitchPort {
    /// Its name.
    pub name: Arc<str>,
    /// `router`, `localnet`, or empty for a pod.
    pub kind: Arc<str>,
    /// `router-port` or `network_name`.
    pub options: StringMap,
    /// The VLAN that it has, else the one that it asks for; 0 counts as none.
    pub tag: Option<u16>,
}

/// Port_Binding of the southbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortBinding {
    /// The name of the northbound port.
    pub logical_port: Arc<str>,
    /// Reference to the Datapath_Binding of its router or switch.
    pub datapath: Uuid,
    /// `l3gateway`, `patch`, `localnet`, …
    pub kind: Arc<str>,
}

/// Datapath_Binding of the southbound database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatapathBinding {
    /// The northbound router that northd made it for; `None` for a switch's.
    pub router: Option<Uuid>,
}

/// A type that holds the rows of one table.
pub(super) trait FromRow: Sized + PartialEq {
    /// Reads a row.
    fn from_row(row: &Row) -> Result<Self, RowError>;
}

impl FromRow for OpenVSwitch {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            external_ids: row.string_map("external_ids")?,
            other_config: row.string_map("other_config")?,
        })
    }
}

impl FromRow for Bridge {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            name: row.string("name")?,
            ports: row.uuids("ports")?,
            datapath_type: row.string("datapath_type")?,
            external_ids: row.string_map("external_ids")?,
            other_config: row.string_map("other_config")?,
        })
    }
}

impl FromRow for Port {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            name: row.string("name")?,
            interfaces: row.uuids("interfaces")?,
            external_ids: row.string_map("external_ids")?,
        })
    }
}

impl FromRow for Interface {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        let mac_in_use = row.optional_string("mac_in_use")?;
        let mac_in_use = mac_in_use.map(|text| text.parse()).transpose();
        Ok(Self {
            name: row.string("name")?,
            kind: row.string("type")?,
            ofport: OfPort::from_column(row.optional_integer("ofport")?),
            mac_in_use: mac_in_use.map_err(|_| RowError {
                column: "mac_in_use".to_owned(),
                wanted: "an Ethernet address",
            })?,
        })
    }
}

impl FromRow for NbGlobal {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            options: row.string_map("options")?,
        })
    }
}

impl FromRow for LogicalRouter {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            name: row.string("name")?,
            ports: row.uuids("ports")?,
            options: row.string_map("options")?,
            external_ids: row.string_map("external_ids")?,
        })
    }
}

impl FromRow for LogicalRouterPort {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            name: row.string("name")?,
            mac: row.string("mac")?,
            networks: row.strings("networks")?,
        })
    }
}

impl FromRow for LogicalSwitch {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            name: row.string("name")?,
            ports: row.uuids("ports")?,
            external_ids: row.string_map("external_ids")?,
        })
    }
}

impl FromRow for LogicalSwitchPort {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        let tag = match row.optional_integer("tag")? {
            Some(tag) => Some(tag),
            None => row.optional_integer("tag_request")?,
        };
        let tag = tag.map(u16::try_from).transpose().map_err(|_| RowError {
            column: "tag".to_owned(),
            wanted: "a VLAN of at most 4095",
        })?;
        Ok(Self {
            name: row.string("name")?,
            kind: row.string("type")?,
            options: row.string_map("options")?,
            tag: tag.filter(|tag| *tag != 0),
        })
    }
}

impl FromRow for PortBinding {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            logical_port: row.string("logical_port")?,
            datapath: row.uuid("datapath")?,
            kind: row.string("type")?,
        })
    }
}

impl FromRow for DatapathBinding {
    fn from_row(row: &Row) -> Result<Self, RowError> {
        let ids = row.string_map("external_ids")?;
        let router = ids.get("logical-router").map(|text| text.parse());
        Ok(Self {
            router: router.transpose().map_err(|_| RowError {
                column: "external_ids:logical-router".to_owned(),
                wanted: "a UUID",
            })?,
        })
    }
}
