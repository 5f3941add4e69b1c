//! What building for arm64 takes, and running what was built.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use super::{debian::Apt, requirements::DISTRIBUTION_COMPILER};
use crate::{
    compiler::{self, Compiler},
    exec,
    progress::Progress,
};

/// The target of BlueField DPUs and of arm64 nodes.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Links for it, and compiles C for it.
pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Something that must be there.
struct Requirement {
    /// Its name, for people.
    what: &'static str,
    /// The Debian package that brings it.
    package: &'static str,
    /// Whether it is there.
    is_met: fn() -> bool,
}

const REQUIREMENTS: [Requirement; 3] = [
    Requirement {
        what: "a C compiler for arm64",
        package: "gcc-aarch64-linux-gnu",
        is_met: || exec::find_program(LINKER).is_some(),
    },
    Requirement {
        what: "the C library for arm64",
        package: "libc6-dev-arm64-cross",
        is_met: || Path::new("/usr/aarch64-linux-gnu/lib/libc.so.6").exists(),
    },
    Requirement {
        what: "QEMU for programs of arm64",
        package: "qemu-user-static",
        is_met: || exec::find_program("qemu-aarch64-static").is_some(),
    },
];

/// Debian's standard library for arm64 that matches its compiler.
const DISTRIBUTION_LIBRARY: &str = "libstd-rust-web-dev:arm64";

/// The compiler that has arm64's standard library, the machine made ready for it.
///
/// # Errors
/// Where something is missing and may not or cannot be installed: one line.
pub(crate) fn ensure(progress: &Progress) -> anyhow::Result<Compiler> {
    let lacking = match look() {
        Ok(compiler) => return Ok(compiler),
        Err(lacking) => lacking,
    };
    let Some(apt) = Apt::allowed(progress) else {
        bail!("{}", lacking.describe());
    };
    // The standard library is a package of the other architecture.
    exec::stdout(Command::new("dpkg").args(["--add-architecture", "arm64"]))
        .context("cannot let apt install packages of arm64")?;
    apt.install(&lacking.packages)?;
    look().map_err(|lacking| {
        anyhow::anyhow!("after installing packages still {}", lacking.describe())
    })
}

/// What a machine lacks.
struct Lacking {
    what: Vec<&'static str>,
    packages: Vec<String>,
}

impl Lacking {
    fn describe(&self) -> String {
        format!(
            "missing: {}; as root on Debian 12: dpkg --add-architecture arm64 && apt-get update && \
             apt-get install {}",
            self.what.join(", "),
            self.packages.join(" ")
        )
    }
}

fn look() -> Result<Compiler, Lacking> {
    let (compilers, _) = compiler::find();
    let ready = compilers.iter().find(|compiler| has_library(compiler));
    let mut lacking = Lacking {
        what: Vec::new(),
        packages: Vec::new(),
    };
    for requirement in REQUIREMENTS {
        if !(requirement.is_met)() {
            lacking.what.push(requirement.what);
            lacking.packages.push(requirement.package.to_owned());
        }
    }
    if ready.is_none() {
        lacking.what.push("Rust's standard library for arm64");
        if !compilers.iter().any(Compiler::is_distributions) {
            let compiler = DISTRIBUTION_COMPILER.map(str::to_owned);
            lacking.packages.extend(compiler);
        }
        lacking.packages.push(DISTRIBUTION_LIBRARY.to_owned());
    }
    match ready {
        Some(compiler) if lacking.what.is_empty() => Ok(compiler.clone()),
        _ => Err(lacking),
    }
}

/// Whether a compiler has the standard library of [`TARGET`].
fn has_library(compiler: &Compiler) -> bool {
    let printed = exec::stdout(Command::new(&compiler.rustc).args([
        "--print=target-libdir",
        "--target",
        TARGET,
    ]));
    let folder = PathBuf::from(printed.unwrap_or_default().trim());
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("libstd-")
        })
    })
}
