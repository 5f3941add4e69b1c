//! The datapath on real interfaces: veth pairs in a network namespace of each test's own.
//!
//! Needs root and a kernel with BPF; where there is none, each test says so and is skipped.

mod capabilities;
mod errors;
mod frames;
mod lifecycle;
mod links;
mod other_versions;
mod plain_tools;
mod renamed;
mod rig;
mod stats;
mod validate;
