//! The database client against real servers.

mod conditions;
mod peer;
mod reconnect;
mod snapshots;
mod transactions;
