//! What the server says to a transaction (RFC 7047, 4.1.3 and 5.2).

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{decode::DatumSeed, message::ServerError};
use crate::ovsdb::{
    cache::Interner,
    value::{Datum, Row, Uuid},
};

/// What an operation of a committed transaction did.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationResult {
    /// An insert.
    Inserted(Uuid),
    /// An update, delete or mutate, and how many rows it met.
    Count(u64),
    /// A select. Without a schema, a set of one value may come out as a scalar, and a real without
    /// a fraction as an integer; the accessors of [`Row`] allow for the former.
    Rows(Vec<Row>),
    /// A wait, comment or assertion of a lock.
    Done,
}

/// How far an operation of a transaction that was rolled back had come.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It alone would have been fine.
    Undone(OperationResult),
    /// It failed.
    Failed(OperationError),
    /// It was not tried, since one before it failed.
    Skipped,
}

/// A transaction that changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.summary())]
pub struct Aborted {
    /// One entry an operation, in order.
    pub operations: Vec<Outcome>,
    /// What failed when all operations together were to be committed: the extra last element of
    /// the result, such as a duplicate in an index.
    pub commit: Option<OperationError>,
}

/// Why an operation, or the commit of all, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.error, self.details.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
pub struct OperationError {
    /// Which kind.
    pub kind: ErrorKind,
    /// The server's word for it.
    pub error: String,
    /// For people.
    pub details: Option<String>,
}

/// The kinds of error that callers tell apart (RFC 7047, 5.2 and ovsdb-server(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An index, a limit on rows or a column's constraint would be violated.
    ConstraintViolation,
    /// A row would refer to one that is not there.
    ReferentialIntegrity,
    /// A condition of a `wait` was not met in time.
    TimedOut,
    /// The server has no room, on disk or in memory.
    NoResources,
    /// The server could not write its file.
    InputOutput,
    /// A server of a cluster lost its leader, or cannot write.
    NotLeader,
    /// A lock that was asserted is not held.
    NotOwner,
    /// The client asked for the abort.
    Aborted,
    /// Two inserts chose one identity, or a row has it already.
    DuplicateUuid,
    /// The operation is malformed.
    Syntax,
    /// Anything else.
    Other,
}

/// A transaction's result that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the result of a transaction of {operations} operations is malformed")]
pub struct OutcomeError {
    /// How many operations were sent.
    pub operations: usize,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

impl ErrorKind {
    fn parse(error: &str) -> Self {
        match error {
            "constraint violation" => Self::ConstraintViolation,
            "referential integrity violation" => Self::ReferentialIntegrity,
            "timed out" => Self::TimedOut,
            "resources exhausted" => Self::NoResources,
            "I/O error" => Self::InputOutput,
            "not leader" | "cluster error" => Self::NotLeader,
            "not owner" => Self::NotOwner,
            "aborted" => Self::Aborted,
            "duplicate uuid" | "duplicate uuid-name" => Self::DuplicateUuid,
            "syntax error" | "unknown column" | "unknown table" => Self::Syntax,
            _ => Self::Other,
        }
    }
}

impl OperationError {
    fn parse(raw: &RawValue) -> Self {
        let ServerError { error, details } = ServerError::parse(raw);
        Self {
            kind: ErrorKind::parse(&error),
            error,
            details,
        }
    }

    /// The rows that the details name: for a duplicate in an index, both rows; for a broken
    /// reference, the row and the one that is missing.
    #[must_use]
    pub fn rows(&self) -> Vec<Uuid> {
        let text = self.details.as_deref().unwrap_or_default();
        text.split(|c: char| !c.is_ascii_hexdigit() && c != '-')
            .filter(|word| word.len() == 36)
            .filter_map(|word| word.parse().ok())
            .collect()
    }
}

impl Aborted {
    /// The first failure, with the place of its operation; `None` for that of the commit.
    #[must_use]
    pub fn cause(&self) -> Option<(Option<usize>, &OperationError)> {
        self.operations
            .iter()
            .enumerate()
            .find_map(|(index, outcome)| match outcome {
                Outcome::Failed(error) => Some((Some(index), error)),
                Outcome::Undone(_) | Outcome::Skipped => None,
            })
            .or_else(|| self.commit.as_ref().map(|error| (None, error)))
    }

    fn summary(&self) -> String {
        let total = self.operations.len();
        match self.cause() {
            Some((Some(index), error)) => {
                format!("operation {} of {total} failed: {error}", index + 1)
            }
            Some((None, error)) => format!("the commit of {total} operations failed: {error}"),
            None => format!("{total} operations were undone"),
        }
    }
}

/// Reads the result of a transaction of `operations` operations.
///
/// # Errors
/// Where it is malformed; the transaction may have been committed.
pub fn parse_outcome(
    result: &[u8],
    operations: usize,
) -> Result<Result<Vec<OperationResult>, Aborted>, OutcomeError> {
    let malformed = |source| OutcomeError { operations, source };
    // Not `Vec<Option<_>>` of anything owned: a select's rows are read in place.
    let elements: Vec<Option<&RawValue>> = serde_json::from_slice(result).map_err(malformed)?;
    let mut outcomes = Vec::with_capacity(operations);
    let mut commit = None;
    let mut failed = false;
    for (index, element) in elements.into_iter().enumerate() {
        let outcome = match element {
            None => Outcome::Skipped,
            Some(raw) => read_element(raw).map_err(malformed)?,
        };
        failed |= !matches!(outcome, Outcome::Undone(_));
        match outcome {
            Outcome::Failed(error) if index >= operations => commit = Some(error),
            _ if index >= operations => {}
            outcome => outcomes.push(outcome),
        }
    }
    if outcomes.len() < operations {
        failed = true;
        outcomes.resize(operations, Outcome::Skipped);
    }
    if failed {
        return Ok(Err(Aborted {
            operations: outcomes,
            commit,
        }));
    }
    Ok(Ok(outcomes
        .into_iter()
        .filter_map(|outcome| match outcome {
            Outcome::Undone(result) => Some(result),
            Outcome::Failed(_) | Outcome::Skipped => None,
        })
        .collect()))
}

#[derive(Deserialize)]
struct Element<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    uuid: Option<NamedUuid>,
    #[serde(default)]
    count: Option<u64>,
    #[serde(borrow, default)]
    rows: Option<Vec<&'a RawValue>>,
}

/// `["uuid", "..."]`.
#[derive(Deserialize)]
struct NamedUuid(UuidTag, Uuid);

#[derive(Deserialize)]
enum UuidTag {
    #[serde(rename = "uuid")]
    Uuid,
}

fn read_element(raw: &RawValue) -> Result<Outcome, serde_json::Error> {
    let element: Element<'_> = serde_json::from_str(raw.get())?;
    Ok(if element.error.is_some() {
        Outcome::Failed(OperationError::parse(raw))
    } else if let Some(NamedUuid(UuidTag::Uuid, uuid)) = element.uuid {
        Outcome::Undone(OperationResult::Inserted(uuid))
    } else if let Some(count) = element.count {
        Outcome::Undone(OperationResult::Count(count))
    } else if let Some(rows) = element.rows {
        let mut interner = Interner::default();
        let rows = rows
            .into_iter()
            .map(|row| {
                RowSeed(&mut interner)
                    .deserialize(&mut serde_json::Deserializer::from_str(row.get()))
            })
            .collect::<Result<_, _>>()?;
        Outcome::Undone(OperationResult::Rows(rows))
    } else {
        Outcome::Undone(OperationResult::Done)
    })
}

/// Reads a selected row as it is written.
struct RowSeed<'a>(&'a mut Interner);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Row;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of columns")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut row: BTreeMap<Arc<str>, Datum> = BTreeMap::new();
        while let Some(column) = map.next_key::<String>()? {
            let value = map.next_value_seed(DatumSeed {
                interner: &mut *self.0,
            })?;
            row.insert(self.0.share(&column), value);
        }
        let (columns, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        Ok(Row::from_shared(columns.into(), values.into()))
    }
}

#[cfg(test)]
mod tests;
