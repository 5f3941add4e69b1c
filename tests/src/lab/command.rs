//! Running the tools of Open vSwitch, OVN and iproute2 to their end.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use super::error::{LabError, Result};

/// Runs a command to its end and returns what it wrote to standard output.
///
/// # Errors
/// When it cannot be started, or ends with another exit code than 0.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    run_with_input(command, "")
}

/// As [`run`], with a text on the command's standard input.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let output = output(command, input)?;
    if !output.status.success() {
        return Err(LabError::Command {
            command: shown(command),
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command to its end, whatever its exit code.
pub(crate) fn output(command: &mut Command, input: &str) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| LabError::Spawn {
            program: program.clone(),
            source,
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that fails early closes its input; its exit code and message say more.
        let _ = stdin.write_all(input.as_bytes());
    }
    child
        .wait_with_output()
        .map_err(LabError::io("wait for", program))
}

/// The command line for an error message, shortened.
fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    if let Some((cut, _)) = text.char_indices().nth(400) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
