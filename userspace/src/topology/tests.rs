//! A node as OVN-Kubernetes makes it, and every way in which it can be half made.

mod groups;
mod node;
mod skipped;
mod thresholds;

pub(crate) use node::{BRIDGE_MAC, Network, Node};
