//! The classifier of ARP and NDP frames and the map types that the eBPF programs and the agent
//! share.
//!
//! `no_std`, no allocation: the same code runs under the kernel's verifier and in native tests.
//!
//! A frame goes `ethernet` (tags, LLC/SNAP) → `arp` or `ipv6` (what it is) → `classify` (what the
//! flow table does with it).
#![no_std]

pub mod abi;
mod arp;
pub mod classify;
mod ethernet;
pub mod frame;
mod ipv6;
pub mod verdict;
pub mod wire;

#[cfg(test)]
mod tests;

pub use classify::{Policy, Recognised, classify};
pub use frame::{Bytes, Frame, OuterTag};
pub use verdict::{Decision, Kind, Notes, Verdict};
pub use wire::MAX_EXTENSION_HEADERS;
