//! Typed rows of the tables that the agent reads, and which of their columns it monitors. Pure.

mod monitored;
mod store;
mod types;

#[cfg(test)]
pub(crate) mod tests;

pub use monitored::{Condition, Database, MonitoredTable, Table, monitored};
pub use store::{Applied, Rows};
pub use types::{
    Bridge, DatapathBinding, Interface, LogicalRouter, LogicalRouterPort, LogicalSwitch,
    LogicalSwitchPort, NbGlobal, OpenVSwitch, Port, PortBinding, StringMap,
};
