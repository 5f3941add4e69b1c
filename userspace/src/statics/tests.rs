//! What is written for whom, and when.

mod conflicts;
mod gathering;
mod outcomes;
mod ownership;
pub(super) mod server;
mod strategies;
mod targets;
mod urgent;
mod world;

pub(super) use world::{Bench, MAC_A, MAC_B, binding, known, target, uuid};
