//! The kernels of the virtual machines: Debian 12's own and its backported one, each in a folder of
//! its own below the target folder, with the modules that a node needs and a static busybox.
//!
//! Nothing is installed: apt fetches and checks the packages by lists of its own below that folder,
//! they are unpacked, and most of their modules are thrown away.

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use super::{
    archive,
    tree::{remove, size},
};
use crate::{exec, progress::Progress, workspace::Workspace};

/// To be raised when a folder made by an older xtask would not do.
const RECIPE: u32 = 1;
/// Says, in a kernel's folder, that it is complete, and by which recipe.
const STAMP: &str = ".neighsteer";
/// What has the newest kernel of a release as its dependency.
const METAPACKAGE: &str = "linux-image-amd64";
/// Debian's own keys: apt's default would be every key that the machine trusts.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Folders of modules that a node's network, and the machine's file systems, are made of.
const KEPT: [&str; 10] = [
    "arch",
    "crypto",
    "drivers/net",
    "drivers/virtio",
    "fs/9p",
    "fs/fscache",
    "fs/netfs",
    "fs/overlayfs",
    "lib",
    "net",
];
/// What is superfluous below those.
const DROPPED: [&str; 6] = [
    "drivers/net/can",
    "drivers/net/ethernet",
    "drivers/net/usb",
    "drivers/net/wireless",
    "net/bluetooth",
    "net/mac80211",
];

/// A kernel that the tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kernel {
    /// Debian 12's: no TCX, programs are attached to clsact
    #[value(name = "6.1")]
    V6_1,
    /// The one backported to Debian 12, from Debian 13: TCX
    #[value(name = "6.12")]
    V6_12,
}

impl Kernel {
    /// In the order in which they run.
    pub(crate) const ALL: [Self; 2] = [Self::V6_1, Self::V6_12];

    fn suite(self) -> &'static str {
        match self {
            Self::V6_1 => "bookworm",
            Self::V6_12 => "bookworm-backports",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
        })
    }
}

/// An unpacked kernel.
pub(crate) struct Unpacked {
    /// `lib/modules` is in it.
    pub(crate) folder: PathBuf,
    /// As `uname -r` says it.
    pub(crate) release: String,
}

impl Unpacked {
    /// The image to boot.
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// The static busybox beside it.
    pub(crate) fn busybox(&self) -> PathBuf {
        self.folder.join("busybox")
    }
}

/// Fetches and unpacks a kernel where it is missing; says nothing when it is there.
///
/// # Errors
/// When it is missing and cannot be fetched here.
pub(crate) fn ensure(
    workspace: &Workspace,
    progress: &Progress,
    kernel: Kernel,
) -> anyhow::Result<Unpacked> {
    let folder = folder(workspace);
    if !is_complete(&folder, kernel) {
        make(&folder, progress, kernel)
            .with_context(|| format!("cannot get the {kernel} kernel of the virtual machine"))?;
    }
    let folder = folder.join(kernel.to_string());
    let release = fs::read_to_string(folder.join("release"))
        .with_context(|| format!("cannot read {}/release", folder.display()))?;
    Ok(Unpacked { folder, release })
}

/// Whether every kernel is there.
pub(crate) fn are_there(workspace: &Workspace) -> bool {
    let folder = folder(workspace);
    Kernel::ALL
        .into_iter()
        .all(|kernel| is_complete(&folder, kernel))
}

/// One line: what is missing, and how to get it.
pub(crate) fn missing() -> &'static str {
    "missing: the kernels of the virtual machines; on Debian 12: cargo xtask setup"
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("kernels")
}

fn stamp(kernel: Kernel) -> String {
    format!("{RECIPE} {kernel}\n")
}

fn is_complete(folder: &Path, kernel: Kernel) -> bool {
    fs::read_to_string(folder.join(kernel.to_string()).join(STAMP))
        .is_ok_and(|text| text == stamp(kernel))
}

fn make(folder: &Path, progress: &Progress, kernel: Kernel) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let step = progress.step(format!("fetching a {kernel} kernel for virtual machines"));
    // Another xtask may be at it: it goes first, and what it leaves is taken.
    let lock = folder.join("lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("cannot lock {}", lock.display()))?;
    if is_complete(folder, kernel) {
        step.clear();
        return Ok(());
    }
    let part = folder.join(format!("{kernel}.part"));
    remove(&part)?;
    let complete = part.join("complete");
    fs::create_dir_all(&complete)
        .with_context(|| format!("cannot create {}", complete.display()))?;

    // The backports have no busybox of their own, and so a dependency is looked up in each alone.
    let apt = Lists::fetch(&part.join("apt"), kernel.suite())?;
    let image = apt.dependency(METAPACKAGE)?;
    step.detail(&format!("fetching {image}"));
    let unpacked = apt.unpack(&image, &part.join("image"))?;
    let base = match kernel {
        Kernel::V6_1 => apt,
        Kernel::V6_12 => Lists::fetch(&part.join("base"), Kernel::V6_1.suite())?,
    };
    let busybox = base.unpack("busybox-static", &part.join("busybox"))?;
    rename(&busybox.join("bin/busybox"), &complete.join("busybox"))?;

    step.detail("unpacking");
    let modules = only_entry(&unpacked.join("lib/modules"))?;
    let release = modules
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let image = unpacked.join("boot").join(format!("vmlinuz-{release}"));
    rename(&image, &complete.join("vmlinuz"))?;
    keep_modules(&modules, &complete, &release)?;
    write(&complete.join("release"), &release)?;
    write(&complete.join(STAMP), &stamp(kernel))?;
    let place = folder.join(kernel.to_string());
    remove(&place)?;
    rename(&complete, &place)?;
    remove(&part)?;
    step.done();
    eprintln!("  {} MiB in {}", size(&place) >> 20, place.display());
    // Closing it unlocks; the file stays for the next who waits.
    drop(lock);
    Ok(())
}

/// Moves the modules that are kept, uncompressed, and indexes them.
fn keep_modules(from: &Path, tree: &Path, release: &str) -> anyhow::Result<()> {
    let to = tree.join("lib/modules").join(release);
    for kept in KEPT {
        let (from, to) = (from.join("kernel").join(kept), to.join("kernel").join(kept));
        // Kernels differ in what is a module.
        if from.is_dir() {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)
                    .with_context(|| format!("cannot create {}", parent.display()))?;
            }
            rename(&from, &to)?;
        }
    }
    for dropped in DROPPED {
        remove(&to.join("kernel").join(dropped))?;
    }
    for list in [
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ] {
        rename(&from.join(list), &to.join(list))?;
    }
    // In one call for all: a kernel has thousands.
    exec::stdout(
        Command::new("find")
            .arg(&to)
            .args(["-name", "*.ko.xz", "-exec"])
            .arg(tree.join("busybox"))
            .args(["unxz", "{}", "+"]),
    )?;
    exec::stdout(
        Command::new(program("depmod")?)
            .arg("-b")
            .arg(tree)
            .arg(release),
    )
    .map(drop)
}

/// Apt with one suite of the machine's archive and nothing else of its own configuration.
struct Lists {
    folder: PathBuf,
    options: Vec<String>,
}

impl Lists {
    fn fetch(folder: &Path, suite: &str) -> anyhow::Result<Self> {
        for below in ["lists/partial", "cache/archives/partial"] {
            let below = folder.join(below);
            fs::create_dir_all(&below)
                .with_context(|| format!("cannot create {}", below.display()))?;
        }
        let keys = match Path::new(KEYS).exists() {
            true => format!("[signed-by={KEYS}] "),
            false => String::new(),
        };
        let source = folder.join("sources.list");
        write(
            &source,
            &format!("deb {keys}{} {suite} main\n", archive::url()?),
        )?;
        let shown = folder.display();
        let lists = Self {
            options: [
                format!("Dir::Etc::sourcelist={}", source.display()),
                "Dir::Etc::sourceparts=/dev/null".to_owned(),
                format!("Dir::State::lists={shown}/lists"),
                format!("Dir::Cache={shown}/cache"),
                // Its usual user may not be let into this folder.
                "APT::Sandbox::User=root".to_owned(),
                // Somebody else's hooks after an update are about somebody else's lists.
                "APT::Update::Post-Invoke-Success::=true".to_owned(),
                "APT::Architecture=amd64".to_owned(),
            ]
            .into_iter()
            .flat_map(|option| ["-o".to_owned(), option])
            .collect(),
            folder: folder.to_owned(),
        };
        // Without it, a list that cannot be fetched would only be a warning.
        exec::stdout(lists.command("apt-get").args(["-eany", "update"]))?;
        Ok(lists)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .args(&self.options)
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// The first package that one depends on and that can be had.
    fn dependency(&self, package: &str) -> anyhow::Result<String> {
        let said = exec::stdout(self.command("apt-cache").args(["depends", package]))?;
        let named = first_dependency(&said)
            .with_context(|| format!("{package} depends on nothing:\n{said}"))?;
        // The signed image may come hours later.
        let unsigned = format!("{named}-unsigned");
        for candidate in [named, &unsigned] {
            let mut show = self.command("apt-cache");
            show.args(["show", "--no-all-versions", candidate]);
            if exec::stdout(&mut show).is_ok() {
                return Ok(candidate.to_owned());
            }
        }
        anyhow::bail!("the archive does not have {named}")
    }

    /// Fetches a package and unpacks it.
    fn unpack(&self, package: &str, to: &Path) -> anyhow::Result<PathBuf> {
        exec::stdout(self.command("apt-get").args(["download", package]))?;
        let files = fs::read_dir(&self.folder)
            .with_context(|| format!("cannot list {}", self.folder.display()))?;
        let file = files
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(&format!("{package}_")) && name.ends_with(".deb")
            })
            .with_context(|| format!("apt-get has not fetched {package}"))?;
        exec::stdout(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(to))?;
        Ok(to.to_owned())
    }
}

/// Of what `apt-cache depends` prints.
fn first_dependency(said: &str) -> Option<&str> {
    said.lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
}

fn only_entry(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    ensure!(
        entries.len() == 1,
        "{} holds {} entries and should hold one kernel's modules",
        folder.display(),
        entries.len()
    );
    entries.into_iter().next().context("no entry")
}

fn program(name: &str) -> anyhow::Result<PathBuf> {
    exec::find_program(name).with_context(|| format!("{name} is not installed"))
}

fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::rename(from, to)
        .with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_what_the_metapackage_depends_on() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-57-amd64\n";
        assert_eq!(first_dependency(said), Some("linux-image-6.1.0-57-amd64"));
        assert_eq!(first_dependency("linux-image-amd64\n"), None);
    }

    #[test]
    fn a_folder_without_its_stamp_is_not_complete() {
        assert!(!is_complete(Path::new("/"), Kernel::V6_1));
    }
}
