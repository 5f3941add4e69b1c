//! The classifier of ARP and NDP frames and the map types that the eBPF programs and the agent
//! share.
//!
//! `no_std`, no allocation: the same code runs under the kernel's verifier and in native tests.
//!
//! A frame goes `ethernet` (tags, LLC/SNAP) → `arp` or `ipv6` (what it is) → `classify` (what the
//! flow table does with it); `check` says what the standards and
//! prudence find wrong with it.
#![no_std]

pub mod abi;
mod arp;
pub mod check;
pub mod classify;
mod ethernet;
pub mod frame;
mod ipv6;
mod node_addresses;
pub mod verdict;
pub mod wire;

#[cfg(test)]
mod tests;

pub use check::{Check, Validate};
pub use classify::{Policy, Recognised, classify};
pub use frame::{Bytes, Frame, OuterTag};
pub use node_addresses::NodeAddresses;
pub use verdict::{Decision, Kind, Notes, Verdict};
pub use wire::MAX_EXTENSION_HEADERS;
