//! Writes while something goes wrong, and knows afterwards what must be there.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use neighsteer::ovsdb::{Client, Options, Snapshot, Uuid};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::peer::{DEADLINE, Peer, binding};

/// A task that inserts one binding after the other.
pub(crate) struct Writer {
    stop: watch::Sender<bool>,
    task: JoinHandle<Written>,
    pub(crate) committed: watch::Receiver<usize>,
}

/// What became of the inserts.
pub(crate) struct Written {
    datapath: Uuid,
    committed: BTreeSet<Uuid>,
    changed_nothing: BTreeSet<Uuid>,
}

impl Writer {
    pub(crate) fn start(client: Client, datapath: Uuid) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (count, committed) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut written = Written {
                datapath,
                committed: BTreeSet::new(),
                changed_nothing: BTreeSet::new(),
            };
            let mut number = 0_u32;
            while !*stopped.borrow() {
                number += 1;
                let (uuid, insert) = binding(datapath, &format!("w{number}"), "10.0.0.1");
                match client.transact(&[insert]).await {
                    Ok(_) => {
                        written.committed.insert(uuid);
                        count.send_replace(written.committed.len());
                    }
                    Err(error) => {
                        if error.changed_nothing() {
                            written.changed_nothing.insert(uuid);
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            }
            written
        });
        Self {
            stop,
            task,
            committed,
        }
    }

    /// Waits for more commits than there are now.
    pub(crate) async fn progress(&mut self) {
        let more = *self.committed.borrow() + 5;
        let waited = timeout(DEADLINE, self.committed.wait_for(|count| *count >= more));
        waited.await.expect("commits in time").unwrap();
    }

    pub(crate) async fn stop(self) -> Written {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }
}

/// Checks that nothing is lost and nothing wrong: every commit is there, nothing is there that was
/// refused, and the peer has what a server of `options` has.
pub(crate) async fn check(peer: &mut Peer, written: &Written, options: Options) {
    let name = format!("marker{}", fastrand::u64(..));
    let checked = timeout(DEADLINE, async {
        // The last commit of all: whoever has it has everything before it.
        let marker = loop {
            let (uuid, insert) = binding(written.datapath, &name, "10.0.0.2");
            match peer.client.transact(&[insert]).await {
                Ok(_) => break uuid,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        loop {
            // A leader that was paused may take itself for one a moment longer.
            if let Ok(snapshot) = Snapshot::fetch_with(options.clone()).await {
                let rows: BTreeMap<_, _> = snapshot
                    .rows("MAC_Binding")
                    .map(|(uuid, row)| (uuid, row.clone()))
                    .collect();
                if rows.contains_key(&marker) {
                    break rows;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let rows = checked.await.expect("a commit and a snapshot in time");
    peer.until(|peer| peer.rows == rows).await;
    for uuid in &written.committed {
        assert!(rows.contains_key(uuid), "a committed row is lost");
    }
    for uuid in &written.changed_nothing {
        assert!(!rows.contains_key(uuid), "a refused row is there");
    }
}
