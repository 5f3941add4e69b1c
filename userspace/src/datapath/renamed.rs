//! Interfaces that are called otherwise than when their program was attached.

use std::{io, path::Path};

use nix::net::if_::if_nametoindex;

use super::{
    links,
    pins::{self, Pins},
};

/// Gives the pins of an interface its new name: the link goes on, and so do the counters. Whether there
/// were any. What is left there of an interface that is gone gives way.
///
/// # Errors
/// Where they cannot be moved, for example since the link of an interface that lives has the new name.
pub fn rename(bpffs: &Path, from: &str, to: &str) -> io::Result<bool> {
    let (former, new) = (Pins::new(bpffs, from), Pins::new(bpffs, to));
    if former.directory().exists() && new.directory().exists() && !lives(&new) {
        new.remove_all().map_err(|(_, error)| error)?;
    }
    pins::rename(bpffs, from, to)
}

/// Whether the link is attached to anything.
fn lives(pins: &Pins) -> bool {
    let link = links::open(&pins.link()).ok().flatten();
    link.is_some_and(|link| link.interface_index.is_some())
}

/// Takes pins for this interface's whose link is on it under a former name: left alone, that program
/// would go on beside the next one, with other settings.
///
/// # Errors
/// Where pins cannot be listed, moved or removed.
pub(super) fn take_over(bpffs: &Path, interface: &str, interface_index: u32) -> io::Result<()> {
    for former in pins::interfaces(bpffs)? {
        if former == interface {
            continue;
        }
        let former_pins = Pins::new(bpffs, &former);
        let Some(link) = links::open(&former_pins.link()).ok().flatten() else {
            continue;
        };
        // Indexes are of a network namespace each: where the programs cannot be named, pins of an
        // interface that is here under its own name are not taken away from it.
        let is_here = if_nametoindex(former.as_str()).is_ok();
        let is_on_it = match is_here {
            true => link.is_surely_on(interface, interface_index),
            false => link.is_on(interface, interface_index),
        };
        if !is_on_it {
            continue;
        }
        drop(link);
        tracing::info!(%interface, %former, "a program is attached under a former name");
        let own = links::open(&Pins::new(bpffs, interface).link())
            .ok()
            .flatten();
        if own.is_some_and(|own| own.is_on(interface, interface_index)) {
            former_pins.remove_all().map_err(|(_, error)| error)?;
        } else {
            rename(bpffs, &former, interface)?;
        }
    }
    Ok(())
}
