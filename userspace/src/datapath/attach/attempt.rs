//! What every attachment does with its pins.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use aya::{
    maps::Map,
    pin::PinError,
    programs::{
        ProgramError,
        links::{FdLink, LinkError},
    },
};
use nix::errno::Errno;

use super::{AttachOptions, Hook, Warning};
use crate::datapath::{
    error::{AttachError, errno_of, is_permission},
    filter,
    links::Pinned,
    load,
    pins::{self, Pins},
};

/// An attachment in the making: removes the pins that it made unless it is kept.
///
/// Maps and program are pinned before anything is attached, the link last: a process that is
/// killed in between leaves at most pins that the next one takes over.
pub(super) struct Attempt<'a> {
    pub(super) options: &'a AttachOptions,
    pub(super) interface_index: u32,
    pub(super) warnings: Vec<Warning>,
    pins: &'a Pins,
    made: Vec<PathBuf>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        for pin in &self.made {
            if let Err(error) = pins::remove(pin) {
                tracing::warn!(pin = %pin.display(), %error, "cannot remove a pin");
            }
        }
        self.pins.remove_empty_directories();
    }
}

impl<'a> Attempt<'a> {
    pub(super) fn new(options: &'a AttachOptions, interface_index: u32, pins: &'a Pins) -> Self {
        Self {
            options,
            interface_index,
            warnings: Vec::new(),
            pins,
            made: Vec::new(),
        }
    }

    /// Ends the attempt as a success.
    pub(super) fn keep(mut self) -> Vec<Warning> {
        self.made.clear();
        std::mem::take(&mut self.warnings)
    }

    /// Pins the maps, unless they came from their pins, and the program beside its place.
    pub(super) fn begin(
        &mut self,
        maps: &[(Map, PathBuf)],
        pin_program: impl FnOnce(&Path) -> Result<(), PinError>,
    ) -> Result<(), AttachError> {
        let directory = self.pins.directory();
        fs::create_dir_all(directory).map_err(|source| file_error(directory, source))?;
        for (map, pin) in maps {
            if !pin.exists() {
                map.pin(pin).map_err(|source| pin_error(pin, source))?;
                self.made.push(pin.clone());
            }
        }
        let next = self.pins.next_program();
        pins::remove(&next).map_err(|source| file_error(&next, source))?;
        pin_program(&next).map_err(|source| pin_error(&next, source))?;
        self.made.push(next);
        Ok(())
    }

    /// Puts the program, which is attached now, in its place.
    pub(super) fn finish(&mut self) -> Result<(), AttachError> {
        self.put(&self.pins.next_program(), self.pins.program())
    }

    /// Pins a new link; the one that was pinned before goes, and with it what it attached.
    pub(super) fn pin_link(&mut self, link: FdLink) -> Result<(), AttachError> {
        let next = self.pins.next_link();
        pins::remove(&next).map_err(|source| file_error(&next, source))?;
        link.pin(&next).map_err(|source| pin_error(&next, source))?;
        self.made.push(next.clone());
        self.put(&next, self.pins.link())
    }

    fn put(&mut self, next: &Path, place: PathBuf) -> Result<(), AttachError> {
        let is_new = !place.exists();
        fs::rename(next, &place).map_err(|source| file_error(&place, source))?;
        if is_new {
            self.made.push(place);
        }
        Ok(())
    }

    /// Removes a link of ours: a filter has taken its place.
    pub(super) fn remove_link(&self) -> Result<(), AttachError> {
        let pin = self.pins.link();
        pins::remove(&pin).map_err(|source| file_error(&pin, source))?;
        Ok(())
    }

    /// Removes a filter of ours: a link has taken its place.
    pub(super) fn remove_filter(&self) -> Result<(), AttachError> {
        filter::remove(&self.options.interface).map_err(|error| self.refused(error))
    }

    /// Waits until a link whose pin is gone has let go of the interface, so that no frame after this
    /// counts twice.
    pub(super) fn await_end(&mut self, former: Option<Pinned>) {
        let interface = &self.options.interface;
        if let Some(former) = former
            && !former.wait_until_gone(interface, self.interface_index)
        {
            self.warnings.push(Warning::FormerLinkHeld {
                interface: interface.clone(),
            });
        }
    }

    pub(super) fn link_error(&self, error: LinkError) -> AttachError {
        link_error(self.pins, error)
    }

    /// The kernel's refusal in our words.
    pub(super) fn refused(&self, source: ProgramError) -> AttachError {
        let interface = self.options.interface.clone();
        match errno_of(&source) {
            Some(Errno::EPERM | Errno::EACCES) => AttachError::Permission {
                missing: load::CAPABILITIES,
            },
            Some(Errno::EBUSY | Errno::EEXIST) if self.options.hook == Hook::Xdp => {
                AttachError::XdpBusy { interface }
            }
            Some(Errno::ENODEV) => AttachError::NoInterface { interface },
            _ => AttachError::Attach {
                interface,
                hook: self.options.hook,
                source,
            },
        }
    }
}

pub(super) fn link_error(pins: &Pins, error: LinkError) -> AttachError {
    if is_permission(&error) {
        AttachError::Permission {
            missing: load::CAPABILITIES,
        }
    } else {
        file_error(&pins.link(), io::Error::other(error))
    }
}

fn pin_error(path: &Path, source: PinError) -> AttachError {
    AttachError::Pin {
        path: path.to_owned(),
        source,
    }
}

fn file_error(path: &Path, source: io::Error) -> AttachError {
    AttachError::PinFile {
        path: path.to_owned(),
        source,
    }
}
