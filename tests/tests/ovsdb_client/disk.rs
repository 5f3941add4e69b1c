//! Servers whose disk is full. Needs root.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use neighsteer::ovsdb::{ErrorKind, Operation, TransactError};
use neighsteer_tests::database::DatabaseServer;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

use crate::{
    peer::{Peer, southbound},
    writer::{self, Writer},
};

/// A file system of a few pages.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        mount(
            Some("tmpfs"),
            directory.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            Some("size=4m"),
        )
        .unwrap();
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Detached: a server that still runs goes on in it.
        let _gone = umount2(self.path(), MntFlags::MNT_DETACH);
    }
}

#[tokio::test]
async fn full_disk_refuses_commits_and_loses_none() {
    let disk = SmallDisk::new();
    let mut server = DatabaseServer::builder(DatabaseServer::SOUTHBOUND)
        .data(disk.path())
        .start()
        .unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
    writer.progress().await;
    disk.fill();
    // The last page may still have room.
    let error = loop {
        let insert =
            Operation::insert("Datapath_Binding").set("tunnel_key", fastrand::i64(1..16_777_215));
        if let Err(error) = peer.client.transact(&[insert.into()]).await {
            break error;
        }
    };
    assert!(error.changed_nothing(), "{error:?}");
    let TransactError::Aborted(aborted) = error else {
        panic!("{error:?}");
    };
    assert_eq!(aborted.cause().unwrap().1.kind, ErrorKind::InputOutput);
    disk.empty();
    writer.progress().await;
    let written = writer.stop().await;
    writer::check(&mut peer, &written, southbound(&server)).await;
    // What was committed is on the disk, too.
    server.kill().unwrap();
    server.resurrect().unwrap();
    writer::check(&mut peer, &written, southbound(&server)).await;
}
