//! A look at the files: which there are, which have changed, and what they hold.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    error::Error,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::parse::parse;
use crate::{
    nodes::{
        Inventory,
        manifest::{Kind, Manifest},
    },
    sources::text::with_causes,
};

/// No file may be larger than this, in bytes.
const LARGEST: u64 = 256 << 20;

/// The files as they were last seen.
#[derive(Debug)]
pub(super) struct Looker {
    path: PathBuf,
    files: BTreeMap<PathBuf, Known>,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Files have changed since the last look: they, and those that go with them, may change more.
    Restless,
    /// Nothing has changed since the last look.
    AtRest,
}

/// All that the files hold.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// The objects.
    pub(super) inventory: Inventory,
    /// Whether each file could be read once.
    pub(super) is_complete: bool,
    /// Which files count with what they held before, or not at all, and why.
    pub(super) errors: Vec<String>,
    /// Which objects do not count, and why.
    pub(super) refused: Vec<(Kind, String)>,
}

#[derive(Debug, Default)]
struct Known {
    /// As it was at the last look; `None` = it was missing.
    seen: Option<Fingerprint>,
    /// As it was when it was last read.
    read: Option<Fingerprint>,
    /// Its objects when it could last be parsed.
    manifest: Option<Manifest>,
    /// Why it could not be read since.
    error: Option<String>,
}

/// Changes whenever a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Looker {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            files: BTreeMap::new(),
        }
    }

    /// Where it looks.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks, and reads those that are at rest but not as they were read. Blocks.
    ///
    /// # Errors
    /// When the path, or the directory there, cannot be read: all stays as it was.
    pub(super) fn look(&mut self) -> io::Result<Look> {
        let mut present = files(&self.path)?;
        for path in self.files.keys() {
            present.entry(path.clone()).or_insert(None);
        }
        let mut look = Look::AtRest;
        for (path, now) in present {
            let mut file = match self.files.entry(path) {
                Entry::Occupied(file) => file,
                Entry::Vacant(place) => {
                    look = Look::Restless;
                    place.insert(Known {
                        seen: now,
                        ..Known::default()
                    });
                    continue;
                }
            };
            if file.get().seen != now {
                file.get_mut().seen = now;
                look = Look::Restless;
            } else if now.is_none() {
                // Missing twice in a row: nobody is just replacing it.
                file.remove();
            } else if file.get().read != now {
                let path = file.key().clone();
                file.get_mut().reread(&path);
                look = Look::Restless;
            }
        }
        Ok(look)
    }

    /// All that the files hold. Of two objects with one name, the one in the first file counts.
    pub(super) fn whole(&self) -> Whole {
        let mut whole = Whole {
            is_complete: true,
            ..Whole::default()
        };
        let (mut nodes, mut uplinks) = (BTreeMap::new(), BTreeMap::new());
        let refused = &mut whole.refused;
        for (path, file) in &self.files {
            whole.errors.extend(file.error.clone());
            let Some(manifest) = &file.manifest else {
                whole.is_complete = false;
                continue;
            };
            merge(Kind::Node, path, &manifest.nodes, &mut nodes, refused);
            let kind = Kind::UplinkState;
            merge(kind, path, &manifest.uplinks, &mut uplinks, refused);
            for (kind, error) in &manifest.bad {
                let path = path.display();
                refused.push((*kind, format!("{path}: a {kind} is left out: {error}")));
            }
        }
        whole.inventory = Inventory {
            nodes: owned(nodes),
            uplinks: owned(uplinks),
        };
        whole
    }
}

/// Objects by name, with the file that has them.
type Merged<'a, T> = BTreeMap<&'a Arc<str>, (&'a T, &'a Path)>;

fn merge<'a, T>(
    kind: Kind,
    path: &'a Path,
    objects: &'a [(Arc<str>, T)],
    merged: &mut Merged<'a, T>,
    refused: &mut Vec<(Kind, String)>,
) {
    for (name, object) in objects {
        match merged.entry(name) {
            Entry::Vacant(place) => drop(place.insert((object, path))),
            Entry::Occupied(first) => {
                let (path, first) = (path.display(), first.get().1.display());
                let error = format!("{path}: {kind} {name} is left out: {first} has it already");
                refused.push((kind, error));
            }
        }
    }
}

fn owned<T: Clone>(merged: Merged<'_, T>) -> BTreeMap<Arc<str>, T> {
    let objects = merged.into_iter();
    objects
        .map(|(name, (object, _))| (Arc::clone(name), object.clone()))
        .collect()
}

impl Known {
    /// Reads it; what it held before stays where that fails.
    fn reread(&mut self, path: &Path) {
        match read(path) {
            // Somebody wrote meanwhile: the next look sees it.
            Ok((_, fingerprint)) if Some(fingerprint) != self.seen => self.seen = Some(fingerprint),
            Ok((bytes, fingerprint)) => {
                self.read = Some(fingerprint);
                match parse(&bytes) {
                    Ok(manifest) => {
                        self.manifest = Some(manifest);
                        self.error = None;
                    }
                    Err(error) => self.error = Some(told(path, &error, self.manifest.is_some())),
                }
            }
            Err(error) => {
                // Not before it has changed: a look in vain is none that finds something new.
                self.read = self.seen;
                self.error = Some(told(path, &error, self.manifest.is_some()));
            }
        }
    }
}

impl Fingerprint {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The manifests and what they are like; links are followed.
fn files(path: &Path) -> io::Result<BTreeMap<PathBuf, Option<Fingerprint>>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok([(path.to_owned(), Some(Fingerprint::of(&metadata)))].into());
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if !is_manifest(&path) {
            continue;
        }
        // A link without target, or a file that went meanwhile, is missing.
        if let Ok(metadata) = fs::metadata(&path)
            && metadata.is_file()
        {
            files.insert(path, Some(Fingerprint::of(&metadata)));
        }
    }
    Ok(files)
}

/// By its name: editors and kubelet keep files of their own that start with a dot.
fn is_manifest(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = path.extension().and_then(|extension| extension.to_str());
    !hidden && matches!(extension, Some("yaml" | "yml" | "json"))
}

fn read(path: &Path) -> io::Result<(Vec<u8>, Fingerprint)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let length = file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
    if length as u64 > LARGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {} MiB", LARGEST >> 20),
        ));
    }
    // Of the name, not of what was opened: it may be another file by now.
    Ok((bytes, Fingerprint::of(&fs::metadata(path)?)))
}

/// Why a file does not count.
fn told(path: &Path, error: &dyn Error, has_former: bool) -> String {
    let kept = if has_former {
        " (what it held before is kept)"
    } else {
        ""
    };
    format!("{}: {}{kept}", path.display(), with_causes(error))
}
