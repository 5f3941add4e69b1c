//! Installing Debian packages, as root, without a service being started or enabled by it.

use std::{cell::Cell, os::unix::fs::MetadataExt as _, process::Command};

use anyhow::bail;

use crate::{exec, progress::Progress};

/// Keeps services from starting while apt works, and from being enabled afterwards.
const INSTALL_SCRIPT: &str = include_str!("install.sh");

/// The right to install packages, and whether the package lists are fresh.
pub(crate) struct Apt<'a> {
    progress: &'a Progress,
    updated: Cell<bool>,
}

impl<'a> Apt<'a> {
    /// `None` where this process may not install packages, or the machine has no apt.
    pub(crate) fn allowed(progress: &'a Progress) -> Option<Self> {
        let root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
        let apt = exec::find_program("apt-get").is_some();
        (root && apt).then(|| Self {
            progress,
            updated: Cell::new(false),
        })
    }

    /// Whether the package lists hold a package.
    pub(crate) fn knows(&self, package: &str) -> bool {
        self.update();
        exec::stdout(Command::new("apt-cache").args(["show", "--no-all-versions", package])).is_ok()
    }

    /// Installs packages with what they need, and removes none.
    ///
    /// # Errors
    /// When apt fails; the message ends with what it said.
    pub(crate) fn install(&self, packages: &[String]) -> anyhow::Result<()> {
        self.update();
        let step = self
            .progress
            .step(format!("installing {}", packages.join(" ")));
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", INSTALL_SCRIPT, "install.sh"])
            .args(packages);
        if let Err(error) = exec::watched(command.env("LC_ALL", "C.UTF-8"), &step) {
            let last: Vec<_> = error
                .to_string()
                .lines()
                .skip(1)
                .map(str::to_owned)
                .collect();
            bail!(
                "cannot install {}:\n{}",
                packages.join(" "),
                last.join("\n")
            );
        }
        step.done();
        Ok(())
    }

    /// Fetches the package lists, once. Without a network the old ones may still do, so that a
    /// failure here is only told.
    fn update(&self) {
        if self.updated.replace(true) {
            return;
        }
        let step = self.progress.step("updating the package lists");
        match exec::watched(Command::new("apt-get").arg("update"), &step) {
            Ok(()) => step.done(),
            Err(error) => {
                step.clear();
                eprintln!("warning: {error:#}");
            }
        }
    }
}
