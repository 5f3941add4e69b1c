//! Programs of the machine that tests cannot do without.

use std::process::Command;

/// Runs a program that must succeed; returns what it printed.
///
/// # Panics
/// When it cannot be run, or fails.
pub fn run(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => panic!(
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => panic!("{program}: {error}"),
    }
}

/// Runs `ip`, which must succeed.
///
/// # Panics
/// When it fails.
pub fn ip(arguments: &[&str]) {
    run("ip", arguments);
}
