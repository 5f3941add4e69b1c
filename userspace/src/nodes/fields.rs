//! Fields of objects as JSON has them.

use std::{net::IpAddr, sync::Arc};

use serde_json::Value;

use super::Problem;
use crate::{ids::Mac, topology::Prefix};

/// So many characters of what cannot be read are repeated: an annotation may hold 256 KiB.
const QUOTED: usize = 80;

/// An object that cannot be told from others, and so counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// No `metadata.name`, or one that no object of Kubernetes can have (RFC 1123).
    #[error("it has no metadata.name that an object can have")]
    NoName,
    /// A field without which the object means nothing.
    #[error("{name} has no {field}")]
    Missing {
        /// The object's name.
        name: Arc<str>,
        /// What is missing.
        field: &'static str,
    },
}

/// `metadata.name`.
pub(super) fn name(object: &Value) -> Result<Arc<str>, ObjectError> {
    text(object.pointer("/metadata/name"))
        .filter(|name| is_name(name))
        .map(Arc::from)
        .ok_or(ObjectError::NoName)
}

/// Whether a text can be the name of an object. Only such ones are repeated in a log or on a terminal.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 253 && bytes.all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it))
}

/// A text that is not empty.
pub(super) fn text(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// What is missing counts as empty, as it does for those who write these objects.
pub(super) fn entries<'a>(
    value: Option<&'a Value>,
    what: &'static str,
    problems: &mut Vec<Problem>,
) -> &'a [Value] {
    match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            problems.push(unreadable(what, format!("{} is no list", quoted(other))));
            &[]
        }
    }
}

/// A MAC that a node can have.
pub(super) fn mac(value: Option<&Value>, what: &'static str) -> Result<Mac, Problem> {
    let text = match value {
        None | Some(Value::Null) => return Err(Problem::Missing(what)),
        Some(Value::String(text)) if text.is_empty() => return Err(Problem::Missing(what)),
        Some(Value::String(text)) => text,
        Some(other) => return Err(unreadable(what, format!("{} is no text", quoted(other)))),
    };
    let mac: Mac = text
        .parse()
        .map_err(|_| unreadable(what, format!("{} is no MAC address", shorten(text))))?;
    if mac.is_zero() || mac.is_multicast() {
        return Err(Problem::UnusableMac(mac));
    }
    Ok(mac)
}

/// Adds an address with its prefix length.
pub(super) fn add_prefix(
    entry: &Value,
    what: &'static str,
    prefixes: &mut Vec<Prefix>,
    problems: &mut Vec<Problem>,
) {
    let prefix = entry
        .as_str()
        // A missing length would be taken as that of a single address.
        .filter(|text| text.contains('/'))
        .and_then(|text| text.parse::<Prefix>().ok());
    match prefix {
        Some(prefix) if !is_node_address(prefix.address) => {
            let problem = format!("{} is no address of a node", quoted(entry));
            problems.push(unreadable(what, problem));
        }
        Some(prefix) if prefixes.contains(&prefix) => {}
        Some(prefix) => prefixes.push(prefix),
        None => {
            let problem = format!("{} is no address with a prefix length", quoted(entry));
            problems.push(unreadable(what, problem));
        }
    }
}

/// An address that a node can have.
pub(super) fn address(entry: Option<&Value>) -> Result<IpAddr, String> {
    let Some(entry) = entry else {
        return Err("an entry has no address".to_owned());
    };
    entry
        .as_str()
        .and_then(|text| text.parse::<IpAddr>().ok())
        .filter(|address| is_node_address(*address))
        .ok_or_else(|| format!("{} is no address of a node", quoted(entry)))
}

fn is_node_address(address: IpAddr) -> bool {
    let mapped = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || mapped
        || broadcast)
}

pub(super) const fn unreadable(what: &'static str, problem: String) -> Problem {
    Problem::Unreadable { what, problem }
}

pub(super) fn quoted(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => shorten(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// In quotes, and not longer than a line.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
