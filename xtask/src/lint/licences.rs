//! The licence of every dependency, against the list in deny.toml. cargo-deny reads the same list;
//! this check needs nothing installed.

use std::{fs, path::Path};

use anyhow::Context as _;
use spdx::{Expression, ParseMode};

use crate::{
    json,
    workspace::{self, Workspace},
};

/// Checks what the workspace, the eBPF crate and the fuzz targets are built from; returns the faults.
///
/// # Errors
/// When deny.toml or the dependencies cannot be read.
pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let deny = workspace.root().join("deny.toml");
    let text =
        fs::read_to_string(&deny).with_context(|| format!("cannot read {}", deny.display()))?;
    let policy: toml::Table = text.parse().context("deny.toml is not TOML")?;
    let targets = strings(&policy, "graph", "targets");
    let allowed = strings(&policy, "licenses", "allow");

    let mut arguments = vec!["--locked".to_owned()];
    for target in &targets {
        arguments.push("--filter-platform".to_owned());
        arguments.push(target.clone());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut faults = Vec::new();
    for manifest in [
        workspace.root().join("Cargo.toml"),
        workspace.ebpf_manifest(),
        workspace.root().join("fuzz/Cargo.toml"),
    ] {
        faults.extend(faults_of(&manifest, &arguments, &allowed)?);
    }
    faults.sort();
    faults.dedup();
    Ok(faults)
}

fn faults_of(
    manifest: &Path,
    arguments: &[&str],
    allowed: &[String],
) -> anyhow::Result<Vec<String>> {
    let metadata = workspace::metadata(manifest, arguments)?;
    // `packages` lists what some other platform would need too; the graph does not.
    let graph = json::member(&metadata, "resolve");
    let nodes: Vec<&str> = json::items(graph, "nodes")
        .map(|node| json::text(node, "id"))
        .collect();
    Ok(json::items(&metadata, "packages")
        .filter(|package| {
            !json::member(package, "source").is_null() && nodes.contains(&json::text(package, "id"))
        })
        .filter_map(|package| {
            let fault = fault(json::member(package, "license").as_str(), allowed)?;
            Some(format!(
                "{} {}: {fault}",
                json::text(package, "name"),
                json::text(package, "version")
            ))
        })
        .collect())
}

/// What is wrong with a package's licence, if anything is.
fn fault(licence: Option<&str>, allowed: &[String]) -> Option<String> {
    let Some(licence) = licence else {
        return Some("names no licence".to_owned());
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) => {
            let fits =
                expression.evaluate(|one| allowed.iter().any(|text| *text == one.to_string()));
            (!fits).then(|| format!("{licence} is not allowed by deny.toml"))
        }
        Err(error) => Some(format!("{licence} is no SPDX expression: {}", error.reason)),
    }
}

fn strings(table: &toml::Table, section: &str, key: &str) -> Vec<String> {
    table
        .get(section)
        .and_then(|section| section.get(key)?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<String> {
        ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn one_allowed_alternative_is_enough() {
        for licence in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(fault(Some(licence), &allowed()), None, "{licence}");
        }
    }

    #[test]
    fn every_part_of_a_conjunction_must_be_allowed() {
        assert!(fault(Some("MIT AND GPL-3.0-only"), &allowed()).is_some());
        assert!(fault(Some("(MIT OR Apache-2.0) AND Unicode-3.0"), &allowed()).is_some());
    }

    #[test]
    fn a_package_without_a_readable_licence_is_a_fault() {
        assert!(fault(None, &allowed()).is_some());
        assert!(fault(Some("see LICENSE"), &allowed()).is_some());
    }
}
