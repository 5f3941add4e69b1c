//! bpf-linker, built against the LLVM of the compiler whose code it links, in the workspace's own
//! target folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use serde_json::Value;

use crate::{compiler::Compiler, exec, json, progress::Progress, workspace::Workspace};

/// The release of bpf-linker that is known to work.
pub(crate) const VERSION: &str = "0.13.0";

/// Where bpf-linker is, if it is there and was built against this LLVM major.
pub(crate) fn find(workspace: &Workspace, llvm: u32) -> Option<PathBuf> {
    let folder = folder(workspace);
    let program = folder.join("bin/bpf-linker");
    let installed = fs::read_to_string(folder.join(".crates2.json")).ok()?;
    let fits = is_installed(&installed, &feature(llvm))?;
    // An upgrade of LLVM may have taken the library away.
    let runs = exec::stdout(Command::new(&program).arg("--version")).is_ok();
    (fits && runs).then_some(program)
}

/// Builds bpf-linker against the LLVM at `prefix`.
///
/// # Errors
/// When the build fails.
pub(crate) fn install(
    workspace: &Workspace,
    progress: &Progress,
    compiler: &Compiler,
    prefix: &Path,
) -> anyhow::Result<PathBuf> {
    let folder = folder(workspace);
    let step = progress.step(format!(
        "building bpf-linker {VERSION} against LLVM {}",
        compiler.llvm
    ));
    let mut cargo = workspace.cargo();
    // LLVM does the work: a debug build links as fast, and is there in half the time.
    cargo
        .args([
            "install",
            "bpf-linker",
            "--version",
            VERSION,
            "--locked",
            "--force",
            "--debug",
        ])
        .args([
            "--no-default-features",
            "--features",
            &feature(compiler.llvm),
        ])
        .arg("--root")
        .arg(&folder)
        .env("LLVM_PREFIX", prefix)
        .env("CARGO_TARGET_DIR", folder.join("build"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    exec::watched(&mut cargo, &step)?;
    step.done();
    // Some hundred megabytes that nothing will read again.
    fs::remove_dir_all(folder.join("build"))
        .context("cannot remove what building bpf-linker left")?;
    find(workspace, compiler.llvm).context("bpf-linker was built, but does not run")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("tools")
}

fn feature(llvm: u32) -> String {
    format!("llvm-{llvm}")
}

/// Whether cargo's list of installed packages holds our release with this feature; `None` when
/// the list is unreadable.
fn is_installed(list: &str, feature: &str) -> Option<bool> {
    let list: Value = serde_json::from_str(list).ok()?;
    let installs = json::member(&list, "installs").as_object()?;
    let ours = format!("bpf-linker {VERSION} ");
    Some(installs.iter().any(|(package, how)| {
        package.starts_with(&ours) && json::items(how, "features").any(|has| has == feature)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"installs":{"bpf-linker 0.13.0 (registry+index)":
        {"features":["llvm-22"],"profile":"release"}}}"#;

    #[test]
    fn a_linker_built_against_the_same_llvm_is_kept() {
        assert_eq!(is_installed(LIST, "llvm-22"), Some(true));
    }

    #[test]
    fn a_linker_built_against_another_llvm_is_built_again() {
        assert_eq!(is_installed(LIST, "llvm-23"), Some(false));
    }

    #[test]
    fn an_unreadable_list_counts_as_nothing_installed() {
        assert_eq!(is_installed("", "llvm-22"), None);
    }
}
