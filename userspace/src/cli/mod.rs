//! The command line.

pub mod flows;
