//! The protocol's bytes and values; no sockets, no clock.

pub mod condition;
mod decode;
mod encode;
pub mod frame;
pub mod message;
pub mod monitor;
pub mod operation;
pub mod outcome;
pub mod schema;
pub mod updates;
