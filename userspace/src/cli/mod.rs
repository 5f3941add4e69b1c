//! The command line.

pub mod capture;
pub mod classify;
pub mod flows;
