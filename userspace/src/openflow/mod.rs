//! OpenFlow as Open vSwitch speaks it, and the control socket of its daemon. It knows nothing of
//! OVN.

pub mod unixctl;
