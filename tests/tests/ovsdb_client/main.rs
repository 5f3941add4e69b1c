//! The database client against real servers, and against servers that misbehave.

mod cluster;
mod conditions;
mod conversion;
mod disk;
mod failover;
mod hostile;
mod load;
mod locks;
mod network;
mod peer;
mod reconnect;
mod snapshots;
mod tls;
mod transactions;
mod types;
mod writer;
