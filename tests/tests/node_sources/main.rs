//! The Kubernetes source against an API server of the tests' own.

mod common;
mod faults;
mod follow;
mod uplinks;
