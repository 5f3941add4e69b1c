//! The programs that run in the virtual machine, as cargo has built them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{exec, json, progress::Progress, workspace::Workspace};

/// A program, and where it is.
struct Program {
    /// The name of the test's file, or of the binary.
    name: String,
    /// What cargo built.
    file: PathBuf,
    /// Whether it is a test, not a binary that tests start.
    is_test: bool,
}

/// The tests whose files start with these run in the machine; those of the latter nowhere else.
const PREFIXES: [&str; 2] = ["kernel_", "vm_"];
/// Binaries that tests start.
const BINARIES: [&str; 1] = ["neighsteer"];

/// Builds them all, and lays them out for the machines: without their debug information, of which
/// every page would come through an emulated machine's file system. Returns the folder.
///
/// # Errors
/// When something does not compile, or a file cannot be written.
pub(super) fn lay_out(
    workspace: &Workspace,
    progress: &Progress,
    files: &[String],
) -> anyhow::Result<PathBuf> {
    let step = progress.step("building the tests of the virtual machines");
    let share = workspace.target().join("vm/share");
    let mut list = String::new();
    for program in build(workspace, files)? {
        step.detail(&program.name);
        // Where tests look for binaries is told by where they are themselves.
        let below = if program.is_test { "deps" } else { "" };
        strip(&program.file, &share.join(below).join(&program.name))?;
        if program.is_test {
            list.push_str(&program.name);
            list.push('\n');
        }
    }
    let file = share.join("list");
    fs::write(&file, list).with_context(|| format!("cannot write {}", file.display()))?;
    step.done();
    Ok(share)
}

fn build(workspace: &Workspace, files: &[String]) -> anyhow::Result<Vec<Program>> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--locked", "--quiet"]);
    exec::stdout(cargo.args(BINARIES.map(|name| format!("--bin={name}"))))?;
    let mut cargo = workspace.cargo();
    // As the other tiers call it: what they have built is not compiled anew.
    cargo.args([
        "test",
        "--workspace",
        "--locked",
        "--no-run",
        "--quiet",
        "--message-format=json",
    ]);
    let tests: Vec<_> = workspace
        .targets()
        .iter()
        .filter(|target| target.kind == "test" && runs_in_the_machine(&target.name))
        .filter(|target| files.is_empty() || files.contains(&target.name))
        .map(|target| format!("--test={}", target.name))
        .collect();
    // Without any, cargo would take all there are.
    if tests.is_empty() {
        bail!("there is no such test of the virtual machines");
    }
    cargo.args(tests);
    let said = exec::stdout(&mut cargo)?;
    let mut programs: Vec<_> = said.lines().filter_map(of_message).collect();
    for name in BINARIES {
        programs.push(Program {
            name: name.to_owned(),
            file: workspace.target().join("debug").join(name),
            is_test: false,
        });
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

fn runs_in_the_machine(test: &str) -> bool {
    PREFIXES.iter().any(|prefix| test.starts_with(prefix))
}

/// An integration test, of one of cargo's messages.
fn of_message(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = json::member(&message, "target");
    let name = json::text(target, "name");
    let is_test = json::texts(target, "kind") == ["test"] && runs_in_the_machine(name);
    let file = json::text(&message, "executable");
    (is_test && !file.is_empty()).then(|| Program {
        name: name.to_owned(),
        file: PathBuf::from(file),
        is_test: true,
    })
}

/// Copies a program without what only debuggers read.
fn strip(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut strip = Command::new("strip");
    exec::stdout(strip.arg("--strip-debug").arg("-o").arg(to).arg(from)).map(drop)
}
