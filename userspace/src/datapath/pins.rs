//! Where the pins of an interface are.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use neighsteer_common::abi;

/// Where bpffs is mounted by convention.
pub const DEFAULT_BPFFS: &str = "/sys/fs/bpf";

/// The pins of one interface under one ABI version.
#[derive(Clone, Debug)]
pub struct Pins {
    directory: PathBuf,
}

impl Pins {
    /// The pins of `interface` in the bpffs at `bpffs`.
    #[must_use]
    pub fn new(bpffs: &Path, interface: &str) -> Self {
        Self::of_version(bpffs, &version(abi::VERSION), interface)
    }

    fn of_version(bpffs: &Path, version: &str, interface: &str) -> Self {
        Self {
            directory: versions(bpffs).join(version).join(escape(interface)),
        }
    }

    /// Those of every ABI version that has any of an interface.
    pub(crate) fn of_every_version(bpffs: &Path, interface: &str) -> io::Result<Vec<Self>> {
        let names = version_names(bpffs)?;
        let pins = names
            .iter()
            .map(|name| Self::of_version(bpffs, name, interface));
        Ok(pins.filter(|pins| pins.directory.exists()).collect())
    }

    /// The directory that holds them.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The counters' map.
    #[must_use]
    pub fn counters(&self) -> PathBuf {
        self.directory.join("counters")
    }

    /// The map of failed checks.
    #[must_use]
    pub fn checks(&self) -> PathBuf {
        self.directory.join("checks")
    }

    /// The pins of the maps that outlive a program, by the names that the object gives them.
    #[must_use]
    pub fn maps(&self) -> [(&'static str, PathBuf); 2] {
        [
            (abi::COUNTERS, self.counters()),
            (abi::CHECKS, self.checks()),
        ]
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.directory.join("program")
    }

    /// A program on its way to [`Self::program`]; one that stays is the rest of a killed process.
    #[must_use]
    pub(crate) fn next_program(&self) -> PathBuf {
        self.directory.join("program-next")
    }

    /// The TCX or XDP link.
    #[must_use]
    pub fn link(&self) -> PathBuf {
        self.directory.join("link")
    }

    /// A link on its way to [`Self::link`].
    #[must_use]
    pub(crate) fn next_link(&self) -> PathBuf {
        self.directory.join("link-next")
    }

    /// Removes whatever is pinned, the link first: nothing must count any more when the maps go. Whether
    /// there was anything.
    pub(crate) fn remove_all(&self) -> Result<bool, (PathBuf, io::Error)> {
        let at = |path: &Path, error| (path.to_owned(), error);
        let names = entries(&self.directory).map_err(|error| at(&self.directory, error))?;
        let others = names.iter().map(|name| self.directory.join(name));
        let mut found = false;
        for pin in [self.link(), self.next_link()].into_iter().chain(others) {
            found |= remove(&pin).map_err(|error| at(&pin, error))?;
        }
        self.remove_empty_directories();
        Ok(found)
    }

    /// Removes the directory and those above it, as far as they are empty.
    pub(crate) fn remove_empty_directories(&self) {
        // <interface>, v<ABI>, neighsteer: the first one that is in use ends the walk.
        for directory in self.directory.ancestors().take(3) {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => break,
                _ => {}
            }
        }
    }
}

/// Gives the pins of an interface its new name: the link goes on, and so do the counters. Whether there
/// were any.
///
/// # Errors
/// Where they cannot be moved, for example since the new name has pins.
pub(crate) fn rename(bpffs: &Path, from: &str, to: &str) -> io::Result<bool> {
    let (from, to) = (Pins::new(bpffs, from), Pins::new(bpffs, to));
    match fs::rename(from.directory(), to.directory()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a pin; says whether it was there.
pub(crate) fn remove(pin: &Path) -> io::Result<bool> {
    match fs::remove_file(pin) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The interfaces that have pins under this ABI version, by name.
pub(crate) fn interfaces(bpffs: &Path) -> io::Result<Vec<String>> {
    interfaces_of(bpffs, &version(abi::VERSION))
}

/// The interfaces that have pins under any ABI version, by name.
///
/// # Errors
/// Where they cannot be listed.
pub fn interfaces_of_every_version(bpffs: &Path) -> io::Result<BTreeSet<String>> {
    let mut interfaces = BTreeSet::new();
    for version in version_names(bpffs)? {
        interfaces.extend(interfaces_of(bpffs, &version)?);
    }
    Ok(interfaces)
}

fn interfaces_of(bpffs: &Path, version: &str) -> io::Result<Vec<String>> {
    let names = entries(&versions(bpffs).join(version))?;
    let mut interfaces: Vec<_> = names.iter().filter_map(|name| unescape(name)).collect();
    interfaces.sort();
    Ok(interfaces)
}

/// The directory of another ABI version that holds an attachment of `interface`.
///
/// # Errors
/// Where the versions cannot be listed.
pub fn other_version(bpffs: &Path, interface: &str) -> io::Result<Option<PathBuf>> {
    let ours = version(abi::VERSION);
    let others = version_names(bpffs)?.into_iter().filter(|it| *it != ours);
    let mut others = others.map(|name| Pins::of_version(bpffs, &name, interface));
    let attached = others.find(|pins| pins.program().exists());
    Ok(attached.map(|pins| pins.directory))
}

/// The directory of all versions.
fn versions(bpffs: &Path) -> PathBuf {
    bpffs.join("neighsteer")
}

fn version_names(bpffs: &Path) -> io::Result<Vec<String>> {
    let mut names = entries(&versions(bpffs))?;
    names.retain(|name| name.starts_with('v'));
    Ok(names)
}

fn version(version: u32) -> String {
    format!("v{version}")
}

/// Names in a directory; none where it is missing.
fn entries(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// The name of an interface's directory: bpffs refuses dots (`eth0.5`), so every byte that is not a
/// letter, a digit, `_` or `-` becomes `%` and two hex digits.
#[must_use]
pub fn escape(interface: &str) -> String {
    interface
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02x}"),
        })
        .collect()
}

/// The interface that [`escape`] made a name of, or `None` for any other name.
fn unescape(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if first == '%' {
            bytes.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
            rest = rest.get(3..)?;
        } else {
            let (head, tail) = rest.split_at(first.len_utf8());
            bytes.extend_from_slice(head.as_bytes());
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_name_survives_its_escape() {
        for (name, escaped) in [
            ("eth0", "eth0"),
            ("eth0.5", "eth0%2e5"),
            ("br-ex", "br-ex"),
            ("a%b", "a%25b"),
            ("%2e", "%252e"),
            ("ü", "%c3%bc"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        assert_eq!(unescape("%2"), None);
        assert_eq!(unescape("%zz"), None);
    }

    #[test]
    fn pins_of_another_version_are_found_and_ours_are_not_taken_for_them() {
        let bpffs = tempfile::tempdir().unwrap();
        let ours = version(abi::VERSION);
        let at = |version: &str| {
            bpffs
                .path()
                .join("neighsteer")
                .join(version)
                .join("eth0%2e5")
        };
        for version in [&ours, "v7"] {
            fs::create_dir_all(at(version)).unwrap();
        }
        fs::write(at(&ours).join("program"), "").unwrap();
        let found = || other_version(bpffs.path(), "eth0.5").unwrap();
        assert_eq!(found(), None);
        fs::write(at("v7").join("program"), "").unwrap();
        assert_eq!(found(), Some(at("v7")));
        assert_eq!(interfaces(bpffs.path()).unwrap(), ["eth0.5"]);
    }

    #[test]
    fn whatever_is_pinned_of_an_interface_goes_whichever_version_pinned_it() {
        let bpffs = tempfile::tempdir().unwrap();
        let ours = version(abi::VERSION);
        for version in [&ours, "v2"] {
            for interface in ["eth0.5", "eth1"] {
                let pins = Pins::of_version(bpffs.path(), version, interface);
                fs::create_dir_all(pins.directory()).unwrap();
                fs::write(pins.link(), "").unwrap();
                fs::write(pins.directory().join("of-a-later-version"), "").unwrap();
            }
        }
        let all = || interfaces_of_every_version(bpffs.path()).unwrap();
        assert_eq!(all(), BTreeSet::from(["eth0.5".into(), "eth1".into()]));
        let pins = Pins::of_every_version(bpffs.path(), "eth0.5").unwrap();
        assert_eq!(pins.len(), 2);
        for pins in &pins {
            assert!(pins.remove_all().unwrap());
            assert!(!pins.remove_all().unwrap(), "twice");
        }
        assert_eq!(all(), BTreeSet::from(["eth1".into()]));
    }

    #[test]
    fn pins_go_along_with_a_name_unless_that_has_pins_already() {
        let bpffs = tempfile::tempdir().unwrap();
        let old = Pins::new(bpffs.path(), "pf0hpf");
        fs::create_dir_all(old.directory()).unwrap();
        fs::write(old.program(), "").unwrap();
        assert!(rename(bpffs.path(), "pf0hpf", "host0").unwrap());
        assert_eq!(interfaces(bpffs.path()).unwrap(), ["host0"]);
        assert!(!rename(bpffs.path(), "pf0hpf", "host0").unwrap());
        fs::create_dir_all(old.directory()).unwrap();
        assert!(rename(bpffs.path(), "pf0hpf", "host0").is_err());
    }

    #[test]
    fn directories_go_as_far_as_they_are_empty() {
        let bpffs = tempfile::tempdir().unwrap();
        let (one, two) = (
            Pins::new(bpffs.path(), "one"),
            Pins::new(bpffs.path(), "two"),
        );
        fs::create_dir_all(one.directory()).unwrap();
        fs::create_dir_all(two.directory()).unwrap();
        one.remove_empty_directories();
        assert!(!one.directory().exists());
        assert!(two.directory().exists());
        two.remove_empty_directories();
        assert!(!bpffs.path().join("neighsteer").exists());
        assert!(bpffs.path().exists());
    }
}
