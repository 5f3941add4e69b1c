//! JSON-RPC 1.0 messages (RFC 7047, 4).

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message from the server; the parts are slices of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// What answers the request with this id.
    Reply {
        /// The request.
        id: u64,
        /// The result as JSON, or why there is none.
        result: Result<Bytes, ServerError>,
    },
    /// A question of the server's, to be answered with the same id.
    Request {
        /// JSON.
        id: Bytes,
        /// What is asked.
        method: String,
        /// JSON.
        params: Bytes,
    },
    /// News that need no answer.
    Notification {
        /// What kind.
        method: String,
        /// JSON.
        params: Bytes,
    },
}

/// An error that the server reports for a whole request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}{}", self.details.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
pub struct ServerError {
    /// In a few words, such as `unknown database`.
    pub error: String,
    /// For people.
    pub details: Option<String>,
}

/// A message that is no JSON-RPC.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// No JSON, or not of the right shape.
    #[error("a message of {length} bytes is malformed")]
    Malformed {
        /// Bytes.
        length: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Neither a request nor a reply to one of ours.
    #[error("a message that is neither a request nor a reply")]
    Unrecognised,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenError {
    Object {
        error: String,
        #[serde(default)]
        details: Option<String>,
    },
    Text(String),
}

impl ServerError {
    /// Reads an `<error>`; one of another shape is taken as it is.
    pub(crate) fn parse(raw: &RawValue) -> Self {
        match serde_json::from_str(raw.get()) {
            Ok(WrittenError::Object { error, details }) => Self { error, details },
            Ok(WrittenError::Text(error)) => Self {
                error,
                details: None,
            },
            Err(_) => Self {
                error: raw.get().to_owned(),
                details: None,
            },
        }
    }
}

impl Incoming {
    /// Reads a message.
    ///
    /// # Errors
    /// Where it is no JSON-RPC message.
    pub fn parse(frame: &Bytes) -> Result<Self, MessageError> {
        let envelope: Envelope<'_> =
            serde_json::from_slice(frame).map_err(|source| MessageError::Malformed {
                length: frame.len(),
                source,
            })?;
        let part = |raw: Option<&RawValue>| {
            raw.map_or(Bytes::from_static(b"null"), |raw| {
                frame.slice_ref(raw.get().as_bytes())
            })
        };
        if let Some(method) = envelope.method {
            let method = method.into_owned();
            let params = part(envelope.params);
            return Ok(match envelope.id {
                None => Self::Notification { method, params },
                Some(id) => Self::Request {
                    id: part(Some(id)),
                    method,
                    params,
                },
            });
        }
        let id = envelope.id.ok_or(MessageError::Unrecognised)?;
        Ok(Self::Reply {
            id: id.get().parse().map_err(|_| MessageError::Unrecognised)?,
            result: match envelope.error {
                Some(error) => Err(ServerError::parse(error)),
                None => Ok(part(envelope.result)),
            },
        })
    }
}

/// Appends a request whose `params` are JSON already.
pub fn write_request(output: &mut BytesMut, id: u64, method: &str, params: &[u8]) {
    let id = id.to_string();
    for part in [
        b"{\"id\":",
        id.as_bytes(),
        b",\"method\":\"",
        method.as_bytes(),
        b"\",\"params\":",
        params,
        b"}",
    ] {
        output.extend_from_slice(part);
    }
}

/// Appends a reply; `id` and `result` are JSON already.
pub fn write_reply(output: &mut BytesMut, id: &[u8], result: &[u8]) {
    for part in [
        b"{\"error\":null,\"id\":",
        id,
        b",\"result\":",
        result,
        b"}",
    ] {
        output.extend_from_slice(part);
    }
}

/// Appends the refusal of a request; `id` is JSON already.
pub fn write_refusal(output: &mut BytesMut, id: &[u8]) {
    for part in [
        b"{\"error\":\"unknown method\",\"id\":",
        id,
        b",\"result\":null}",
    ] {
        output.extend_from_slice(part);
    }
}

/// The params of a request as JSON. Values that JSON does not know end as `null`, which the
/// server refuses.
pub(crate) fn write_params<T: Serialize>(params: &T) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(256);
    if let Err(error) = serde_json::to_writer(&mut buffer, params) {
        // Only maps with keys that are no text fail, and nothing here has any.
        tracing::error!(%error, "request not serialised");
    }
    buffer
}

#[cfg(test)]
mod tests;
