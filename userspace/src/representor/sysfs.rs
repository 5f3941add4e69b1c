//! What sysfs says of an interface.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::{errno::Errno, fcntl::OFlag};

use super::PortName;

/// The kernel's names for switches (`MAX_PHYS_ITEM_ID_LEN`, as hex) and ports (`IFNAMSIZ`) are shorter.
const LONGEST: u64 = 128;

/// A port of an embedded switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    /// `phys_switch_id`; a simulator's ports have none.
    pub switch: Option<Arc<str>>,
    /// Which port it is.
    pub name: PortName,
}

/// What is known of one interface: `None` where it is no port of an embedded switch.
pub type Reading = Result<Option<SwitchPort>, Problem>;

/// An interface that may be a port of an embedded switch, and which one cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// There is no sysfs where it was looked for.
    #[error("{root} is no sysfs: mount it there, or name it by --sysfs", root = .root.display())]
    NoSysfs {
        /// Where.
        root: PathBuf,
    },
    /// A file that is there and cannot be read.
    #[error("{file} cannot be read: {reason}", file = .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file with something other than a short text.
    #[error("{file} holds no name", file = .file.display())]
    NoText {
        /// The file.
        file: PathBuf,
    },
    /// A switch's port whose name the kernel does not tell.
    #[error("it is a port of switch {switch} without phys_port_name")]
    Nameless {
        /// `phys_switch_id`.
        switch: Arc<str>,
    },
    /// A name of no known form.
    #[error("its phys_port_name {0:?} is of no known form")]
    OddName(Arc<str>),
}

/// Reads what an interface is, below `root` (`/sys`). A file that is not there, or that the driver
/// does not serve, says nothing; an interface without `phys_switch_id` is no port of a switch, unless
/// its name is a simulator's.
///
/// # Errors
/// Where it is there and cannot be understood.
pub fn read(root: &Path, interface: &str) -> Reading {
    if !is_interface_name(interface) {
        return Ok(None);
    }
    let directory = root.join("class/net").join(interface);
    let switch = attribute(&directory, "phys_switch_id")?;
    let Some(switch) = switch else {
        return match PortName::simulated(interface) {
            Some(name) => Ok(Some(SwitchPort { switch: None, name })),
            None if !root.join("class/net").is_dir() => Err(Problem::NoSysfs { root: root.into() }),
            None => Ok(None),
        };
    };
    match attribute(&directory, "phys_port_name")? {
        None => Err(Problem::Nameless { switch }),
        Some(text) => match PortName::parse(&text) {
            Some(name) => Ok(Some(SwitchPort {
                switch: Some(switch),
                name,
            })),
            None => Err(Problem::OddName(text)),
        },
    }
}

/// Whether the kernel would let an interface be called so (`dev_valid_name`). A row of the database
/// may say anything.
#[must_use]
pub fn is_interface_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte != b'/' && byte != b':' && !byte.is_ascii_whitespace();
    (1..16).contains(&text.len())
        && !matches!(text, "." | "..")
        && text.bytes().all(|byte| is_plain(byte) && byte != 0)
}

/// A file's text without the white space around it; `None` where there is none.
fn attribute(directory: &Path, name: &str) -> Result<Option<Arc<str>>, Problem> {
    let file = directory.join(name);
    let bytes = match read_file(&file) {
        Ok(bytes) => bytes,
        Err(error) if says_nothing(&error) => return Ok(None),
        Err(error) => {
            let reason = error.to_string();
            return Err(Problem::Unreadable { file, reason });
        }
    };
    let is_short = bytes.len() < usize::try_from(LONGEST).unwrap_or(usize::MAX);
    let text = String::from_utf8(bytes).ok().filter(|_| is_short);
    let Some(text) = text else {
        return Err(Problem::NoText { file });
    };
    let text = text.trim();
    if text.contains(char::is_control) {
        return Err(Problem::NoText { file });
    }
    Ok((!text.is_empty()).then(|| text.into()))
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Whoever opens a FIFO would wait for its writer.
    let flags = OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The interface is not there, or went meanwhile, or its driver has no such attribute.
fn says_nothing(error: &io::Error) -> bool {
    let silent = [
        Errno::ENOENT,
        Errno::ENOTDIR,
        Errno::EOPNOTSUPP,
        Errno::ENODEV,
        Errno::EINVAL,
    ];
    let errno = error.raw_os_error().map(Errno::from_raw);
    errno.is_some_and(|errno| silent.contains(&errno))
}
