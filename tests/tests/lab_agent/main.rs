//! The agent on a real node: databases, switch, kernel and pods.

mod errors;
mod exclusion;
mod lifecycle;
mod mirroring;
mod observing;
mod rig;
mod steering;
mod watching;
