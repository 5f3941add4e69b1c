//! Which port of a bridge leads to the host, on a DPU: there the host endpoint is the representor of
//! one of the host's functions instead of the bridge's own port (OKEP-6691, "Generalizing for DPU
//! mode"). Reading is in [`read`]; all the rest is pure.
//!
//! The order: the configured one; a representor of a PF, the first of the bridge by name; the only
//! one of a VF or SF; the first of a simulator's. Representors of the uplink's own switch go before
//! others.

mod choose;
mod configured;
mod port_name;
mod sysfs;
#[cfg(test)]
mod tests;

pub use choose::{NoRepresentor, Representors};
pub use configured::{Configured, HostRepresentor, ParseHostRepresentorError};
pub use port_name::PortName;
pub use sysfs::{Problem, Reading, SwitchPort, is_interface_name, read};
