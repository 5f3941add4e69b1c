//! The eBPF datapath: loads the embedded object, attaches it to an interface, and reads what it
//! counted.
//!
//! Everything that must outlive the process is pinned in `<bpffs>/neighsteer/v<ABI>/<interface>/`:
//!
//! | pin | what |
//! | --- | --- |
//! | `counters` | the per-CPU counters, kept over every re-attach |
//! | `checks` | how many frames failed which check, kept likewise |
//! | `program` | the program that is attached |
//! | `link` | the TCX or XDP link: the program stays attached while this file exists |
//!
//! An interface that gets another name keeps its pins: the next attachment moves them to a directory of
//! that name. Where names went round, one directory waits as `%aside-<interface>` meanwhile.
//!
//! Kernels before 6.6 have no TCX: there the program is a filter of the interface's clsact qdisc
//! and there is no link to pin.

pub mod attach;
pub mod bpffs;
mod checks;
mod detach;
pub mod error;
mod filter;
mod links;
pub mod load;
#[cfg(feature = "log")]
pub mod log;
pub mod netlink;
mod owners;
pub mod pins;
pub mod read;
mod renamed;

pub use attach::{AttachOptions, Attached, Hook, Mode, Warning, attach};
pub use checks::{CheckCounter, Checks, checks};
pub use detach::detach;
pub use error::{AttachError, DetachError, ReadError, RenameError};
pub use neighsteer_common::abi::Direction;
pub use pins::DEFAULT_BPFFS;
pub use read::{Attachment, Counter, State, attachments, counters};
pub use renamed::rename;
