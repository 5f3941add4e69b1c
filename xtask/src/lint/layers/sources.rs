//! The source files that the rules are for.

use std::{
    fs,
    path::{Path, PathBuf},
    slice,
};

use anyhow::Context as _;

use super::{
    Fault,
    paths::{Scan, scan},
};

/// A source file that is not only for tests.
pub(super) struct Source {
    /// Its path below the clone's top.
    pub(super) name: String,
    /// The module that it is.
    pub(super) module: Vec<String>,
    /// What it mentions.
    pub(super) scan: Scan,
}

impl Source {
    /// Its faults, with its name before each.
    pub(super) fn named(&self, faults: Vec<Fault>) -> impl Iterator<Item = String> {
        faults
            .into_iter()
            .map(|(line, fault)| format!("{}:{line}: {fault}", self.name))
    }
}

/// `plan/flows.rs` → plan, flows; `plan/mod.rs` → plan; `lib.rs` → nothing.
pub(super) fn module_path(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if matches!(
        parts.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        parts.pop();
    }
    parts
}

/// The sources below a folder of the clone, without those that only tests compile.
///
/// # Errors
/// When one cannot be read.
pub(super) fn sources(root: &Path, folder: &str) -> anyhow::Result<Vec<Source>> {
    let folder = root.join(folder);
    let mut all = Vec::new();
    for file in rust_files(&folder)? {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let scan = scan(&text).with_context(|| format!("{} is not Rust", file.display()))?;
        all.push(Source {
            name: file
                .strip_prefix(root)
                .unwrap_or(&file)
                .display()
                .to_string(),
            module: module_path(file.strip_prefix(&folder).unwrap_or(&file)),
            scan,
        });
    }
    let for_tests: Vec<Vec<String>> = all
        .iter()
        .flat_map(|source| {
            source
                .scan
                .test_modules
                .iter()
                .map(|name| [source.module.as_slice(), slice::from_ref(name)].concat())
        })
        .collect();
    all.retain(|source| {
        !for_tests
            .iter()
            .any(|module| source.module.starts_with(module))
    });
    Ok(all)
}

/// The Rust files below a folder, sorted.
fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("cannot list {}", folder.display()))?
                .path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
