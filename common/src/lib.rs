//! The classifier of ARP and NDP frames and the map types that the eBPF programs and the agent
//! share.
//!
//! `no_std`, no allocation: the same code runs in the kernel's verifier and in native tests.
#![no_std]

pub mod classify;
pub mod frame;
pub mod verdict;

pub use classify::{Policy, classify};
pub use frame::{Frame, OuterTag};
pub use verdict::{Decision, Kind, Notes, Verdict};
