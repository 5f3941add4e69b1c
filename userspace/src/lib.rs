//! neighsteer: steers ARP and NDP to one OVN gateway router and mirrors its bindings to the others.
#![forbid(unsafe_code)]

pub mod agent;
pub mod audit;
pub mod cli;
pub mod datapath;
pub mod ids;
pub mod mirror;
pub mod nodes;
pub mod openflow;
pub mod ovsdb;
pub mod plain_file;
pub mod plan;
pub mod representor;
pub mod rows;
pub mod sources;
pub mod statics;
pub mod topology;
