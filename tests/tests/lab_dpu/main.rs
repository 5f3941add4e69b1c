//! A DPU and its host: the host is behind a representor, which comes, goes and gets other names.

mod host;
mod modes;
mod representor;
#[path = "../lab_agent/rig.rs"]
#[expect(dead_code, reason = "the other tests with an agent use more of it")]
mod rig;
mod support;
