//! The locks under which the agent writes to OVN's databases.

use crate::ovsdb::{Lock, LockState};

/// A lock of this chassis: `neighsteer_<what>_<chassis>`. A lock's name has letters, digits and `_`
/// only: any other byte of the chassis' name is `_` and two hexadecimal digits in it.
#[must_use]
pub fn lock_name(what: &str, chassis: &str) -> String {
    let mut name = format!("neighsteer_{what}_");
    for byte in chassis.bytes() {
        if byte.is_ascii_alphanumeric() {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("_{byte:02x}"));
        }
    }
    name
}

/// The next state of a lock; without one, never.
pub(super) async fn lock_changed(lock: Option<&mut Lock>) -> LockState {
    match lock {
        Some(lock) => lock.changed().await,
        None => std::future::pending().await,
    }
}

/// Says that a lock came or went.
pub(super) fn note_lock(lock: Option<&Lock>, state: LockState) {
    let lock = lock.map(|lock| &**lock.name());
    match state {
        LockState::Held => tracing::info!(lock, "this agent writes for the chassis"),
        LockState::Waiting => {
            tracing::warn!(
                lock,
                "somebody else holds the lock (another agent, or a connection of ours that the server has not given up yet); waiting for it"
            );
        }
        LockState::Stolen => {
            tracing::warn!(lock, "somebody took the lock; waiting for it to come back");
        }
        // The lost connection is told of elsewhere.
        LockState::Unknown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chassis_has_a_lock_of_its_own() {
        assert_eq!(lock_name("mirror", "node1"), "neighsteer_mirror_node1");
        assert_eq!(lock_name("static", "a-b.c"), "neighsteer_static_a_2db_2ec");
        assert_ne!(lock_name("mirror", "a_2d"), lock_name("mirror", "a-"));
    }
}
