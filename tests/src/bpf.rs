//! What tests of the datapath need of the machine and of the build.

use std::path::{Path, PathBuf};

/// Whether this process can load BPF programs here, or why not.
///
/// # Errors
/// The reason, for a `SKIPPED:` line.
pub fn available() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("this test needs root".to_owned());
    }
    aya::programs::loaded_programs()
        .next()
        .transpose()
        .map_err(|error| format!("the kernel has no BPF: {error}"))?;
    if aya::features().btf().is_none() {
        return Err("the kernel takes no BTF".to_owned());
    }
    Ok(())
}

/// An object that `cargo xtask build-ebpf` makes.
#[must_use]
pub fn object(name: &str) -> PathBuf {
    workspace().join("target/bpf").join(name)
}

/// The `neighsteer` binary of this test's own build, if it is built.
#[must_use]
pub fn binary() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    // <target>/<profile>/deps/<test>
    let binary = test.parent()?.parent()?.join("neighsteer");
    binary.exists().then_some(binary)
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}
