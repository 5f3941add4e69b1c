//! The corpus of named odd frames: `tests/corpus/*.json`, described in its README.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use neighsteer::ids::Mac;
use neighsteer_common::{Decision, Kind, Notes, OuterTag, Policy, Verdict};
use serde::Deserialize;

use crate::generate::Case;

/// One named frame.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file's name, without `.json`.
    pub name: String,
    /// What is odd about it, and where that was seen.
    pub description: String,
    /// The frame and what is known beside it.
    pub case: Case,
    /// The verdict that it must get.
    pub verdict: Verdict,
    /// Where ovs-vswitchd's own parser, and so `ofproto/trace`, reads it differently from the
    /// kernel's: what the flow table does with it there, and why.
    pub userspace: Option<(Decision, String)>,
}

/// A file of the corpus that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is not JSON of the shape that the README describes.
    #[error("{path} is not an entry of the corpus")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A field holds something else than its kind of value.
    #[error("{path}: {value:?} is no {wanted}")]
    Value {
        /// The file.
        path: PathBuf,
        /// What it holds.
        value: String,
        /// What it should hold.
        wanted: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    frame: Vec<String>,
    outer_tag: Option<FileTag>,
    bridge_mac: Mac,
    gateway_vlan: Option<u16>,
    #[serde(default)]
    node_addresses: Vec<IpAddr>,
    verdict: FileVerdict,
    userspace: Option<FileUserspace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTag {
    tpid: String,
    tci: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileVerdict {
    kind: String,
    decision: String,
    notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUserspace {
    decision: String,
    reason: String,
}

/// Every entry, by name.
///
/// # Errors
/// At the first file that cannot be used.
pub fn load() -> Result<Vec<Entry>, CorpusError> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"));
    let unreadable = |source| CorpusError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for file in fs::read_dir(folder).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Entry, CorpusError> {
    let text = fs::read(path).map_err(|source| CorpusError::Read {
        path: path.to_owned(),
        source,
    })?;
    let file: File = serde_json::from_slice(&text).map_err(|source| CorpusError::Parse {
        path: path.to_owned(),
        source,
    })?;
    let wrong = |value: &str, wanted| CorpusError::Value {
        path: path.to_owned(),
        value: value.to_owned(),
        wanted,
    };
    let number = |text: &str| {
        text.strip_prefix("0x")
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or_else(|| wrong(text, "16-bit number in hex"))
    };
    let decision = |name: &str| Decision::from_name(name).ok_or_else(|| wrong(name, "decision"));

    let mut frame = Vec::new();
    for line in &file.frame {
        unhex(line, &mut frame).ok_or_else(|| wrong(line, "row of hex bytes"))?;
    }
    let outer_tag = match &file.outer_tag {
        Some(tag) => Some(OuterTag {
            tpid: number(&tag.tpid)?,
            tci: number(&tag.tci)?,
        }),
        None => None,
    };
    let mut notes = Notes::default();
    for note in &file.verdict.notes {
        notes |= Notes::from_name(note).ok_or_else(|| wrong(note, "note"))?;
    }
    Ok(Entry {
        name: path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default(),
        description: file.description,
        case: Case {
            frame,
            outer_tag,
            policy: Policy {
                bridge_mac: file.bridge_mac.0,
                gateway_vlan: file.gateway_vlan,
                node_addresses: file.node_addresses.into_iter().collect(),
            },
        },
        verdict: Verdict {
            kind: Kind::from_name(&file.verdict.kind)
                .ok_or_else(|| wrong(&file.verdict.kind, "kind"))?,
            decision: decision(&file.verdict.decision)?,
            notes,
        },
        userspace: match &file.userspace {
            Some(userspace) => Some((decision(&userspace.decision)?, userspace.reason.clone())),
            None => None,
        },
    })
}

/// Appends the bytes of a row of hex digits; spaces may stand between bytes.
fn unhex(line: &str, bytes: &mut Vec<u8>) -> Option<()> {
    for part in line.split(' ') {
        if part.len() % 2 != 0 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for at in (0..part.len()).step_by(2) {
            bytes.push(u8::from_str_radix(&part[at..at + 2], 16).ok()?);
        }
    }
    Some(())
}
