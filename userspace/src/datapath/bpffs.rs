//! Mounts bpffs where it is missing.

use std::{fs, path::Path};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use super::error::AttachError;

/// Sees to it that `path` lies in a bpffs: mounts one on it, as bpftool does, where it does not.
///
/// # Errors
/// Where the directory cannot be made or the mount is refused.
pub fn ensure(path: &Path) -> Result<(), AttachError> {
    let error = |source: std::io::Error| AttachError::Bpffs {
        path: path.to_owned(),
        source,
    };
    if is_bpffs(path) {
        return Ok(());
    }
    fs::create_dir_all(path).map_err(error)?;
    if is_bpffs(path) {
        return Ok(());
    }
    mount_at(path).map_err(|errno| error(errno.into()))
}

/// Whether `path` exists and lies in a bpffs.
#[must_use]
pub fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|status| status.filesystem_type() == BPF_FS_MAGIC)
}

fn mount_at(path: &Path) -> nix::Result<()> {
    let none: Option<&Path> = None;
    // Keeps the new mount from spreading to other mount namespaces; a path that is no mount point
    // is made one first.
    let private = || {
        mount(
            Some("none"),
            path,
            none,
            MsFlags::MS_PRIVATE | MsFlags::MS_REC,
            none,
        )
    };
    match private() {
        Err(Errno::EINVAL) => {
            mount(Some(path), path, Some("none"), MsFlags::MS_BIND, none)?;
            private()?;
        }
        result => result?,
    }
    mount(
        Some("bpf"),
        path,
        Some("bpf"),
        MsFlags::empty(),
        Some("mode=0700"),
    )
}
