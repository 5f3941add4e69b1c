//! Pinned links: whose they are and where they are attached.

use std::{fs, io, path::Path};

use aya::programs::{
    SchedClassifier, TcAttachType,
    links::{FdLink, LinkError, LinkType, PinnedLink},
};
use nix::errno::Errno;

use super::{error::errno_of, netlink};

/// A pinned link and what the kernel says of it.
pub(crate) struct Pinned {
    pub(crate) link: FdLink,
    pub(crate) link_type: Option<LinkType>,
    pub(crate) program_id: u32,
    /// Index of the interface in the network namespace that it belongs to; `None` when the interface
    /// is gone.
    pub(crate) interface_index: Option<u32>,
}

/// Opens a pinned link, if there is one.
pub(crate) fn open(pin: &Path) -> Result<Option<Pinned>, LinkError> {
    let link = match PinnedLink::from_pin(pin) {
        Ok(link) => FdLink::from(link),
        Err(error) if errno_of(&error) == Some(Errno::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let info = link.info()?;
    Ok(Some(Pinned {
        link_type: info.link_type().ok(),
        program_id: info.program_id(),
        interface_index: interface_index_of(info.id()).unwrap_or(None),
        link,
    }))
}

impl Pinned {
    /// Whether the link is attached to the interface of that index in our network namespace.
    pub(crate) fn is_on(&self, interface: &str, interface_index: u32) -> bool {
        self.interface_index == Some(interface_index)
            && match self.link_type {
                Some(LinkType::Tcx) => runs_tcx(interface, self.program_id),
                Some(LinkType::Xdp) => runs_xdp(interface_index, self.program_id),
                _ => false,
            }
    }
}

fn runs_tcx(interface: &str, program_id: u32) -> bool {
    SchedClassifier::query_tcx(interface, TcAttachType::Ingress)
        .is_ok_and(|(_, programs)| programs.iter().any(|program| program.id() == program_id))
}

fn runs_xdp(interface_index: u32, program_id: u32) -> bool {
    netlink::xdp(interface_index)
        .is_ok_and(|xdp| xdp.is_some_and(|xdp| xdp.program_ids.contains(&program_id)))
}

/// The interface of an open link, from what `/proc` says of this process' file descriptors.
fn interface_index_of(link_id: u32) -> io::Result<Option<u32>> {
    for entry in fs::read_dir("/proc/self/fdinfo")? {
        // A descriptor may be closed meanwhile by another thread.
        let Ok(text) = fs::read_to_string(entry?.path()) else {
            continue;
        };
        if field(&text, "link_id:") == Some(link_id) {
            return Ok(field(&text, "ifindex:").filter(|index| *index != 0));
        }
    }
    Ok(None)
}

fn field(text: &str, name: &str) -> Option<u32> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_whole_name() {
        let text =
            "pos:\t0\nlink_type:\ttcx\nlink_id:\t42\nifindex:\t7\nattach_type:\ttcx_ingress\n";
        assert_eq!(field(text, "link_id:"), Some(42));
        assert_eq!(field(text, "ifindex:"), Some(7));
        assert_eq!(field(text, "prog_id:"), None);
    }
}
