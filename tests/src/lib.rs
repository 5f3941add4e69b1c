//! The OVN lab and what the tests share.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod database;
pub mod frames;
pub mod generate;
pub mod lab;
pub mod oracle;
