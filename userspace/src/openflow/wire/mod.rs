//! OpenFlow messages as bytes and back: the part of 1.0 that concerns ports and the part of 1.3 that
//! concerns flows, with the extensions of Open vSwitch that both need. No I/O.
//!
//! Whatever is not known is kept as bytes, so that a flow of somebody else survives being read.
//! Numbers are in host order in all types.

mod action;
mod bundle;
mod codec;
mod error;
mod flow_mod;
mod flow_monitor;
mod flow_stats;
mod header;
mod hello;
mod message;
mod multipart;
mod oxm;
mod port;
mod port_number;
#[cfg(test)]
mod tests;

pub use action::{Action, Instruction};
pub use bundle::{BundleAdd, BundleControl, BundleStep};
pub use codec::WireError;
pub use error::{ErrorCode, ErrorMessage};
pub use flow_mod::{FlowCommand, FlowMod};
pub use flow_monitor::{FlowChange, FlowMonitorRequest, FlowUpdate, MonitoredFlow};
pub use flow_stats::{FlowStats, FlowStatsRequest};
pub use header::{Header, Version};
pub use hello::Hello;
pub use message::{AsyncConfig, Message};
pub use multipart::{Reply, Request};
pub use oxm::{Oxm, RawOxm, VLAN_PRESENT};
pub use port::{PortDescription, PortMod, PortStatus, PortStatusReason};
pub use port_number::PortNumber;
