//! The read-only settings, written by the loader before the program is loaded.

use neighsteer_common::{NodeAddresses, abi::Settings};

/// All zero as loaded by plain bpftool or tc: no policy, no tag, ingress, failed checks
/// counted. The name is
/// [`neighsteer_common::abi::SETTINGS`].
#[unsafe(no_mangle)]
static SETTINGS_V3: Settings = Settings {
    bridge_mac: [0; 6],
    gateway_vlan: 0,
    policy_set: 0,
    tag_set: 0,
    direction: 0,
    validate: 0,
    tag: 0,
    steering_mark: 0,
    node_addresses: NodeAddresses::NONE,
};

/// The settings as the loader left them.
#[inline(always)]
pub fn settings() -> Settings {
    // SAFETY: a reference is valid; volatile, because the loader changes what the compiler sees.
    unsafe { core::ptr::read_volatile(&raw const SETTINGS_V3) }
}

/// [`Settings::steering_mark`] alone, for frames of which nothing else is asked.
#[inline(always)]
pub fn steering_mark() -> u32 {
    // SAFETY: as above.
    unsafe { core::ptr::read_volatile(&raw const SETTINGS_V3.steering_mark) }
}
