//! Tells that something in a directory has changed (inotify(7)).

use std::{io, os::fd::AsFd as _, path::Path};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use tokio::net::unix::pipe;

/// A watch on one directory. Where the kernel grants none it never tells anything.
#[derive(Debug)]
pub(super) struct Watch {
    instance: Option<Instance>,
    aimed: Option<WatchDescriptor>,
}

#[derive(Debug)]
struct Instance {
    inotify: Inotify,
    /// The same instance, for tokio to wait on. What its events say is of no interest.
    events: pipe::Receiver,
}

impl Watch {
    pub(super) fn new() -> Self {
        let instance = Instance::new().inspect_err(|error| {
            tracing::warn!(%error, "manifests are looked at in intervals only: no inotify");
        });
        Self {
            instance: instance.ok(),
            aimed: None,
        }
    }

    /// Watches the directory that has this name now, in the place of a former one.
    pub(super) fn aim(&mut self, directory: &Path) {
        let Some(Instance { inotify, .. }) = &self.instance else {
            return;
        };
        let flags = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ATTRIB;
        // The same directory gives the same descriptor; one that is missing is tried at each look.
        let added = inotify.add_watch(directory, flags).ok();
        if self.aimed != added
            && let Some(former) = self.aimed
        {
            // Fails where the directory is gone, and the watch with it.
            let _gone = inotify.rm_watch(former);
        }
        self.aimed = added;
    }

    /// Waits until something has changed. Cancelling it loses nothing.
    pub(super) async fn changed(&self) {
        let Some(Instance { events, .. }) = &self.instance else {
            return std::future::pending().await;
        };
        let mut buffer = [0; 4096];
        let mut changed = false;
        while !changed {
            if events.readable().await.is_err() {
                return std::future::pending().await;
            }
            while events.try_read(&mut buffer).is_ok_and(|length| length > 0) {
                changed = true;
            }
        }
    }
}

impl Instance {
    fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let same = inotify.as_fd().try_clone_to_owned()?;
        Ok(Self {
            events: pipe::Receiver::from_owned_fd_unchecked(same)?,
            inotify,
        })
    }
}
