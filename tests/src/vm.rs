//! What tests share that run in the virtual machines of `cargo xtask vm run`.

mod switch;

use std::{env, time::Duration};

pub use switch::KernelSwitch;

/// Set in a machine: the version of its kernel, as `--kernel` takes it.
const VARIABLE: &str = "NEIGHSTEER_VM";
/// How much longer anything takes where every instruction is emulated.
const SLOWER: u32 = 6;

/// The kernel that this machine was started for, if it is such a machine.
#[must_use]
pub fn kernel() -> Option<String> {
    env::var(VARIABLE).ok()
}

/// Whether a test that takes such a machine runs elsewhere; says so, as a skipped test does.
#[must_use]
pub fn is_elsewhere() -> bool {
    let elsewhere = kernel().is_none();
    if elsewhere {
        println!("SKIPPED: it takes a kernel with Open vSwitch: cargo xtask vm run");
    }
    elsewhere
}

/// A deadline, for this machine.
#[must_use]
pub fn patience(deadline: Duration) -> Duration {
    match kernel() {
        Some(_) => deadline * SLOWER,
        None => deadline,
    }
}

/// How many of the cases that a test tries by default it tries on this machine: what they say about
/// the program is said by the many elsewhere, and what they say about the kernel by few.
#[must_use]
pub fn cases(default: u32) -> u32 {
    match kernel() {
        Some(_) => default.div_ceil(20),
        None => default,
    }
}

/// Between frames that elsewhere are sent as fast as can be.
#[must_use]
pub fn pause() -> Option<Duration> {
    kernel().map(|_| Duration::from_millis(1))
}
