//! The compiler of the eBPF crate: it needs the source of `core`, and an LLVM that bpf-linker
//! can be built against.

use std::{
    env, fmt, iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use crate::exec;

/// The LLVM majors that bpf-linker [`crate::setup::linker::VERSION`] has a feature for.
const LINKABLE_LLVM: std::ops::RangeInclusive<u32> = 21..=23;

/// Where distributions install.
const DISTRIBUTION: &str = "/usr";

/// A matched `rustc`, `cargo` and source of `core`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Where it comes from, for people.
    pub(crate) origin: String,
    /// The compiler proper.
    pub(crate) rustc: PathBuf,
    /// The cargo that belongs to it.
    pub(crate) cargo: PathBuf,
    /// The major version of its LLVM.
    pub(crate) llvm: u32,
}

impl Compiler {
    /// Whether it is the one of the distribution's packages.
    pub(crate) fn is_distributions(&self) -> bool {
        self.rustc.starts_with(DISTRIBUTION)
    }

    /// Whether clippy was installed with it.
    pub(crate) fn has_clippy(&self) -> bool {
        ["cargo-clippy", "clippy-driver"]
            .iter()
            .all(|program| self.rustc.with_file_name(program).is_file())
    }

    /// Its cargo, which builds `core` from source with it.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.env("RUSTC", &self.rustc);
        // `-Z build-std` is for nightly compilers, or for those told to behave like one.
        cargo.env("RUSTC_BOOTSTRAP", "1");
        // `cargo clippy` looks for its other half in PATH, where rustup's would be found.
        if let Some(folder) = self.cargo.parent() {
            let path = env::var_os("PATH").unwrap_or_default();
            let folders = iter::once(folder.to_path_buf()).chain(env::split_paths(&path));
            if let Ok(path) = env::join_paths(folders) {
                cargo.env("PATH", path);
            }
        }
        // What the toolchain that runs this xtask has set for its own.
        for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTFLAGS", "RUSTDOC"] {
            cargo.env_remove(variable);
        }
        cargo
    }
}

/// Why a compiler was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    origin: String,
    reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.origin, self.reason)
    }
}

/// The compilers that can build the eBPF crate, best first: rustup toolchains with `rust-src`
/// (nightly ones first), then the distribution's; and why others were passed over.
pub(crate) fn find() -> (Vec<Compiler>, Vec<Rejected>) {
    let mut compilers = Vec::new();
    let mut rejected = Vec::new();
    for (origin, folder) in candidates() {
        match inspect(&origin, &folder) {
            Ok(compiler) => compilers.push(compiler),
            Err(reason) => rejected.push(Rejected { origin, reason }),
        }
    }
    (compilers, rejected)
}

/// Where compilers may be: a name for people, and the folder above `bin`.
fn candidates() -> Vec<(String, PathBuf)> {
    let listed = exec::stdout(Command::new("rustup").args(["toolchain", "list", "-v"]));
    let mut all = rustup_toolchains(&listed.unwrap_or_default());
    let distribution = PathBuf::from(DISTRIBUTION);
    if distribution.join("bin/rustc").is_file() {
        all.push(("the distribution's rustc".to_owned(), distribution));
    }
    all
}

/// The toolchains that `rustup toolchain list -v` prints, nightly ones first.
fn rustup_toolchains(listed: &str) -> Vec<(String, PathBuf)> {
    let mut all: Vec<_> = listed
        .lines()
        .filter_map(|line| {
            let name = line.split_whitespace().next()?;
            let path = line.get(line.find('/')?..)?;
            Some((format!("rustup's {name}"), PathBuf::from(path.trim())))
        })
        .collect();
    all.sort_by_key(|(name, _)| !name.contains("nightly"));
    all
}

fn inspect(origin: &str, folder: &Path) -> Result<Compiler, String> {
    let rustc = folder.join("bin/rustc");
    let cargo = folder.join("bin/cargo");
    if !cargo.is_file() {
        return Err("has no cargo beside it".to_owned());
    }
    let ask = |argument: &str| {
        exec::stdout(Command::new(&rustc).arg(argument))
            .map_err(|error| format!("is broken: {error:#}"))
    };
    let sysroot = ask("--print=sysroot")?;
    let core = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/Cargo.toml");
    if !core.is_file() {
        return Err("lacks rust-src".to_owned());
    }
    let llvm = llvm_major(&ask("-vV")?).map_err(|error| format!("{error:#}"))?;
    if !LINKABLE_LLVM.contains(&llvm) {
        return Err(format!(
            "uses LLVM {llvm}; bpf-linker {} links {} to {}",
            crate::setup::linker::VERSION,
            LINKABLE_LLVM.start(),
            LINKABLE_LLVM.end(),
        ));
    }
    Ok(Compiler {
        origin: origin.to_owned(),
        rustc,
        cargo,
        llvm,
    })
}

/// The LLVM major of `rustc -vV`.
fn llvm_major(version: &str) -> anyhow::Result<u32> {
    version
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .and_then(|text| text.split('.').next())
        .and_then(|major| major.parse().ok())
        .context("does not say which LLVM it uses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nightly_toolchains_come_before_stable_ones() {
        let listed = "stable-x86_64-unknown-linux-gnu (active, default)\t/opt/.rustup/toolchains/stable\n\
                      nightly-x86_64-unknown-linux-gnu /opt/my toolchains/nightly\n";
        assert_eq!(
            rustup_toolchains(listed),
            [
                (
                    "rustup's nightly-x86_64-unknown-linux-gnu".to_owned(),
                    PathBuf::from("/opt/my toolchains/nightly")
                ),
                (
                    "rustup's stable-x86_64-unknown-linux-gnu".to_owned(),
                    PathBuf::from("/opt/.rustup/toolchains/stable")
                ),
            ]
        );
    }

    #[test]
    fn a_machine_without_toolchains_lists_none() {
        assert_eq!(rustup_toolchains("no installed toolchains\n"), []);
    }

    #[test]
    fn the_llvm_major_is_read_from_the_version_text() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25)\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.8\n";
        assert_eq!(llvm_major(text).unwrap(), 22);
        assert!(llvm_major("rustc 1.96.0\n").is_err());
    }
}
