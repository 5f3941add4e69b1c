//! Pinned links: whose they are and where they are attached.

use std::{
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use aya::programs::{
    SchedClassifier, TcAttachType,
    links::{FdLink, LinkError, LinkType, PinnedLink},
};
use nix::errno::Errno;

use super::{
    error::{errno_of, is_permission},
    netlink,
};

/// How long the kernel may take to let a program go; it takes milliseconds.
const DETACH_DEADLINE: Duration = Duration::from_secs(5);
const DETACH_POLL: Duration = Duration::from_millis(2);

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
            && self.runs_on(interface, interface_index) != Some(false)
    }

    /// Whether an interface here runs the link's program; `None` where this process may not know.
    pub(crate) fn runs_on(&self, interface: &str, interface_index: u32) -> Option<bool> {
        runs(interface, interface_index, self.link_type, self.program_id)
    }

    /// Closes the link, whose pin is gone, and waits until the kernel has taken its program off the
    /// interface: it does that some time after the last reference went.
    ///
    /// Says whether that was so in time; someone else may hold the link.
    pub(crate) fn wait_until_gone(self, interface: &str, interface_index: u32) -> bool {
        let Self {
            link,
            link_type,
            program_id,
            ..
        } = self;
        drop(link);
        let deadline = Instant::now() + DETACH_DEADLINE;
        while runs(interface, interface_index, link_type, program_id) == Some(true) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(DETACH_POLL);
        }
        true
    }
}

/// Whether an interface runs a program of ours; `None` where this process may not know: naming
/// programs takes `CAP_SYS_ADMIN`, which an agent needs for nothing else.
fn runs(
    interface: &str,
    interface_index: u32,
    link_type: Option<LinkType>,
    program_id: u32,
) -> Option<bool> {
    match link_type {
        Some(LinkType::Tcx) => runs_tcx(interface, program_id),
        Some(LinkType::Xdp) => runs_xdp(interface_index, program_id),
        _ => Some(false),
    }
}

fn runs_tcx(interface: &str, program_id: u32) -> Option<bool> {
    match SchedClassifier::query_tcx(interface, TcAttachType::Ingress) {
        Ok((_, programs)) => Some(programs.iter().any(|program| program.id() == program_id)),
        Err(error) if is_permission(&error) => None,
        Err(_) => Some(false),
    }
}

fn runs_xdp(interface_index: u32, program_id: u32) -> Option<bool> {
    let xdp = netlink::xdp(interface_index).ok().flatten();
    Some(xdp.is_some_and(|xdp| xdp.program_ids.contains(&program_id)))
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
