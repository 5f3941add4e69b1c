//! The module rules that docs/architecture.md states: who may use whom, what is pure, and that the
//! protocol clients know nothing of OVN.

mod paths;
mod rules;
#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use self::{
    paths::{Scan, scan},
    rules::Rules,
};

/// What pure code must not touch: tasks, sockets, files, the clock, the environment, randomness,
/// the kernel, the terminal, and `tracing` above its lowest level.
const IMPURE: [&str; 25] = [
    "tokio",
    "nix",
    "aya",
    "fastrand",
    "anstream",
    "indicatif",
    "std::env",
    "std::fs",
    "std::process",
    "std::thread",
    "std::os",
    "std::io",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "tracing::debug",
    "tracing::info",
    "tracing::warn",
    "tracing::error",
    "uuid::Uuid::new_v4",
    "Uuid::new_v4",
    "println",
    "eprintln",
    "print",
    "eprint",
];

/// The one file of `common` that may hold unsafe code: the types of the map.
const MAP_TYPES: &str = "abi.rs";

/// Checks every module; returns the faults.
///
/// # Errors
/// When the rules or a source file cannot be read.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = root.join("docs/architecture.md");
    let text =
        fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let rules = Rules::parse(&text)?;
    let mut faults = Vec::new();
    let source = root.join("userspace/src");
    for file in rust_files(&source)? {
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let scan = read(&file)?;
        let module = module_path(file.strip_prefix(&source).unwrap_or(&file));
        faults.extend(
            userspace_faults(&rules, &module, &scan)
                .into_iter()
                .map(|(line, fault)| format!("{name}:{line}: {fault}")),
        );
    }
    let common = root.join("common/src");
    for file in rust_files(&common)? {
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        let scan = read(&file)?;
        faults.extend(
            common_faults(&file, &scan)
                .into_iter()
                .map(|(line, fault)| format!("{name}:{line}: {fault}")),
        );
    }
    let crate_root =
        fs::read_to_string(common.join("lib.rs")).context("cannot read common's lib.rs")?;
    if !crate_root.contains("#![no_std]") {
        faults.push("common/src/lib.rs: common is no longer no_std".to_owned());
    }
    Ok(faults)
}

/// A fault and its line.
type Fault = (usize, String);

fn userspace_faults(rules: &Rules, module: &[String], scan: &Scan) -> Vec<Fault> {
    let Some(top) = module.first() else {
        // lib.rs and main.rs put the parts together.
        return Vec::new();
    };
    let mut faults = Vec::new();
    let Some(part) = rules.part(top) else {
        return vec![(
            1,
            format!("docs/architecture.md does not say what the module `{top}` may use"),
        )];
    };
    for path in &scan.paths {
        let Some(used) = internal(module, &path.segments, path.depth) else {
            continue;
        };
        let known = rules.part(&used).is_some() || used == "common";
        if used != *top && known && !part.may_use.allows(&used) {
            faults.push((
                path.line,
                format!("`{top}` may not use `{used}` (docs/architecture.md)"),
            ));
        }
    }
    if part.pure {
        faults.extend(impure(top, scan));
    }
    if part.knows_no_ovn {
        let words = scan
            .words
            .iter()
            .filter(|word| word.text.to_lowercase().contains("ovn"));
        faults.extend(words.map(|word| {
            (
                word.line,
                format!("`{top}` knows nothing of OVN, but says `{}`", word.text),
            )
        }));
    }
    // `use crate::agent::{Driver, Task}` is one fault.
    faults.dedup();
    faults
}

fn impure(top: &str, scan: &Scan) -> Vec<Fault> {
    let of_paths = scan.paths.iter().filter_map(|path| {
        let text = path.segments.join("::");
        let listed = IMPURE
            .iter()
            .any(|bad| text == *bad || text.starts_with(&format!("{bad}::")));
        let clock = text.ends_with("Instant::now") || text.ends_with("SystemTime::now");
        (listed || clock).then(|| (path.line, format!("`{top}` is pure, but uses `{text}`")))
    });
    let of_methods = scan
        .methods
        .iter()
        .filter(|method| method.text == "elapsed")
        .map(|method| {
            (
                method.line,
                format!("`{top}` is pure, but reads the clock with `elapsed`"),
            )
        });
    of_paths.chain(of_methods).collect()
}

fn common_faults(file: &Path, scan: &Scan) -> Vec<Fault> {
    let map_types = file.ends_with(MAP_TYPES);
    let heads = scan.paths.iter().filter_map(|path| {
        let head = path.segments.first()?;
        let std = path.segments.len() > 1 && (head == "std" || head == "alloc");
        std.then(|| {
            (
                path.line,
                format!(
                    "common is no_std without alloc, but uses `{}`",
                    path.segments.join("::")
                ),
            )
        })
    });
    let unsafe_code = scan
        .words
        .iter()
        .filter(|word| word.text == "unsafe" && !map_types)
        .map(|word| {
            (
                word.line,
                format!("unsafe code of common belongs into {MAP_TYPES}"),
            )
        });
    heads.chain(unsafe_code).collect()
}

/// The module of this workspace that a path leads to from a file of userspace.
fn internal(module: &[String], segments: &[String], depth: usize) -> Option<String> {
    let head = segments.first()?;
    match head.as_str() {
        "crate" => segments.get(1).cloned(),
        "neighsteer_common" => Some("common".to_owned()),
        "super" => {
            let supers = segments
                .iter()
                .take_while(|segment| *segment == "super")
                .count();
            let above = supers.checked_sub(depth)?;
            let stay = module.len().checked_sub(above)?;
            match module.get(..stay)?.first() {
                Some(own) => Some(own.clone()),
                None => segments.get(supers).cloned(),
            }
        }
        _ => None,
    }
}

/// `plan/flows.rs` → plan, flows; `plan/mod.rs` → plan; `lib.rs` → nothing.
fn module_path(file: &Path) -> Vec<String> {
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

/// The Rust files below a folder, sorted, without those that hold only tests.
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
            if path.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
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

fn read(file: &Path) -> anyhow::Result<Scan> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    scan(&text).with_context(|| format!("{} is not Rust", file.display()))
}
