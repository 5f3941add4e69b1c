//! The `neighsteer` binary.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    neighsteer::cli::main()
}
