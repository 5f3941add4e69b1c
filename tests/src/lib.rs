//! The OVN lab and what the tests share.
#![forbid(unsafe_code)]

pub mod apiserver;
pub mod cable;
pub mod certificates;
pub mod cluster;
pub mod corpus;
pub mod database;
pub mod demo;
pub mod dummy_switch;
pub mod frames;
pub mod gaps;
pub mod generate;
pub mod kernel;
pub mod lab;
pub mod mirroring;
pub mod northbound;
pub mod oracle;
pub mod packet_socket;
pub mod raw_database;
pub mod report;
pub mod southbound;
pub mod static_rows;
pub mod tools;
pub mod vm;
