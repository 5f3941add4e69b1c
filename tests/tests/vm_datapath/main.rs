//! The design's flows and the eBPF datapath on Open vSwitch's kernel datapath, in the virtual
//! machines of `cargo xtask vm run`.

mod cost;
mod marked;
mod odd_frames;
mod offload;
mod rig;
mod steering;
mod stream;
mod tags;
mod validate;
