//! The part of a database's schema that a monitor needs (RFC 7047, 3.2).

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::monitor::MonitorRequest;
use crate::ovsdb::value::{Atom, Datum, Uuid};

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicType {
    /// 64 bits, signed.
    Integer,
    /// A double.
    Real,
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
    /// A row.
    Uuid,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// The type of a value, or of a map's keys.
    pub key: AtomicType,
    /// The type of a map's values; `None` for a scalar or set.
    pub value: Option<AtomicType>,
    /// The least number of values: 0 or 1.
    pub min: u64,
    /// The largest number of values; `u64::MAX` means "unlimited".
    pub max: u64,
}

/// The monitored columns of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The table.
    pub table: Arc<str>,
    /// Names, in the order in which rows hold their values.
    pub columns: Arc<[Arc<str>]>,
    /// The columns' types, in the same order.
    pub types: Vec<ColumnType>,
    /// What a column holds when an `insert` does not mention it, in the same order.
    pub defaults: Vec<Datum>,
}

/// A schema that cannot be read, or lacks what the monitor asks for.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Not a schema at all.
    #[error("the schema of database {database} is malformed")]
    Malformed {
        /// The database.
        database: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A table is not there.
    #[error("database {database} (schema {version}) has no table {table}: is it too old?")]
    NoTable {
        /// The database.
        database: String,
        /// Its schema's version.
        version: String,
        /// The table.
        table: String,
    },
    /// A column is not there.
    #[error("table {table} (schema {version}) has no column {column}: is the database too old?")]
    NoColumn {
        /// The schema's version.
        version: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column's type is not one of RFC 7047.
    #[error("column {column} of table {table} has the unknown type {kind:?}")]
    UnknownType {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the schema says.
        kind: String,
    },
}

/// A value that does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {wanted}")]
pub struct TypeMismatch {
    /// What the column holds.
    wanted: &'static str,
}

impl AtomicType {
    fn parse(kind: &str) -> Option<Self> {
        Some(match kind {
            "integer" => Self::Integer,
            "real" => Self::Real,
            "boolean" => Self::Boolean,
            "string" => Self::String,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    /// The atom that stands where none was given (RFC 7047, 5.2.1).
    fn default_atom(self) -> Atom {
        match self {
            Self::Integer => Atom::Integer(0),
            Self::Real => Atom::Real(0.0),
            Self::Boolean => Atom::Boolean(false),
            Self::String => Atom::String("".into()),
            Self::Uuid => Atom::Uuid(Uuid::NIL),
        }
    }

    /// Checks an atom as it was written; JSON writes some reals as whole numbers.
    fn conform(self, atom: Atom) -> Result<Atom, TypeMismatch> {
        let wanted = match (self, atom) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a real that JSON wrote without a fraction was a double before"
            )]
            (Self::Real, Atom::Integer(number)) => return Ok(Atom::Real(number as f64)),
            (Self::Integer, atom @ Atom::Integer(_))
            | (Self::Real, atom @ Atom::Real(_))
            | (Self::Boolean, atom @ Atom::Boolean(_))
            | (Self::String, atom @ Atom::String(_))
            | (Self::Uuid, atom @ Atom::Uuid(_)) => return Ok(atom),
            (Self::Integer, _) => "an integer",
            (Self::Real, _) => "a real",
            (Self::Boolean, _) => "a boolean",
            (Self::String, _) => "a string",
            (Self::Uuid, _) => "a uuid",
        };
        Err(TypeMismatch { wanted })
    }
}

impl ColumnType {
    /// Whether the column holds exactly one value.
    #[must_use]
    pub const fn is_scalar(&self) -> bool {
        self.value.is_none() && self.min == 1 && self.max == 1
    }

    /// Whether a `modify` carries a difference rather than the new value. The server decides by
    /// the largest number of values: an optional scalar is sent whole.
    #[must_use]
    pub const fn is_sent_as_difference(&self) -> bool {
        self.max > 1
    }

    /// What the column holds when an `insert` does not mention it.
    #[must_use]
    pub fn default_datum(&self) -> Datum {
        let key = self.key.default_atom();
        match self.value {
            None if self.is_scalar() => Datum::Scalar(key),
            _ if self.min == 0 => match self.value {
                None => Datum::Set(Vec::new()),
                Some(_) => Datum::Map(Vec::new()),
            },
            None => Datum::Set(vec![key]),
            Some(value) => Datum::Map(vec![(key, value.default_atom())]),
        }
    }

    /// Brings a value as it was written into the shape of the column, sorted.
    ///
    /// # Errors
    /// Where it does not fit.
    pub fn conform(&self, written: Datum) -> Result<Datum, TypeMismatch> {
        match (self.value, written) {
            (None, Datum::Scalar(atom)) if self.is_scalar() => {
                self.key.conform(atom).map(Datum::Scalar)
            }
            (None, Datum::Set(atoms)) if self.is_scalar() => match <[Atom; 1]>::try_from(atoms) {
                Ok([atom]) => self.key.conform(atom).map(Datum::Scalar),
                Err(_) => Err(TypeMismatch {
                    wanted: "exactly one value",
                }),
            },
            // A set of one may be written as its element (RFC 7047, 5.1).
            (None, Datum::Scalar(atom)) => Ok(Datum::Set(vec![self.key.conform(atom)?])),
            (None, Datum::Set(atoms)) => atoms
                .into_iter()
                .map(|atom| self.key.conform(atom))
                .collect::<Result<Vec<_>, _>>()
                .map(Datum::set),
            (Some(value), Datum::Map(pairs)) => pairs
                .into_iter()
                .map(|(k, v)| Ok((self.key.conform(k)?, value.conform(v)?)))
                .collect::<Result<Vec<_>, _>>()
                .map(Datum::map),
            (Some(_), _) => Err(TypeMismatch { wanted: "a map" }),
            (None, Datum::Map(_)) => Err(TypeMismatch {
                wanted: "a scalar or a set",
            }),
        }
    }
}

#[derive(Deserialize)]
struct WrittenSchema<'a> {
    #[serde(default)]
    version: String,
    #[serde(borrow)]
    tables: HashMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenTable<'a> {
    #[serde(borrow)]
    columns: HashMap<String, WrittenColumn<'a>>,
}

#[derive(Deserialize)]
struct WrittenColumn<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenType {
    Atomic(String),
    Full {
        key: WrittenBase,
        value: Option<WrittenBase>,
        min: Option<u64>,
        max: Option<WrittenMax>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenBase {
    Atomic(String),
    Constrained {
        #[serde(rename = "type")]
        kind: String,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenMax {
    Number(u64),
    Word(String),
}

impl WrittenBase {
    fn parse(self) -> Result<AtomicType, String> {
        let (Self::Atomic(kind) | Self::Constrained { kind }) = self;
        AtomicType::parse(&kind).ok_or(kind)
    }
}

/// Reads a column's type; what cannot be read is handed back.
fn parse_type(raw: &RawValue) -> Result<ColumnType, String> {
    let written: WrittenType = serde_json::from_str(raw.get()).map_err(|_| raw.get().to_owned())?;
    Ok(match written {
        WrittenType::Atomic(kind) => ColumnType {
            key: AtomicType::parse(&kind).ok_or(kind)?,
            value: None,
            min: 1,
            max: 1,
        },
        WrittenType::Full {
            key,
            value,
            min,
            max,
        } => ColumnType {
            key: key.parse()?,
            value: value.map(WrittenBase::parse).transpose()?,
            min: min.unwrap_or(1),
            max: match max {
                None => 1,
                Some(WrittenMax::Number(number)) => number,
                Some(WrittenMax::Word(word)) if word == "unlimited" => u64::MAX,
                Some(WrittenMax::Word(word)) => return Err(word),
            },
        },
    })
}

/// Reads, out of a `get_schema` reply, the layouts of the tables of `request`, in its order.
///
/// # Errors
/// Where the schema is malformed or lacks a table or a column that is not optional. Tables that
/// nobody asked for may hold anything.
pub fn layouts(
    schema: &[u8],
    database: &str,
    request: &MonitorRequest,
) -> Result<Vec<Layout>, SchemaError> {
    let malformed = |source| SchemaError::Malformed {
        database: database.to_owned(),
        source,
    };
    let schema: WrittenSchema<'_> = serde_json::from_slice(schema).map_err(malformed)?;
    let mut layouts = Vec::with_capacity(request.tables.len());
    for wanted in &request.tables {
        let table = schema
            .tables
            .get(&*wanted.table)
            .ok_or_else(|| SchemaError::NoTable {
                database: database.to_owned(),
                version: schema.version.clone(),
                table: wanted.table.to_string(),
            })?;
        let table: WrittenTable<'_> = serde_json::from_str(table.get()).map_err(malformed)?;
        let mut columns = Vec::new();
        let mut types = Vec::new();
        for (column, required) in wanted.columns() {
            let Some(written) = table.columns.get(&**column) else {
                if !required {
                    continue;
                }
                return Err(SchemaError::NoColumn {
                    version: schema.version.clone(),
                    table: wanted.table.to_string(),
                    column: column.to_string(),
                });
            };
            types.push(
                parse_type(written.kind).map_err(|kind| SchemaError::UnknownType {
                    table: wanted.table.to_string(),
                    column: column.to_string(),
                    kind,
                })?,
            );
            columns.push(Arc::clone(column));
        }
        layouts.push(Layout {
            table: Arc::clone(&wanted.table),
            columns: columns.into(),
            defaults: types.iter().map(ColumnType::default_datum).collect(),
            types,
        });
    }
    Ok(layouts)
}

#[cfg(test)]
mod tests;
