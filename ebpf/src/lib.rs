//! What the programs share: frames over the kernel's contexts, settings and counters.
#![no_std]

pub mod account;
pub mod mark;
pub mod packet;
pub mod recognise;
pub mod settings;

/// The licence that the kernel reads; some helpers are for GPL-compatible programs only.
///
/// Each object places it in its section `license`.
pub const LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
