//! Takes an attachment off, pins and all.

use std::path::Path;

use nix::net::if_::if_nametoindex;

use super::{error::DetachError, filter, links, load, netlink, pins::Pins, renamed};

/// Detaches our program from an interface and removes its pins, the counters too; says whether
/// anything was there. The interface may be gone already, and another ABI version may have attached it.
///
/// The clsact qdisc stays: others may use it.
///
/// # Errors
/// Where the process may not, or a pin or filter cannot be removed.
pub fn detach(interface: &str, bpffs: &Path) -> Result<bool, DetachError> {
    if !load::has_capabilities() {
        return Err(DetachError::Permission {
            missing: load::CAPABILITIES,
        });
    }
    let interface_index = if_nametoindex(interface).ok();
    let mut found = match interface_index {
        Some(interface_index) => detach_filter(interface, interface_index)?,
        None => false,
    };
    let at_bpffs = |source| DetachError::Pin {
        path: bpffs.to_owned(),
        source,
    };
    if let Some(interface_index) = interface_index {
        renamed::take_over(bpffs, interface, interface_index).map_err(at_bpffs)?;
    }
    let pins = Pins::of_every_version(bpffs, interface).map_err(at_bpffs)?;
    for pins in pins {
        let link = links::open(&pins.link()).ok().flatten();
        let removed = pins.remove_all();
        found |= removed.map_err(|(path, source)| DetachError::Pin { path, source })?;
        if let (Some(link), Some(interface_index)) = (link, interface_index)
            && !link.wait_until_gone(interface, interface_index)
        {
            return Err(DetachError::Held {
                interface: interface.to_owned(),
            });
        }
    }
    Pins::new(bpffs, interface).remove_empty_directories();
    Ok(found)
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
