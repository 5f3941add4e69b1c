//! What the builds, the lab and the tests need beside rustup.

use std::path::PathBuf;

use crate::exec;

/// Something that must be on the machine, however it got there.
pub(crate) struct Requirement {
    /// Its name, for people.
    pub(crate) what: &'static str,
    /// The Debian packages that bring it.
    pub(crate) packages: &'static [&'static str],
    /// The programs by which it is known to be there.
    programs: &'static [&'static str],
}

impl Requirement {
    /// Whether every program of it is found.
    fn is_met(&self) -> bool {
        self.programs
            .iter()
            .all(|program| exec::find_program(program).is_some())
    }
}

/// What compiling needs.
const BUILD: [Requirement; 1] = [Requirement {
    what: "a C compiler",
    packages: &["gcc", "libc6-dev"],
    programs: &["cc"],
}];

/// What the lab and the tests run.
const LAB: [Requirement; 10] = [
    Requirement {
        what: "Open vSwitch",
        packages: &["openvswitch-switch"],
        programs: &[
            "ovs-vswitchd",
            "ovsdb-server",
            "ovsdb-tool",
            "ovs-vsctl",
            "ovs-ofctl",
            "ovs-appctl",
        ],
    },
    Requirement {
        what: "OVN's central part",
        packages: &["ovn-central"],
        programs: &["ovn-northd", "ovn-nbctl", "ovn-sbctl"],
    },
    Requirement {
        what: "ovn-controller",
        packages: &["ovn-host"],
        programs: &["ovn-controller"],
    },
    Requirement {
        what: "bpftool",
        packages: &["bpftool"],
        programs: &["bpftool"],
    },
    Requirement {
        what: "iproute2",
        packages: &["iproute2"],
        programs: &["ip", "tc"],
    },
    Requirement {
        what: "ping",
        packages: &["iputils-ping"],
        programs: &["ping"],
    },
    Requirement {
        what: "arping",
        packages: &["arping"],
        programs: &["arping"],
    },
    Requirement {
        what: "ethtool",
        packages: &["ethtool"],
        programs: &["ethtool"],
    },
    Requirement {
        what: "QEMU",
        packages: &["qemu-system-x86"],
        programs: &["qemu-system-x86_64"],
    },
    Requirement {
        what: "kmod",
        packages: &["kmod"],
        programs: &["depmod", "modprobe"],
    },
];

/// How much of the machine a verb needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What `build-ebpf` needs.
    Build,
    /// That, and what the lab, the tests and the benches run.
    Everything,
}

/// The requirements of a scope that the machine does not meet.
pub(crate) fn missing(scope: Scope) -> Vec<&'static Requirement> {
    let lab: &[Requirement] = match scope {
        Scope::Build => &[],
        Scope::Everything => &LAB,
    };
    BUILD
        .iter()
        .chain(lab)
        .filter(|requirement| !requirement.is_met())
        .collect()
}

/// The packages of Debian's compiler that comes with the matching source of `core`.
pub(crate) const DISTRIBUTION_COMPILER: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// The package of that compiler's clippy.
pub(crate) const DISTRIBUTION_CLIPPY: &str = "rust-web-clippy";

/// The packages that bpf-linker is built against.
pub(crate) fn llvm_packages(major: u32) -> Vec<String> {
    vec![format!("llvm-{major}-dev"), format!("libpolly-{major}-dev")]
}

/// Where an LLVM of this major is installed with its development files.
pub(crate) fn llvm_prefix(major: u32) -> Option<PathBuf> {
    let debian = PathBuf::from(format!("/usr/lib/llvm-{major}"));
    if debian.join("bin/llvm-config").is_file() && debian.join("include/llvm-c").is_dir() {
        return Some(debian);
    }
    let config = exec::find_program(&format!("llvm-config-{major}"))?;
    let prefix = exec::stdout(std::process::Command::new(config).arg("--prefix")).ok()?;
    Some(PathBuf::from(prefix.trim()))
}
