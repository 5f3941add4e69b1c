//! The second pair of versions: Open vSwitch 3.5 and OVN 25.03 from Debian 13, in a tree of their own
//! below the target folder, beside the machine's packages.
//!
//! The packages are unpacked and nothing more: no script of theirs runs, nothing is mounted, and the
//! lab starts the programs with the tree's own loader and libraries.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};

use super::{archive, debian::Apt};
use crate::{exec, progress::Progress, workspace::Workspace};

/// Debian's name for the release; also the tree's.
const RELEASE: &str = "trixie";
/// The OVN release that it has: what `--ovn` takes.
pub(crate) const OVN: &str = "25.03";
/// What the lab runs; debootstrap adds what these need.
const PACKAGES: [&str; 3] = ["openvswitch-switch", "ovn-central", "ovn-host"];
/// To be raised when a tree made by an older xtask would not do.
const RECIPE: u32 = 1;
/// Says, in a tree, that it is complete, and by which recipe.
const STAMP: &str = ".neighsteer";
/// Half of the tree, and read by nobody.
const SUPERFLUOUS: [&str; 5] = [
    "usr/share/doc",
    "usr/share/i18n",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/zoneinfo",
];

/// Makes the tree where it is missing; says nothing when it is there.
///
/// # Errors
/// When it is missing and cannot be made here.
pub(crate) fn ensure(workspace: &Workspace, progress: &Progress) -> anyhow::Result<()> {
    if is_there(workspace) {
        return Ok(());
    }
    let Some(apt) = Apt::allowed(progress) else {
        bail!(missing());
    };
    if exec::find_program("debootstrap").is_none() {
        apt.install(&["debootstrap".to_owned()])?;
    }
    make(&folder(workspace), progress)
        .with_context(|| format!("cannot make the Debian 13 tree with OVN {OVN}"))
}

/// Whether a complete tree is there.
pub(crate) fn is_there(workspace: &Workspace) -> bool {
    is_complete(&folder(workspace).join(RELEASE))
}

/// One line: what is missing, and how to get it.
pub(crate) fn missing() -> String {
    format!(
        "missing: the Debian 13 tree with OVN {OVN}; as root on Debian 12: cargo xtask setup (it \
         takes debootstrap)"
    )
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("trees")
}

fn stamp() -> String {
    format!("{RECIPE} {}\n", PACKAGES.join(" "))
}

fn is_complete(tree: &Path) -> bool {
    fs::read_to_string(tree.join(STAMP)).is_ok_and(|text| text == stamp())
}

fn make(folder: &Path, progress: &Progress) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let tree = folder.join(RELEASE);
    let step = progress.step(format!(
        "making a Debian 13 tree with OVN {OVN} and Open vSwitch"
    ));
    // Another xtask may be at it: it goes first, and what it leaves is taken.
    let lock = folder.join("lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("cannot lock {}", lock.display()))?;
    if is_complete(&tree) {
        step.clear();
        return Ok(());
    }
    let part = folder.join(format!("{RELEASE}.part"));
    remove(&part)?;
    let (download, unpacked) = (part.join("download"), part.join("tree"));
    fs::create_dir_all(&unpacked)
        .with_context(|| format!("cannot create {}", unpacked.display()))?;

    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args([
            "--variant=minbase",
            "--download-only",
            // Without it, a missing key would only be a warning.
            "--force-check-gpg",
        ])
        .arg(format!("--include={}", PACKAGES.join(",")))
        .arg(RELEASE)
        .arg(&download)
        .arg(archive::url()?)
        .env("LC_ALL", "C.UTF-8")
        .envs(archive::proxies());
    exec::watched(&mut debootstrap, &step)?;
    for package in packages(&download.join("var/cache/apt/archives"))? {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        step.detail(&format!("unpacking {name}"));
        exec::stdout(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(&package)
                .arg(&unpacked),
        )?;
    }
    for superfluous in SUPERFLUOUS {
        remove(&unpacked.join(superfluous))?;
    }
    let stamped = unpacked.join(STAMP);
    fs::write(&stamped, stamp()).with_context(|| format!("cannot write {}", stamped.display()))?;
    remove(&tree)?;
    fs::rename(&unpacked, &tree).with_context(|| format!("cannot create {}", tree.display()))?;
    remove(&part)?;
    step.done();
    eprintln!("  {} MiB in {}", size(&tree) >> 20, tree.display());
    // Closing it unlocks; the file stays for the next who waits.
    drop(lock);
    Ok(())
}

fn packages(archives: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(archives).with_context(|| format!("cannot list {}", archives.display()))?;
    let packages: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    ensure!(!packages.is_empty(), "debootstrap has fetched no package");
    Ok(packages)
}

pub(super) fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Bytes on disk.
pub(super) fn size(path: &Path) -> u64 {
    let own = fs::symlink_metadata(path).map_or(0, |about| about.blocks() * 512);
    // A symbolic link is no folder of its own.
    let entries = fs::symlink_metadata(path)
        .is_ok_and(|about| about.is_dir())
        .then(|| fs::read_dir(path).ok())
        .flatten();
    let below: u64 = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(size(&entry.ok()?.path())))
        .sum();
    own + below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_without_its_stamp_is_not_complete() {
        assert!(!is_complete(Path::new("/")));
    }
}
