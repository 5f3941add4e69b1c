//! The design's flows and the eBPF datapath on Open vSwitch's kernel datapath, in the virtual
//! machines of `cargo xtask vm run`.

mod odd_frames;
mod offload;
mod rig;
mod steering;
mod tags;
