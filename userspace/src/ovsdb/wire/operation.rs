//! Operations of a transaction (RFC 7047, 5.2).

use std::{borrow::Cow, time::Duration};

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::condition::Clause;
use crate::ovsdb::value::{Datum, Uuid};

/// The name of a table or column.
pub type Name = Cow<'static, str>;

/// One operation. The parts of a `where` must all hold; an empty one means every row.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Adds a row.
    Insert(Insert),
    /// Sets columns of rows.
    Update(Update),
    /// Removes rows.
    Delete(Delete),
    /// Reads rows. Without the column `_uuid`, the server returns only distinct ones.
    Select(Select),
    /// Changes columns of rows in place.
    Mutate(Mutate),
    /// Fails the transaction unless rows are as said.
    Wait(Wait),
    /// A text for the database's log.
    Comment(Name),
    /// Fails the transaction unless this client holds the lock of this name.
    Assert(Name),
    /// Fails the transaction, so that it shows what it would do.
    Abort,
}

/// A row to add. Columns that are not set get their default.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    table: Name,
    uuid: Option<Uuid>,
    row: Vec<(Name, Datum)>,
}

/// Columns to set.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    table: Name,
    conditions: Vec<Clause>,
    row: Vec<(Name, Datum)>,
}

/// Rows to remove.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    table: Name,
    conditions: Vec<Clause>,
}

/// Rows to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    table: Name,
    conditions: Vec<Clause>,
    columns: Vec<Name>,
}

/// Columns to change in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutate {
    table: Name,
    conditions: Vec<Clause>,
    mutations: Vec<(Name, Mutator, Datum)>,
}

/// Rows that must (or must not) hold these values.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    table: Name,
    conditions: Vec<Clause>,
    columns: Vec<Name>,
    equal: bool,
    rows: Vec<Vec<(Name, Datum)>>,
    timeout: Duration,
}

/// What [`Mutate`] does to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Mutator {
    /// Adds to a number.
    #[serde(rename = "+=")]
    Add,
    /// Takes from a number.
    #[serde(rename = "-=")]
    Subtract,
    /// Multiplies a number.
    #[serde(rename = "*=")]
    Multiply,
    /// Divides a number.
    #[serde(rename = "/=")]
    Divide,
    /// The remainder of an integer.
    #[serde(rename = "%=")]
    Remainder,
    /// Adds elements to a set, or pairs to a map whose keys it lacks.
    #[serde(rename = "insert")]
    Insert,
    /// Takes elements out of a set, or keys or pairs out of a map.
    #[serde(rename = "delete")]
    Delete,
}

impl Operation {
    /// A row to add to `table`.
    pub fn insert(table: impl Into<Name>) -> Insert {
        Insert {
            table: table.into(),
            uuid: None,
            row: Vec::new(),
        }
    }

    /// Columns to set, in every row of `table` until a condition is added.
    pub fn update(table: impl Into<Name>) -> Update {
        Update {
            table: table.into(),
            conditions: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Removes every row of `table` until a condition is added.
    pub fn delete(table: impl Into<Name>) -> Delete {
        Delete {
            table: table.into(),
            conditions: Vec::new(),
        }
    }

    /// Reads these columns of every row of `table` until a condition is added.
    pub fn select<C: Into<Name>>(
        table: impl Into<Name>,
        columns: impl IntoIterator<Item = C>,
    ) -> Select {
        Select {
            table: table.into(),
            conditions: Vec::new(),
            columns: columns.into_iter().map(Into::into).collect(),
        }
    }

    /// Changes columns in place, in every row of `table` until a condition is added.
    pub fn mutate(table: impl Into<Name>) -> Mutate {
        Mutate {
            table: table.into(),
            conditions: Vec::new(),
            mutations: Vec::new(),
        }
    }

    /// Requires these columns of the rows that match to hold what [`Wait::row`] adds; without a
    /// timeout the server decides at once.
    pub fn wait<C: Into<Name>>(
        table: impl Into<Name>,
        columns: impl IntoIterator<Item = C>,
    ) -> Wait {
        Wait {
            table: table.into(),
            conditions: Vec::new(),
            columns: columns.into_iter().map(Into::into).collect(),
            equal: true,
            rows: Vec::new(),
            timeout: Duration::ZERO,
        }
    }

    /// Fails the transaction unless this client holds the lock of this name.
    pub fn assert_lock(lock: impl Into<Name>) -> Self {
        Self::Assert(lock.into())
    }

    /// A text for the database's log.
    pub fn comment(text: impl Into<Name>) -> Self {
        Self::Comment(text.into())
    }
}

impl Insert {
    /// Chooses the row's identity (OVS ≥ 2.13), by which a repeated insert is recognised.
    #[must_use]
    pub const fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// Sets a column.
    #[must_use]
    pub fn set(mut self, column: impl Into<Name>, value: impl Into<Datum>) -> Self {
        self.row.push((column.into(), value.into()));
        self
    }
}

impl Update {
    /// Sets a column.
    #[must_use]
    pub fn set(mut self, column: impl Into<Name>, value: impl Into<Datum>) -> Self {
        self.row.push((column.into(), value.into()));
        self
    }
}

impl Mutate {
    /// Changes a column.
    #[must_use]
    pub fn change(
        mut self,
        column: impl Into<Name>,
        mutator: Mutator,
        value: impl Into<Datum>,
    ) -> Self {
        self.mutations.push((column.into(), mutator, value.into()));
        self
    }
}

impl Wait {
    /// Adds a row that must be there.
    #[must_use]
    pub fn row<C: Into<Name>>(mut self, row: impl IntoIterator<Item = (C, Datum)>) -> Self {
        self.rows.push(
            row.into_iter()
                .map(|(column, value)| (column.into(), value))
                .collect(),
        );
        self
    }

    /// Requires the rows to differ instead.
    #[must_use]
    pub const fn until_different(mut self) -> Self {
        self.equal = false;
        self
    }

    /// How long the server may wait for it (milliseconds on the wire).
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// The builders that have a `where`, and all as operations.
macro_rules! conditional {
    ($($builder:ident),*) => {$(
        impl $builder {
            /// Adds a condition to those that must hold.
            #[must_use]
            pub fn filter(mut self, clause: Clause) -> Self {
                self.conditions.push(clause);
                self
            }

            /// Restricts it to the row with this identity, which needs no search.
            #[must_use]
            pub fn by_uuid(self, uuid: Uuid) -> Self {
                self.filter(Clause::row(uuid))
            }
        }
    )*};
}
conditional!(Update, Delete, Select, Mutate, Wait);

macro_rules! into_operation {
    ($($builder:ident),*) => {$(
        impl From<$builder> for Operation {
            fn from(builder: $builder) -> Self {
                Self::$builder(builder)
            }
        }
    )*};
}
into_operation!(Insert, Update, Delete, Select, Mutate, Wait);

/// Columns with their values, as a JSON object.
struct Columns<'a>(&'a [(Name, Datum)]);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, value) in self.0 {
            map.serialize_entry(column, value)?;
        }
        map.end()
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Insert(insert) => {
                map.serialize_entry("op", "insert")?;
                map.serialize_entry("table", &insert.table)?;
                if let Some(uuid) = &insert.uuid {
                    map.serialize_entry("uuid", uuid)?;
                }
                map.serialize_entry("row", &Columns(&insert.row))?;
            }
            Self::Update(update) => {
                map.serialize_entry("op", "update")?;
                map.serialize_entry("table", &update.table)?;
                map.serialize_entry("where", &update.conditions)?;
                map.serialize_entry("row", &Columns(&update.row))?;
            }
            Self::Delete(delete) => {
                map.serialize_entry("op", "delete")?;
                map.serialize_entry("table", &delete.table)?;
                map.serialize_entry("where", &delete.conditions)?;
            }
            Self::Select(select) => {
                map.serialize_entry("op", "select")?;
                map.serialize_entry("table", &select.table)?;
                map.serialize_entry("where", &select.conditions)?;
                map.serialize_entry("columns", &select.columns)?;
            }
            Self::Mutate(mutate) => {
                map.serialize_entry("op", "mutate")?;
                map.serialize_entry("table", &mutate.table)?;
                map.serialize_entry("where", &mutate.conditions)?;
                map.serialize_entry("mutations", &mutate.mutations)?;
            }
            Self::Wait(wait) => {
                map.serialize_entry("op", "wait")?;
                map.serialize_entry("table", &wait.table)?;
                map.serialize_entry("where", &wait.conditions)?;
                map.serialize_entry("columns", &wait.columns)?;
                map.serialize_entry("until", if wait.equal { "==" } else { "!=" })?;
                let rows: Vec<_> = wait.rows.iter().map(|row| Columns(row)).collect();
                map.serialize_entry("rows", &rows)?;
                let timeout = u64::try_from(wait.timeout.as_millis()).unwrap_or(u64::MAX);
                map.serialize_entry("timeout", &timeout)?;
            }
            Self::Comment(text) => {
                map.serialize_entry("op", "comment")?;
                map.serialize_entry("comment", text)?;
            }
            Self::Assert(lock) => {
                map.serialize_entry("op", "assert")?;
                map.serialize_entry("lock", lock)?;
            }
            Self::Abort => map.serialize_entry("op", "abort")?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
