//! Where things are: read once from `cargo metadata`, so that CARGO_TARGET_DIR and cargo's own
//! configuration hold.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use serde_json::Value;

use crate::{exec, json};

/// The clone that this xtask was built from.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    targets: Vec<Target>,
}

/// One thing that cargo can build: a library, a binary, an integration test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The package that it belongs to.
    pub(crate) package: String,
    /// Its name, as `--bin` or `--test` takes it.
    pub(crate) name: String,
    /// `lib`, `bin`, `test`, `bench` …
    pub(crate) kind: String,
    /// The package's features without which cargo leaves it out.
    pub(crate) required_features: Vec<String>,
}

impl Workspace {
    /// Asks cargo about the workspace that holds this crate.
    ///
    /// # Errors
    /// When cargo cannot read the workspace.
    pub(crate) fn discover() -> anyhow::Result<Self> {
        let xtask = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = xtask
            .parent()
            .context("xtask lies at the file system's root")?;
        let metadata = metadata(&root.join("Cargo.toml"), &["--no-deps"])?;
        let target = metadata
            .get("target_directory")
            .and_then(Value::as_str)
            .context("cargo metadata names no target directory")?;
        Ok(Self {
            target: PathBuf::from(target),
            targets: targets(&metadata),
            root: root.to_path_buf(),
        })
    }

    /// The top of the clone.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Everything that the workspace's packages can build.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The manifest of the eBPF crate, which is a workspace of its own.
    pub(crate) fn ebpf_manifest(&self) -> PathBuf {
        self.root.join("ebpf/Cargo.toml")
    }

    /// The manifest of the fuzz targets, which are a workspace of their own.
    pub(crate) fn fuzz_manifest(&self) -> PathBuf {
        self.root.join("fuzz/Cargo.toml")
    }

    /// `cargo` of the toolchain that runs this xtask, in the clone's top folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(cargo());
        cargo.current_dir(&self.root);
        cargo
    }
}

/// `cargo metadata` of a manifest.
///
/// # Errors
/// When cargo fails or prints something else than JSON.
pub(crate) fn metadata(manifest: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
    let mut command = Command::new(cargo());
    command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .args(arguments);
    let text = exec::stdout(&mut command)?;
    serde_json::from_str(&text).context("cargo metadata printed no JSON")
}

/// The targets of every package that a `cargo metadata` lists.
pub(crate) fn targets(metadata: &Value) -> Vec<Target> {
    let mut all = Vec::new();
    for package in json::items(metadata, "packages") {
        for target in json::items(package, "targets") {
            all.push(Target {
                package: json::text(package, "name").to_owned(),
                name: json::text(target, "name").to_owned(),
                kind: json::texts(target, "kind").join(","),
                required_features: json::texts(target, "required-features"),
            });
        }
    }
    all
}

fn cargo() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
