//! What the datapath needs of the kernel.

use std::path::Path;

use super::report::Report;
use crate::{
    agent::chain,
    datapath::{bpffs, load},
};

/// The first kernel with TCX.
const TCX: (u32, u32) = (6, 6);

pub(super) fn check(report: &mut Report, bpffs: &Path) {
    let release = nix::sys::utsname::uname()
        .ok()
        .and_then(|name| name.release().to_str().map(str::to_owned))
        .unwrap_or_default();
    kernel(report, &release);
    match load::check_preconditions() {
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
    match bpffs::is_bpffs(bpffs) {
        true => report.ok("bpffs", format!("mounted at {}", bpffs.display())),
        false => report.warn(
            "bpffs",
            format!("none at {}", bpffs.display()),
            "the agent mounts one where it may; in a pod mount the node's, or pins end with the pod",
        ),
    }
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
