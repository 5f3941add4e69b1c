//! What the datapath needs of the kernel.

use std::path::{Path, PathBuf};

use super::report::Report;
use crate::{
    agent::chain,
    cli::agent::HookArg,
    datapath::{bpffs, load, pins},
};

/// The first kernel with TCX.
const TCX: (u32, u32) = (6, 6);

pub(super) fn check(report: &mut Report, bpffs: &Path, datapath: HookArg) {
    let release = nix::sys::utsname::uname()
        .ok()
        .and_then(|name| name.release().to_str().map(str::to_owned))
        .unwrap_or_default();
    kernel(report, &release);
    match load::check_preconditions() {
        _ if matches!(datapath, HookArg::None) => {
            report.ok("datapath", "not wanted: nothing is counted");
        }
        Ok(()) => report.ok(
            "datapath",
            "this process may load programs, the kernel has BTF",
        ),
        Err(error) => report.error(
            "datapath",
            chain(&error),
            "give the capabilities, or run the agent with --datapath none",
        ),
    }
    for (interface, directory) in other_versions(bpffs) {
        report.error(
            "datapath",
            format!(
                "{interface} has the program of another version: {}",
                directory.display()
            ),
            format!("`neighsteer detach {interface}` takes it off, with its counters"),
        );
    }
    match bpffs::is_bpffs(bpffs) {
        true => report.ok("bpffs", format!("mounted at {}", bpffs.display())),
        false => report.warn(
            "bpffs",
            format!("none at {}", bpffs.display()),
            "the agent mounts one where it may; in a pod mount the node's, or pins end with the pod",
        ),
    }
}

/// What another version left attached, as far as it can be listed.
fn other_versions(bpffs: &Path) -> Vec<(String, PathBuf)> {
    let interfaces = pins::interfaces_of_every_version(bpffs).unwrap_or_default();
    let others = interfaces.into_iter().filter_map(|interface| {
        let directory = pins::other_version(bpffs, &interface).ok()??;
        Some((interface, directory))
    });
    others.collect()
}

pub(super) fn kernel(report: &mut Report, release: &str) {
    match version(release) {
        Some(version) if version >= TCX => report.ok("kernel", format!("{release}: TCX")),
        Some(_) => report.ok("kernel", format!("{release}: clsact instead of TCX")),
        None => report.warn(
            "kernel",
            format!("its release is {release:?}"),
            "nothing; whether it has TCX is found out when the program is attached",
        ),
    }
}

/// Major and minor of `6.1.0-18-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|it: char| !it.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
