//! Node IPs on a real node: what the agent writes for them, and what pods then reach.

mod cleanup;
mod doctor;
mod reach;
#[path = "../lab_agent/rig.rs"]
#[expect(dead_code, reason = "the other tests with an agent use more of it")]
mod rig;
mod servers;
mod support;
mod uplink;
mod wedge;
