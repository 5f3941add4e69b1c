//! The module rules that docs/architecture.md states: who may use whom, what is pure, and that the
//! protocol clients know nothing of OVN.

mod paths;
mod rules;
mod sources;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fs, path::Path};

use anyhow::Context as _;

use self::{
    paths::Scan,
    rules::Rules,
    sources::{Source, sources},
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

/// The one module of `common` that may hold unsafe code: the types of the map.
const MAP_TYPES: &str = "abi";

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

    let userspace = sources(root, "userspace/src")?;
    let names = Names::of(&userspace);
    for source in &userspace {
        faults.extend(source.named(userspace_faults(
            &rules,
            &names,
            &source.module,
            &source.scan,
        )));
    }
    for source in &sources(root, "common/src")? {
        faults.extend(source.named(common_faults(&source.module, &source.scan)));
    }
    let crate_root = root.join("common/src/lib.rs");
    let text = fs::read_to_string(&crate_root).context("cannot read common's lib.rs")?;
    if !text.contains("#![no_std]") {
        faults.push("common/src/lib.rs: common is no longer no_std".to_owned());
    }
    Ok(faults)
}

/// What the modules publish under shorter names: `pub use value::Uuid` in `ovsdb` makes
/// `ovsdb::Uuid` of `ovsdb::value::Uuid`.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn of(sources: &[Source]) -> Self {
        let mut names = HashMap::new();
        for source in sources {
            let module = source.module.join("::");
            for path in &source.scan.paths {
                if let [_, .., last] = path.segments.as_slice() {
                    names.insert(
                        format!("{module}::{last}"),
                        format!("{module}::{}", path.segments.join("::")),
                    );
                }
            }
        }
        Self(names)
    }

    /// The path, or the longer one that its first two parts stand for.
    fn resolve(&self, path: &[String]) -> String {
        let short = path.iter().take(2).cloned().collect::<Vec<_>>().join("::");
        self.0
            .get(&short)
            .cloned()
            .unwrap_or_else(|| path.join("::"))
    }
}

/// A fault and its line.
type Fault = (usize, String);

fn userspace_faults(rules: &Rules, names: &Names, module: &[String], scan: &Scan) -> Vec<Fault> {
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
        let used = internal(module, &path.segments, path.depth);
        let Some(head) = used.first() else { continue };
        let known = rules.part(head).is_some() || head == "common";
        if head != top && known && !part.may_use.allows(&names.resolve(&used)) {
            faults.push((
                path.line,
                format!(
                    "`{top}` may not use `{}` (docs/architecture.md)",
                    used.join("::")
                ),
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

fn common_faults(module: &[String], scan: &Scan) -> Vec<Fault> {
    let map_types = module == [MAP_TYPES];
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
                format!("unsafe code of common belongs into its module {MAP_TYPES}"),
            )
        });
    heads.chain(unsafe_code).collect()
}

/// The path from the top of the crate to what a path of a file leads to; empty for what is not ours.
fn internal(module: &[String], segments: &[String], depth: usize) -> Vec<String> {
    let ours = |head: &[String], rest: &[String]| [head, rest].concat();
    let supers = segments
        .iter()
        .take_while(|segment| *segment == "super")
        .count();
    match segments {
        [head, rest @ ..] if head == "crate" => rest.to_vec(),
        [head, rest @ ..] if head == "neighsteer_common" => ours(&["common".to_owned()], rest),
        _ if supers > depth => {
            let stay = module.len().saturating_sub(supers - depth);
            ours(
                module.get(..stay).unwrap_or_default(),
                segments.get(supers..).unwrap_or_default(),
            )
        }
        _ => Vec::new(),
    }
}
