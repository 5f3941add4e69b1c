//! Where the pins of an interface are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use neighsteer_common::abi;

pub use super::owners::{interfaces_of_every_version, other_version};

/// Where bpffs is mounted by convention.
pub const DEFAULT_BPFFS: &str = "/sys/fs/bpf";

/// Before the name of an interface whose pins wait for another's to make way. No interface's own:
/// [`escape`] has hex digits behind every `%`.
const ASIDE: &str = "%aside-";

/// The pins of one interface under one ABI version.
#[derive(Clone, Debug)]
pub struct Pins {
    directory: PathBuf,
}

impl Pins {
    /// The pins of `interface` in the bpffs at `bpffs`.
    #[must_use]
    pub fn new(bpffs: &Path, interface: &str) -> Self {
        Self::of_version(bpffs, &own_version(), interface)
    }

    /// The same under an ABI version by its directory's name.
    pub(crate) fn of_version(bpffs: &Path, version: &str, interface: &str) -> Self {
        Self {
            directory: versions(bpffs).join(version).join(escape(interface)),
        }
    }

    /// Where the pins of `interface` wait for another's to make way.
    pub(crate) fn aside(bpffs: &Path, version: &str, interface: &str) -> Self {
        let name = format!("{ASIDE}{}", escape(interface));
        Self {
            directory: versions(bpffs).join(version).join(name),
        }
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
    /// there was anything. What cannot be removed keeps nothing else; the first such is the error.
    pub(crate) fn remove_all(&self) -> Result<bool, (PathBuf, io::Error)> {
        let (names, mut failed) = match entries(&self.directory) {
            Ok(names) => (names, None),
            Err(error) => (Vec::new(), Some((self.directory.clone(), error))),
        };
        let others = names.iter().map(|name| self.directory.join(name));
        let mut found = false;
        for pin in [self.link(), self.next_link()].into_iter().chain(others) {
            match remove(&pin) {
                Ok(removed) => found |= removed,
                Err(error) => {
                    failed.get_or_insert((pin, error));
                }
            }
        }
        self.remove_empty_directories();
        failed.map_or(Ok(found), Err)
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

/// Removes a pin; says whether it was there.
pub(crate) fn remove(pin: &Path) -> io::Result<bool> {
    match fs::remove_file(pin) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The interfaces whose names directories of an ABI version have, sorted; and whether their pins wait for
/// another's to make way. Those that do are last.
pub(crate) fn places(bpffs: &Path, version: &str) -> io::Result<Vec<(String, bool)>> {
    let names = entries(&versions(bpffs).join(version))?;
    let places = names
        .iter()
        .filter_map(|name| match name.strip_prefix(ASIDE) {
            Some(name) => Some((unescape(name)?, true)),
            None => Some((unescape(name)?, false)),
        });
    let mut places: Vec<_> = places.collect();
    places.sort_by(|(name, is_aside), (other, other_is_aside)| {
        (is_aside, name).cmp(&(other_is_aside, other))
    });
    Ok(places)
}

/// The directory of all versions.
fn versions(bpffs: &Path) -> PathBuf {
    bpffs.join("neighsteer")
}

/// The names of the ABI versions' directories.
pub(crate) fn version_names(bpffs: &Path) -> io::Result<Vec<String>> {
    let versions = versions(bpffs);
    let mut names = entries(&versions)?;
    names.retain(|name| name.starts_with('v') && versions.join(name).is_dir());
    Ok(names)
}

/// The name of our own ABI version's directory.
pub(crate) fn own_version() -> String {
    format!("v{}", abi::VERSION)
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::datapath::{owners, renamed::rename};

    /// Those of our own version whose pins are in their place.
    fn interfaces(bpffs: &Path) -> io::Result<Vec<String>> {
        let places = places(bpffs, &own_version())?.into_iter();
        let in_place = places.filter(|(_, is_aside)| !is_aside);
        Ok(in_place.map(|(interface, _)| interface).collect())
    }

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
        let ours = own_version();
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
        let ours = own_version();
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
        let pins = owners::of_interface(bpffs.path(), "eth0.5").unwrap();
        assert_eq!(pins.len(), 2);
        for pins in &pins {
            assert!(pins.remove_all().unwrap());
            assert!(!pins.remove_all().unwrap(), "twice");
        }
        assert_eq!(all(), BTreeSet::from(["eth1".into()]));
    }

    #[test]
    fn pins_go_along_with_a_name() {
        let bpffs = tempfile::tempdir().unwrap();
        let old = Pins::new(bpffs.path(), "pf0hpf");
        fs::create_dir_all(old.directory()).unwrap();
        fs::write(old.program(), "").unwrap();
        assert!(rename(bpffs.path(), "pf0hpf", "host0").unwrap());
        assert_eq!(interfaces(bpffs.path()).unwrap(), ["host0"]);
        assert!(!rename(bpffs.path(), "pf0hpf", "host0").unwrap());
        fs::create_dir_all(old.directory()).unwrap();
        fs::write(old.program(), "").unwrap();
        // What is there is of no interface that lives.
        assert!(rename(bpffs.path(), "pf0hpf", "host0").unwrap());
        fs::create_dir_all(old.directory()).unwrap();
        let new = Pins::new(bpffs.path(), "host0");
        fs::create_dir(new.directory().join("unmovable")).unwrap();
        let error = rename(bpffs.path(), "pf0hpf", "host0").unwrap_err();
        assert!(error.to_string().contains("unmovable"), "{error}");
    }

    #[test]
    fn what_cannot_be_removed_keeps_nothing_else() {
        let bpffs = tempfile::tempdir().unwrap();
        let pins = Pins::new(bpffs.path(), "eth0");
        let inner = pins.directory().join("a");
        fs::create_dir_all(&inner).unwrap();
        fs::write(pins.program(), "").unwrap();
        let (failed, _) = pins.remove_all().unwrap_err();
        assert_eq!(failed, inner);
        assert!(!pins.program().exists());
    }

    #[test]
    fn pins_that_wait_are_no_interfaces_and_are_found_by_its_name() {
        let bpffs = tempfile::tempdir().unwrap();
        let ours = own_version();
        let aside = Pins::aside(bpffs.path(), &ours, "eth0.5");
        fs::create_dir_all(aside.directory()).unwrap();
        assert!(interfaces(bpffs.path()).unwrap().is_empty());
        let all = interfaces_of_every_version(bpffs.path()).unwrap();
        assert_eq!(all, BTreeSet::from(["eth0.5".into()]));
        let pins = owners::of_interface(bpffs.path(), "eth0.5").unwrap();
        assert_eq!(pins[0].directory(), aside.directory());
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
