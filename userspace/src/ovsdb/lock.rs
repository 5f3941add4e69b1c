//! Locks that a server keeps for its clients (RFC 7047, 4.1.8 to 4.1.11).

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use super::{pending::Shared, wire::operation::Operation};

/// What is known of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockState {
    /// Not connected, or not answered yet; it is asked for on every connection anew.
    #[default]
    Unknown,
    /// Somebody else has it; it is ours when he gives it up or goes.
    Waiting,
    /// It is ours.
    Held,
    /// It was ours until somebody took it; it is ours again when he gives it up or goes.
    Stolen,
}

/// A name that no lock can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name for a lock: letters, digits and _, no digit first")]
pub struct LockNameError {
    /// What was given.
    pub name: String,
}

/// A wish to hold a lock, for as long as this lives. Held by the connection that sends transactions.
///
/// A lock is kept by one server: it excludes clients of other members of a cluster only where all
/// demand the leader, and for the moments of a change of leader not even then.
#[derive(Debug)]
pub struct Lock {
    shared: Arc<Shared>,
    name: Arc<str>,
    state: watch::Receiver<LockState>,
}

impl Lock {
    pub(crate) fn new(shared: Arc<Shared>, name: Arc<str>) -> Result<Self, LockNameError> {
        if !is_id(&name) {
            return Err(LockNameError {
                name: name.to_string(),
            });
        }
        let state = shared.want_lock(&name);
        Ok(Self {
            shared,
            name,
            state,
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What is known now. That it is held is no promise: only a transaction that asserts it knows.
    #[must_use]
    pub fn state(&self) -> LockState {
        *self.state.borrow()
    }

    /// Waits for another state than was last returned here. Cancel-safe.
    pub async fn changed(&mut self) -> LockState {
        if self.state.changed().await.is_err() {
            // Nobody is left to say anything.
            std::future::pending::<()>().await;
        }
        *self.state.borrow_and_update()
    }

    /// Fails a transaction in which it stands unless the lock is held.
    #[must_use]
    pub fn assertion(&self) -> Operation {
        Operation::assert_lock(self.name.to_string())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.shared.unwant_lock(&self.name);
    }
}

/// `<id>` (RFC 7047, 3.1).
fn is_id(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(word)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
}

/// The locks that handles exist for.
#[derive(Debug, Default)]
pub(crate) struct WantedLocks(BTreeMap<Arc<str>, WantedLock>);

#[derive(Debug)]
struct WantedLock {
    handles: usize,
    state: watch::Sender<LockState>,
}

impl WantedLocks {
    /// One handle more; whether the lock is a new one is of no interest to it.
    pub(crate) fn add(&mut self, name: &Arc<str>) -> watch::Receiver<LockState> {
        let wanted = self
            .0
            .entry(Arc::clone(name))
            .or_insert_with(|| WantedLock {
                handles: 0,
                state: watch::Sender::new(LockState::Unknown),
            });
        wanted.handles += 1;
        wanted.state.subscribe()
    }

    /// One handle less.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(wanted) = self.0.get_mut(name) {
            wanted.handles -= 1;
            if wanted.handles == 0 {
                self.0.remove(name);
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.0.keys().map(Arc::clone).collect()
    }

    pub(crate) fn set(&self, name: &str, state: LockState) {
        if let Some(wanted) = self.0.get(name) {
            wanted.state.send_if_modified(|known| {
                let changed = *known != state;
                *known = state;
                changed
            });
        }
    }

    pub(crate) fn forget(&self) {
        for name in self.0.keys() {
            self.set(name, LockState::Unknown);
        }
    }
}

/// The locks of one connection.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks(BTreeMap<Arc<str>, Asked>);

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// The request with this id has no answer yet.
    Pending(u64),
    /// It was answered; news may follow.
    Answered,
}

impl HeldLocks {
    /// Asks for what is wanted, and gives up what is not; `request` sends.
    pub(crate) fn reconcile(
        &mut self,
        wanted: &[Arc<str>],
        mut request: impl FnMut(&'static str, &str) -> u64,
    ) {
        self.0.retain(|name, _| {
            let keep = wanted.contains(name);
            if !keep {
                request("unlock", name);
            }
            keep
        });
        for name in wanted {
            if !self.0.contains_key(name) {
                let id = request("lock", name);
                self.0.insert(Arc::clone(name), Asked::Pending(id));
            }
        }
    }

    /// Which lock the answer with this id is about.
    pub(crate) fn answered(&mut self, id: u64) -> Option<Arc<str>> {
        let (name, asked) = self
            .0
            .iter_mut()
            .find(|(_, asked)| **asked == Asked::Pending(id))?;
        *asked = Asked::Answered;
        Some(Arc::clone(name))
    }

    /// Whether news of this lock are about our last request for it.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Asked::Answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ids() {
        for name in ["a", "_", "neighsteer_mirror_1", "A9"] {
            assert!(is_id(name), "{name}");
        }
        for name in ["", "1", "a-b", "a b", "ä", "a.b"] {
            assert!(!is_id(name), "{name}");
        }
    }

    #[test]
    fn lock_that_is_wanted_again_hears_nothing_of_the_first_wish() {
        let mut held = HeldLocks::default();
        let mut sent = Vec::new();
        let mut reconcile = |held: &mut HeldLocks, wanted: &[&str]| {
            let wanted: Vec<Arc<str>> = wanted.iter().map(|name| Arc::from(*name)).collect();
            held.reconcile(&wanted, |method, name| {
                sent.push(format!("{method} {name}"));
                sent.len() as u64
            });
        };
        reconcile(&mut held, &["a", "b"]);
        reconcile(&mut held, &["a", "b"]);
        reconcile(&mut held, &["b"]);
        reconcile(&mut held, &["a", "b"]);
        assert_eq!(sent, ["lock a", "lock b", "unlock a", "lock a"]);
        assert_eq!(held.answered(1), None);
        assert!(!held.knows("a"));
        assert_eq!(held.answered(4).as_deref(), Some("a"));
        assert!(held.knows("a"));
        assert_eq!(held.answered(4), None);
    }

    #[test]
    fn lock_is_wanted_until_its_last_handle_goes() {
        let mut wanted = WantedLocks::default();
        let name: Arc<str> = "a".into();
        let first = wanted.add(&name);
        let second = wanted.add(&name);
        wanted.set("a", LockState::Held);
        assert_eq!(
            (*first.borrow(), *second.borrow()),
            (LockState::Held, LockState::Held)
        );
        wanted.remove("a");
        assert_eq!(wanted.names(), [name]);
        wanted.forget();
        assert_eq!(*second.borrow(), LockState::Unknown);
        wanted.remove("a");
        assert!(wanted.names().is_empty());
    }
}
