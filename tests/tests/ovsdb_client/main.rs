//! The database client against real servers, and against servers that misbehave.

mod cluster;
mod conditions;
mod hostile;
mod load;
mod peer;
mod reconnect;
mod snapshots;
mod transactions;
mod types;
