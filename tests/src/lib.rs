//! The OVN lab and what the tests share.

pub mod frames;
