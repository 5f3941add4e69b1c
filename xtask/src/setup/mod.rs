//! `setup`: installs what is missing or, where it may not, names it.

mod archive;
pub(crate) mod cross;
mod debian;
pub(crate) mod kernels;
pub(crate) mod linker;
mod requirements;
pub(crate) mod tree;

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, bail};

use self::{
    debian::Apt,
    requirements::{
        DISTRIBUTION_CLIPPY, DISTRIBUTION_COMPILER, llvm_packages, llvm_prefix, missing,
    },
};
use crate::{
    compiler::{self, Compiler, Rejected},
    progress::Progress,
    workspace::Workspace,
};

pub(crate) use self::requirements::Scope;

/// Arguments of `setup`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install nothing: name what is missing, and fail if anything is
    #[arg(long, visible_alias = "no-install")]
    check: bool,
}

/// What the eBPF crate is built with.
pub(crate) struct Toolchain {
    /// The compiler and its cargo.
    pub(crate) compiler: Compiler,
    /// The path of bpf-linker.
    pub(crate) linker: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// When something is missing and may not or cannot be installed.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    args: &Args,
) -> anyhow::Result<ExitCode> {
    let toolchain = if args.check {
        check(workspace)?
    } else {
        let toolchain = ensure(workspace, progress, Scope::Everything)?;
        tree::ensure(workspace, progress)?;
        for kernel in kernels::Kernel::ALL {
            kernels::ensure(workspace, progress, kernel)?;
        }
        toolchain
    };
    let Toolchain { compiler, linker } = toolchain;
    eprintln!(
        "✓ everything is there: eBPF is compiled by {} (LLVM {}) and linked by {}",
        compiler.origin,
        compiler.llvm,
        linker
            .strip_prefix(workspace.root())
            .unwrap_or(&linker)
            .display(),
    );
    Ok(ExitCode::SUCCESS)
}

/// Makes the machine ready for a scope; says nothing when it is.
///
/// # Errors
/// When something is missing and may not or cannot be installed.
pub(crate) fn ensure(
    workspace: &Workspace,
    progress: &Progress,
    scope: Scope,
) -> anyhow::Result<Toolchain> {
    let (compiler, prefix) = match look(scope) {
        Ok(found) => found,
        Err(lacking) => match Apt::allowed(progress) {
            Some(apt) => lacking.install(&apt, scope)?,
            None => bail!("{}", lacking.describe()),
        },
    };
    let linker = match linker::find(workspace, compiler.llvm) {
        Some(linker) => linker,
        None => linker::install(workspace, progress, &compiler, &prefix)?,
    };
    Ok(Toolchain { compiler, linker })
}

/// The `cargo clippy` that belongs to the eBPF crate's compiler.
///
/// # Errors
/// When it is missing and may not or cannot be installed.
pub(crate) fn clippy(progress: &Progress, compiler: &Compiler) -> anyhow::Result<Command> {
    if !compiler.has_clippy() {
        match Apt::allowed(progress) {
            Some(apt) if compiler.is_distributions() => {
                apt.install(&[DISTRIBUTION_CLIPPY.to_owned()])?
            }
            _ => bail!("missing: the clippy of {}", compiler.origin),
        }
    }
    let mut cargo = compiler.cargo();
    cargo.arg("clippy");
    Ok(cargo)
}

/// Looks whether everything is there.
fn check(workspace: &Workspace) -> anyhow::Result<Toolchain> {
    let (compiler, _) =
        look(Scope::Everything).map_err(|lacking| anyhow::anyhow!(lacking.describe()))?;
    let linker = linker::find(workspace, compiler.llvm).with_context(|| {
        format!(
            "missing: bpf-linker {} for LLVM {}; `cargo xtask setup` builds it",
            linker::VERSION,
            compiler.llvm
        )
    })?;
    if !tree::is_there(workspace) {
        bail!(tree::missing());
    }
    if !kernels::are_there(workspace) {
        bail!(kernels::missing());
    }
    Ok(Toolchain { compiler, linker })
}

/// What a machine lacks.
struct Lacking {
    what: Vec<String>,
    packages: Vec<String>,
    compilers: Vec<Compiler>,
    rejected: Vec<Rejected>,
}

/// The first compiler whose LLVM is installed, with that LLVM's folder, if nothing else lacks
/// either.
fn look(scope: Scope) -> Result<(Compiler, PathBuf), Lacking> {
    let (compilers, rejected) = compiler::find();
    let ready = first_ready(&compilers);
    let mut what = Vec::new();
    let mut packages = Vec::new();
    for requirement in missing(scope) {
        what.push(requirement.what.to_owned());
        packages.extend(requirement.packages.iter().map(ToString::to_string));
    }
    match ready {
        Some(found) if what.is_empty() => Ok(found),
        _ => Err(Lacking {
            what,
            packages,
            compilers,
            rejected,
        }),
    }
}

fn first_ready(compilers: &[Compiler]) -> Option<(Compiler, PathBuf)> {
    compilers
        .iter()
        .find_map(|compiler| Some((compiler.clone(), llvm_prefix(compiler.llvm)?)))
}

impl Lacking {
    /// One line: what is missing and how to get it.
    fn describe(&self) -> String {
        let mut what = self.what.clone();
        let mut packages = self.packages.clone();
        let mut hints = String::new();
        match self.compilers.first() {
            Some(_) if first_ready(&self.compilers).is_some() => {}
            Some(compiler) => {
                what.push(format!("LLVM {} with its headers", compiler.llvm));
                packages.extend(llvm_packages(compiler.llvm));
            }
            None => {
                what.push(format!("a compiler for the eBPF crate{}", self.reasons()));
                packages.extend(DISTRIBUTION_COMPILER.map(str::to_owned));
                hints.push_str(
                    "; or, in place of the last three: rustup toolchain install nightly --component rust-src",
                );
            }
        }
        format!(
            "missing: {}; as root on Debian 12: apt-get install {}{hints}",
            what.join(", "),
            packages.join(" "),
        )
    }

    fn reasons(&self) -> String {
        if self.rejected.is_empty() {
            return String::new();
        }
        let reasons: Vec<_> = self.rejected.iter().map(ToString::to_string).collect();
        format!(" ({})", reasons.join("; "))
    }

    /// Installs it all; the second round is the LLVM of a compiler that the first one brought.
    fn install(mut self, apt: &Apt<'_>, scope: Scope) -> anyhow::Result<(Compiler, PathBuf)> {
        if first_ready(&self.compilers).is_none() {
            match self.installable_llvm(apt) {
                Some(llvm) => self.packages.extend(llvm),
                None => self
                    .packages
                    .extend(DISTRIBUTION_COMPILER.map(str::to_owned)),
            }
        }
        apt.install(&self.packages)?;
        let after = match look(scope) {
            Ok(found) => return Ok(found),
            Err(after) => after,
        };
        match after.installable_llvm(apt) {
            Some(llvm) if after.what.is_empty() => apt.install(&llvm)?,
            _ => bail!(
                "after installing {}: {}",
                self.packages.join(" "),
                after.describe()
            ),
        }
        look(scope).map_err(|still| anyhow::anyhow!(still.describe()))
    }

    /// The packages of the LLVM that the first possible compiler needs.
    fn installable_llvm(&self, apt: &Apt<'_>) -> Option<Vec<String>> {
        self.compilers
            .iter()
            .map(|compiler| llvm_packages(compiler.llvm))
            .find(|packages| packages.iter().all(|package| apt.knows(package)))
    }
}
