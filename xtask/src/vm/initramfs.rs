//! What the machine boots into: a busybox, the modules that reach the host's files, and two scripts.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::{exec, setup::kernels::Unpacked};

/// The first program.
const INIT: &str = include_str!("init.sh");
/// What it hands over to.
const GUEST: &str = include_str!("guest.sh");
/// Without these there is no root file system.
const MODULES: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];
/// Folders that the first program mounts to.
const FOLDERS: [&str; 8] = [
    "bin", "proc", "sys", "dev", "lower", "upper", "new", "modules",
];

/// Writes the archive; `settings` is read by the second script.
///
/// # Errors
/// When a module is missing, or a file cannot be written.
pub(super) fn write(
    archive: &Path,
    folder: &Path,
    kernel: &Unpacked,
    settings: &str,
) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    for below in FOLDERS {
        let below = folder.join(below);
        fs::create_dir_all(&below).with_context(|| format!("cannot create {}", below.display()))?;
    }
    copy(&kernel.busybox(), &folder.join("bin/busybox"))?;
    let mut order = String::new();
    for module in modules(kernel)? {
        let name = module.rsplit('/').next().unwrap_or_default();
        copy(Path::new(&module), &folder.join("modules").join(name))?;
        order.push_str(name);
        order.push('\n');
    }
    for (name, text) in [
        ("order", order.as_str()),
        ("settings", settings),
        ("guest.sh", GUEST),
        ("init", INIT),
    ] {
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    exec::stdout(Command::new("chmod").arg("755").arg(folder.join("init")))?;
    pack(archive, folder, &kernel.busybox())
}

/// The files of the modules and of those that they need, in the order to load them in.
fn modules(kernel: &Unpacked) -> anyhow::Result<Vec<String>> {
    let modprobe = exec::find_program("modprobe").context("modprobe is not installed")?;
    let mut files = Vec::new();
    for module in MODULES {
        let said = exec::stdout(Command::new(&modprobe).arg("-d").arg(&kernel.folder).args([
            "-S",
            &kernel.release,
            "--show-depends",
            module,
        ]))?;
        for file in needed(&said) {
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
    }
    Ok(files)
}

/// Of lines `insmod FILE OPTIONS`, others being what the kernel has built in.
fn needed(said: &str) -> impl Iterator<Item = &str> {
    said.lines()
        .filter_map(|line| line.strip_prefix("insmod ")?.split_whitespace().next())
}

fn pack(archive: &Path, folder: &Path, busybox: &Path) -> anyhow::Result<()> {
    let output =
        File::create(archive).with_context(|| format!("cannot create {}", archive.display()))?;
    let mut find = Command::new("find")
        .arg(".")
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run find")?;
    let names = find.stdout.take().context("find has no output")?;
    let packed = Command::new(busybox)
        .args(["cpio", "-o", "-H", "newc"])
        .current_dir(folder)
        .stdin(names)
        .stdout(output)
        .stderr(Stdio::null())
        .status()
        .context("cannot run busybox")?;
    let found = find.wait().context("cannot wait for find")?;
    ensure!(
        packed.success() && found.success(),
        "cannot pack {}",
        archive.display()
    );
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_has_built_in_is_no_file() {
        let said = "builtin virtio\ninsmod /k/virtio_ring.ko \ninsmod /k/virtio_pci.ko opt=1\n";
        let files: Vec<_> = needed(said).collect();
        assert_eq!(files, ["/k/virtio_ring.ko", "/k/virtio_pci.ko"]);
    }
}
