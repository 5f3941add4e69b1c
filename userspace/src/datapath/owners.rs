//! Whose pins are: an interface may be called otherwise than when its program was attached.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use nix::net::if_::{if_indextoname, if_nametoindex};

use super::{
    links,
    pins::{self, Pins},
};

/// The pins of one directory.
pub(super) struct Found {
    pub(super) pins: Pins,
    /// The interface that the directory is called after.
    pub(super) name: String,
    /// Whether they wait for another's to make way.
    pub(super) is_aside: bool,
    /// The interface here that their link is on, as it is called now.
    pub(super) on: Option<String>,
}

impl Found {
    /// Whose they are: by the link, or else by the directory.
    fn owner(&self) -> &str {
        self.on.as_deref().unwrap_or(&self.name)
    }
}

/// All pins of one ABI version, those that wait last.
pub(super) fn survey(bpffs: &Path, version: &str) -> io::Result<Vec<Found>> {
    let places = pins::places(bpffs, version)?;
    let seen: Vec<_> = places
        .iter()
        .map(|(name, is_aside)| {
            let pins = match is_aside {
                true => Pins::aside(bpffs, version, name),
                false => Pins::of_version(bpffs, version, name),
            };
            let seen = Seen::of(&pins);
            (pins, seen)
        })
        .collect();
    let indexes = seen
        .iter()
        .filter_map(|(_, seen)| Some(seen.as_ref()?.index));
    let indexes: Vec<_> = indexes.collect();
    let on: Vec<_> = places
        .iter()
        .zip(&seen)
        .map(|((name, is_aside), (_, seen))| {
            let seen = seen.as_ref()?;
            let is_on = seen.is_sure || *is_aside || seen.is_likely(name, &indexes);
            is_on.then(|| seen.name.clone())
        })
        .collect();
    let found = places.into_iter().zip(seen).zip(on);
    let found = found.map(|(((name, is_aside), (pins, _)), on)| Found {
        pins,
        name,
        is_aside,
        on,
    });
    Ok(found.collect())
}

/// An interface here that a link is on, unless an interface of another network namespace has its index.
struct Seen {
    index: u32,
    name: String,
    /// Whether the interface is known to run the link's program. Where it is known not to, none is seen.
    is_sure: bool,
}

impl Seen {
    fn of(pins: &Pins) -> Option<Self> {
        let link = links::open(&pins.link()).ok().flatten()?;
        let index = link.interface_index?;
        let name = if_indextoname(index).ok()?.into_string().ok()?;
        let is_sure = match link.runs_on(&name, index) {
            Some(false) => return None,
            runs => runs.is_some(),
        };
        Some(Self {
            index,
            name,
            is_sure,
        })
    }

    /// Where programs cannot be named, an interface keeps the pins of its name while it is here, unless
    /// there is another link that is on it: then names have moved on.
    fn is_likely(&self, directory: &str, indexes: &[u32]) -> bool {
        match if_nametoindex(directory) {
            // This link's own index is among them: it is on the interface of that name, or another is.
            Ok(namesake) => indexes.contains(&namesake),
            Err(_) => true,
        }
    }
}

/// The interfaces that have pins under any ABI version, as they are called now.
///
/// # Errors
/// Where they cannot be listed.
pub fn interfaces_of_every_version(bpffs: &Path) -> io::Result<BTreeSet<String>> {
    let mut interfaces = BTreeSet::new();
    for version in pins::version_names(bpffs)? {
        let found = survey(bpffs, &version)?;
        interfaces.extend(found.iter().map(|it| it.owner().to_owned()));
    }
    Ok(interfaces)
}

/// The directory of another ABI version that holds an attachment of `interface`.
///
/// # Errors
/// Where the versions cannot be listed.
pub fn other_version(bpffs: &Path, interface: &str) -> io::Result<Option<PathBuf>> {
    let ours = pins::own_version();
    for version in pins::version_names(bpffs)? {
        if version == ours {
            continue;
        }
        let mut found = survey(bpffs, &version)?.into_iter();
        let attached = found.find(|it| it.owner() == interface && it.pins.program().exists());
        if let Some(attached) = attached {
            return Ok(Some(attached.pins.directory().to_owned()));
        }
    }
    Ok(None)
}

/// The pins of an interface under every ABI version, whatever their directories are called. An interface
/// that is not here any more, or has another name, has those that are called after it.
pub(super) fn of_interface(bpffs: &Path, interface: &str) -> io::Result<Vec<Pins>> {
    let is_here = if_nametoindex(interface).is_ok();
    let mut pins = Vec::new();
    for version in pins::version_names(bpffs)? {
        let found = survey(bpffs, &version)?.into_iter();
        let its = found.filter(|it| it.owner() == interface || !is_here && it.name == interface);
        pins.extend(its.map(|it| it.pins));
    }
    Ok(pins)
}
