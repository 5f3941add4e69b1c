//! The command line.

pub mod capture;
pub mod classify;
pub mod datapath;
pub mod flows;
pub mod policy;
