//! The agent of arm64, under QEMU's emulation of programs.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use neighsteer_tests::{corpus, frames::hex};

const QEMU: &str = "qemu-aarch64-static";
/// The C library of arm64, where Debian's cross compiler has it.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// Seconds. It takes one; a program that starts a thread there hangs.
const TIMEOUT: &str = "60";

/// Where `cargo xtask` builds the agent of arm64.
fn binary(target: &Path) -> PathBuf {
    target.join("arm64/aarch64-unknown-linux-gnu/debug/neighsteer")
}

/// The folder that this program was built in: above `debug/deps`.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().to_owned()
}

fn missing(binary: &Path) -> Option<String> {
    if !binary.is_file() {
        return Some(format!(
            "{} is missing: cargo xtask arm64",
            binary.display()
        ));
    }
    Command::new(QEMU)
        .arg("--version")
        .output()
        .err()
        .map(|error| format!("cannot run {QEMU}: {error}; Debian's qemu-user-static brings it"))
}

fn run(command: &mut Command, arguments: &[&str]) -> Output {
    let output = command.args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    output
}

#[test]
fn classify_on_arm64_says_of_the_corpus_what_it_says_here() {
    let emulated = binary(&target());
    if let Some(reason) = missing(&emulated) {
        println!("SKIPPED: {reason}");
        return;
    }
    let native = target().join("debug/neighsteer");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("corpus.hex");
    let (mut lines, mut frames) = (String::new(), 0);
    for entry in corpus::load().unwrap() {
        let frame = entry.case.on_the_wire();
        // Lines of hex have no way to write a frame without bytes.
        if !frame.is_empty() {
            writeln!(lines, "{}", hex(&frame)).unwrap();
            frames += 1;
        }
    }
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let policies: [&[&str]; 3] = [
        &[],
        &[
            "--bridge-mac=02:42:ac:12:00:03",
            "--own-address=172.18.0.3",
            "--own-address=fd00::3",
        ],
        &["--bridge-mac=02:42:ac:12:00:03", "--vlan=5"],
    ];
    for policy in policies {
        for format in ["text", "json"] {
            let arguments = [&["classify", "--output", format, file], policy].concat();
            let here = run(&mut Command::new(&native), &arguments).stdout;
            let mut emulator = Command::new("timeout");
            emulator
                .args([TIMEOUT, QEMU, "-L", LIBRARIES])
                .arg(&emulated);
            let there = run(&mut emulator, &arguments).stdout;
            let lines = here.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, frames, "{arguments:?}");
            assert_eq!(
                String::from_utf8_lossy(&there),
                String::from_utf8_lossy(&here),
                "arm64 is left: {arguments:?}"
            );
        }
    }
}
