//! Running other programs: what failed is named together with the end of what it said.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, bail};

use crate::progress::Step;

/// How much of a failed program's output is shown.
const TAIL_LINES: usize = 30;

/// Folders of system programs that an unprivileged user's PATH often lacks.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The path of a program, looked up as a shell run by root would.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Runs a program and returns what it wrote to standard output.
///
/// # Errors
/// When it cannot be started or fails; the message ends with its standard error.
pub(crate) fn stdout(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} failed ({}): {}",
            shown(command),
            output.status,
            said.trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed text that is not UTF-8", shown(command)))
}

/// Runs a program that talks to the terminal itself.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn inherit(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    check(command, status, &VecDeque::new())
}

/// Runs a program behind a progress step, which shows its latest line.
///
/// # Errors
/// When it cannot be started or fails; the message holds the last lines that it printed.
pub(crate) fn watched(command: &mut Command, step: &Step) -> anyhow::Result<()> {
    let mut tail = VecDeque::with_capacity(TAIL_LINES);
    let status = each_line(command, |line| {
        step.detail(line);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line.to_owned());
    })?;
    check(command, status, &tail)
}

/// Runs a program and hands over each line of its standard output and standard error, as they
/// come.
///
/// # Errors
/// When it cannot be started or its output cannot be read. A failure of the program is in the
/// status.
pub(crate) fn each_line(
    command: &mut Command,
    mut line: impl FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("cannot copy a pipe's end")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    // The command keeps its copies of the pipe's writing end: without them the pipe would never
    // end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader
            .read_until(b'\n', &mut bytes)
            .with_context(|| format!("cannot read what {} prints", shown(command)))?;
        if read == 0 {
            break;
        }
        line(String::from_utf8_lossy(&bytes).trim_end());
    }
    child
        .wait()
        .with_context(|| format!("cannot wait for {}", shown(command)))
}

fn check(command: &Command, status: ExitStatus, tail: &VecDeque<String>) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    let mut message = format!("{} failed ({status})", shown(command));
    for line in tail {
        message.push_str("\n  ");
        message.push_str(line);
    }
    bail!(message)
}

/// The command as somebody would type it, but for whole scripts.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        text.push(' ');
        text.push_str(if argument.contains('\n') {
            "…"
        } else {
            &argument
        });
    }
    text
}
