//! Takes an attachment off, pins and all.

use std::{error::Error, path::Path};

use nix::net::if_::if_nametoindex;

use super::{
    error::DetachError,
    filter,
    links::{self, Pinned},
    load, netlink, owners,
    pins::Pins,
    renamed,
};

/// Detaches our program from an interface and removes its pins, the counters too; says whether
/// anything was there. The interface may be gone already, and another ABI version may have attached it.
///
/// The clsact qdisc stays: others may use it.
///
/// # Errors
/// Where the process may not, or a pin or filter cannot be removed: the first, after all the others.
pub fn detach(interface: &str, bpffs: &Path) -> Result<bool, DetachError> {
    if !load::has_capabilities() {
        return Err(DetachError::Permission {
            missing: load::CAPABILITIES,
        });
    }
    let interface_index = if_nametoindex(interface).ok();
    let mut outcome = Outcome::default();
    if let Some(interface_index) = interface_index {
        outcome.note(detach_filter(interface, interface_index));
    }
    for link in remove_pins(interface, bpffs, &mut outcome) {
        if let Some(interface_index) = interface_index
            && !link.wait_until_gone(interface, interface_index)
        {
            outcome.note(Err(DetachError::Held {
                interface: interface.to_owned(),
            }));
        }
    }
    Pins::new(bpffs, interface).remove_empty_directories();
    outcome.failed.map_or(Ok(outcome.found), Err)
}

/// What became of all parts: one that fails keeps no other from being taken off.
#[derive(Default)]
struct Outcome {
    found: bool,
    failed: Option<DetachError>,
}

impl Outcome {
    fn note(&mut self, part: Result<bool, DetachError>) {
        match (part, &self.failed) {
            (Ok(found), _) => self.found |= found,
            (Err(error), None) => self.failed = Some(error),
            (Err(error), Some(_)) => {
                let error: &(dyn Error + 'static) = &error;
                tracing::warn!(error, "not taken off either");
            }
        }
    }
}

/// Removes the pins of an interface; the answer is the links, by now without a pin.
fn remove_pins(interface: &str, bpffs: &Path, outcome: &mut Outcome) -> Vec<Pinned> {
    let _lock = renamed::lock(bpffs);
    let all = owners::of_interface(bpffs, interface).unwrap_or_else(|source| {
        outcome.note(Err(DetachError::Pin {
            path: bpffs.to_owned(),
            source,
        }));
        Vec::new()
    });
    let mut links = Vec::new();
    for pins in all {
        links.extend(links::open(&pins.link()).ok().flatten());
        let removed = pins.remove_all();
        outcome.note(removed.map_err(|(path, source)| DetachError::Pin { path, source }));
    }
    links
}

fn detach_filter(interface: &str, interface_index: u32) -> Result<bool, DetachError> {
    let filters =
        netlink::ingress_filters(interface_index).map_err(|source| DetachError::Filters {
            interface: interface.to_owned(),
            source,
        })?;
    if !filters.iter().any(filter::is_ours) {
        return Ok(false);
    }
    filter::remove(interface).map_err(|source| DetachError::Filter {
        interface: interface.to_owned(),
        source,
    })?;
    Ok(true)
}
