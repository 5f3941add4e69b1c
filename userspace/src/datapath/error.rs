//! What can go wrong between the agent and the kernel: one clear line each.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use aya::{EbpfError, maps::MapError, pin::PinError, programs::ProgramError};
use nix::errno::Errno;

use super::{attach::Hook, netlink::NetlinkError};

/// The shape of a map: what a program relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// `BPF_MAP_TYPE_*`.
    pub map_type: u32,
    /// Bytes.
    pub key_size: u32,
    /// Bytes.
    pub value_size: u32,
    /// Entries.
    pub max_entries: u32,
}

impl fmt::Display for MapShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.map_type {
            1 => f.write_str("hash")?,
            5 => f.write_str("per-CPU hash")?,
            other => write!(f, "map type {other}")?,
        }
        write!(
            f,
            " with {}-byte keys, {}-byte values and {} entries",
            self.key_size, self.value_size, self.max_entries
        )
    }
}

/// Why an attachment failed. Nothing of it stays behind.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No such interface.
    #[error("there is no interface {interface} in this network namespace")]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// The process may not use BPF.
    #[error(
        "this needs root, or the capabilities {missing}: they let it load BPF programs and attach \
         them to interfaces"
    )]
    Permission {
        /// Their names.
        missing: &'static str,
    },
    /// The kernel takes no BTF.
    #[error("the kernel has no BTF support: it needs CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF")]
    NoBtf,
    /// bpffs could not be mounted.
    #[error("cannot mount bpffs on {}: mount it, or name another place", path.display())]
    Bpffs {
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The object and this binary were built from different sources.
    #[error(
        "the eBPF object has no ABI version {wanted}: rebuild it with `cargo xtask build-ebpf`"
    )]
    ObjectAbi {
        /// The version that this binary speaks.
        wanted: u32,
    },
    /// Another version of neighsteer is attached.
    #[error(
        "{interface} has an attachment of another ABI version at {}: `neighsteer detach {interface}` \
         takes it off, with its counters",
        directory.display()
    )]
    OtherAbi {
        /// The interface.
        interface: String,
        /// Its pins.
        directory: PathBuf,
    },
    /// A pinned map does not fit the program.
    #[error("{} is a {pinned}, not a {wanted}: detach the interface first", path.display())]
    CountersShape {
        /// The pin.
        path: PathBuf,
        /// What it holds.
        pinned: MapShape,
        /// What the program wants.
        wanted: MapShape,
    },
    /// The pinned link holds a program on an interface other than the one of that name.
    #[error(
        "{} is attached to another interface (index {interface_index}): detach it first, or name \
         another bpffs",
        path.display()
    )]
    AttachedElsewhere {
        /// The pin.
        path: PathBuf,
        /// Where the link is attached, in its own network namespace.
        interface_index: u32,
    },
    /// Another XDP program is attached.
    #[error("another XDP program is attached to {interface}: detach it, or attach to tc instead")]
    XdpBusy {
        /// The interface.
        interface: String,
    },
    /// The kernel attached the program without a link.
    #[error("the kernel has no BPF links for {hook}: it needs Linux 5.9 or newer")]
    NoLinks {
        /// Where to.
        hook: Hook,
    },
    /// The object could not be parsed, or its maps not be created.
    #[error("cannot load the eBPF object")]
    Object(#[source] EbpfError),
    /// The object lacks a program or map.
    #[error("the eBPF object has no {name}: rebuild it with `cargo xtask build-ebpf`")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The verifier or the kernel refused the program.
    #[error("the kernel refused to load the program {program}")]
    Program {
        /// Its name.
        program: &'static str,
        /// The kernel's answer.
        source: ProgramError,
    },
    /// The kernel refused the attachment.
    #[error("cannot attach to {interface} ({hook})")]
    Attach {
        /// The interface.
        interface: String,
        /// Where to.
        hook: Hook,
        /// The kernel's answer.
        source: ProgramError,
    },
    /// A map could not be read.
    #[error("cannot use the map {}", path.display())]
    Map {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        source: MapError,
    },
    /// A pin could not be made.
    #[error("cannot pin {}", path.display())]
    Pin {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        source: PinError,
    },
    /// A pin could not be read, moved or removed.
    #[error("cannot use the pin {}", path.display())]
    PinFile {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Pins could not be given the name that the interface has now.
    #[error(transparent)]
    Renamed(#[from] RenameError),
    /// The kernel's network configuration could not be read.
    #[error("cannot read the network configuration of {interface}")]
    Netlink {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        source: NetlinkError,
    },
}

/// Why pins do not have the name that their interface has now.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// They could not be listed.
    #[error("cannot list the pins in {} ({reason}): root may", path.display())]
    List {
        /// The bpffs.
        path: PathBuf,
        /// The kernel's answer.
        reason: io::Error,
    },
    /// The directory could not be moved.
    #[error(
        "cannot move the pins {} to {}, which their interface is called now ({reason}): detach both, and \
         attach again",
        from.display(),
        to.display()
    )]
    Move {
        /// The directory of the former name.
        from: PathBuf,
        /// That of the present one.
        to: PathBuf,
        /// The kernel's answer.
        reason: io::Error,
    },
    /// What has to give way could not be removed.
    #[error(
        "cannot remove {} ({reason}), so that the pins {} stay in the way: remove it",
        path.display(),
        directory.display()
    )]
    Remove {
        /// The directory of the pins.
        directory: PathBuf,
        /// What is in it.
        path: PathBuf,
        /// The kernel's answer.
        reason: io::Error,
    },
}

impl RenameError {
    /// Whether it concerns the pins of a directory.
    pub(crate) fn is_about(&self, pins: &Path) -> bool {
        match self {
            Self::List { .. } => true,
            Self::Move { from, to, .. } => from == pins || to == pins,
            Self::Remove { directory, .. } => directory == pins,
        }
    }
}

/// Why a detachment failed.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// The process may not use BPF.
    #[error("this needs root, or the capabilities {missing}")]
    Permission {
        /// Their names.
        missing: &'static str,
    },
    /// A pin could not be removed.
    #[error("cannot remove the pin {}", path.display())]
    Pin {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The pins are removed, and the program still runs.
    #[error("{interface} still has the program: another process holds its link open")]
    Held {
        /// The interface.
        interface: String,
    },
    /// The filters of the interface could not be read.
    #[error("cannot list the tc filters of {interface}")]
    Filters {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        source: NetlinkError,
    },
    /// Our filter could not be removed.
    #[error("cannot remove the tc filter of {interface}")]
    Filter {
        /// The interface.
        interface: String,
        /// The kernel's answer.
        source: ProgramError,
    },
}

/// Why counters or attachments could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing is attached.
    #[error("nothing is attached to {interface}: {} is missing", path.display())]
    NotAttached {
        /// The interface.
        interface: String,
        /// The counters' pin.
        path: PathBuf,
    },
    /// The process may not use BPF.
    #[error("this needs root, or the capabilities {missing}")]
    Permission {
        /// Their names.
        missing: &'static str,
    },
    /// The map is not one of ours.
    #[error("{} is a {pinned}, not a {wanted}", path.display())]
    CountersShape {
        /// The pin.
        path: PathBuf,
        /// What it holds.
        pinned: MapShape,
        /// What this binary reads.
        wanted: MapShape,
    },
    /// The map could not be read.
    #[error("cannot read the map {}", path.display())]
    Map {
        /// The pin.
        path: PathBuf,
        /// The kernel's answer.
        source: MapError,
    },
    /// The directory of the pins could not be read.
    #[error("cannot list the pins in {} (root may)", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The error number at the bottom of an error, if there is one.
pub(crate) fn errno_of(error: &(dyn Error + 'static)) -> Option<Errno> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(number) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Some(Errno::from_raw(number));
        }
        if let Some(NetlinkError::Refused { errno, .. }) = error.downcast_ref() {
            return Some(*errno);
        }
        next = error.source();
    }
    None
}

/// Whether an error says that the process lacks a capability.
pub(crate) fn is_permission(error: &(dyn Error + 'static)) -> bool {
    matches!(errno_of(error), Some(Errno::EPERM | Errno::EACCES))
}
