//! Steering that is kept true, whatever else touches the bridge.

mod complete;
mod events;
mod fault;
mod fight;
mod manager;
mod pausing;
#[path = "../lab_agent/rig.rs"]
#[expect(dead_code, reason = "the other tests with an agent use more of it")]
mod rig;
mod seen;
mod standing_down;
mod swap;
mod uplink_group;
