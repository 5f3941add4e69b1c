//! The OVN lab and what the tests share.
#![forbid(unsafe_code)]

pub mod frames;
pub mod lab;
