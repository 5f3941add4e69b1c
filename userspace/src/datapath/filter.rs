//! Our filter on kernels without TCX: known by priority, handle and name, so that a later process
//! finds it without a pin.

use std::io;

use aya::programs::{
    ProgramError, TcAttachType,
    links::Link as _,
    tc::{SchedClassifierLink, TcHandle},
};
use neighsteer_common::abi;

use super::netlink::Filter;

/// Before those that tc numbers itself (49152 and down).
pub(crate) const PRIORITY: u16 = 110;
/// The letters "ns".
pub(crate) const HANDLE: TcHandle = TcHandle::new(0, 0x6e73);

/// Whether a filter is one that we made.
pub(crate) fn is_ours(filter: &Filter) -> bool {
    filter.priority == PRIORITY
        && filter.handle == u32::from(HANDLE)
        && filter.name == abi::TC_INGRESS
}

/// Our filter on an interface, in the form that replaces or removes it.
///
/// Dropping it removes the filter.
pub(crate) fn on(interface: &str) -> io::Result<SchedClassifierLink> {
    SchedClassifierLink::attached(interface, TcAttachType::Ingress, PRIORITY, HANDLE, None)
}

/// Removes our filter from an interface.
pub(crate) fn remove(interface: &str) -> Result<(), ProgramError> {
    on(interface)?.detach()
}
