//! What a client asks to be told about (`monitor_cond_since` in ovsdb-server(7)).

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{condition::Clause, schema::Layout};

/// The tables that a monitor covers. A table is named at most once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorRequest {
    /// One entry a table.
    pub tables: Vec<TableRequest>,
}

/// The monitored part of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRequest {
    /// The table.
    pub table: Arc<str>,
    /// Columns that must exist, then those that may be missing in older schemas.
    columns: Vec<(Arc<str>, bool)>,
    /// Which rows.
    pub condition: MonitorCondition,
}

/// Which rows of a table a monitor covers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MonitorCondition {
    /// All of them.
    #[default]
    Every,
    /// Those for which at least one clause holds; without any clause, none.
    AnyOf(Vec<Clause>),
}

impl MonitorRequest {
    /// A request without tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: TableRequest) -> Self {
        self.tables.push(table);
        self
    }

    /// The place of a table in the request.
    pub(crate) fn position(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|entry| &*entry.table == table)
    }
}

impl TableRequest {
    /// Every row of `table`, with these columns, all of which must exist.
    pub fn new<'a>(table: impl Into<Arc<str>>, columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            table: table.into(),
            columns: columns
                .into_iter()
                .map(|column| (column.into(), true))
                .collect(),
            condition: MonitorCondition::Every,
        }
    }

    /// Adds a column that rows have only where the database's schema has it.
    #[must_use]
    pub fn optional_column(mut self, column: impl Into<Arc<str>>) -> Self {
        self.columns.push((column.into(), false));
        self
    }

    /// Restricts the rows.
    #[must_use]
    pub fn filter(mut self, condition: MonitorCondition) -> Self {
        self.condition = condition;
        self
    }

    /// The columns, each with whether it must exist.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&Arc<str>, bool)> {
        self.columns
            .iter()
            .map(|(column, required)| (column, *required))
    }
}

impl Serialize for MonitorCondition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Every => [true].serialize(serializer),
            // An empty list would mean every row.
            Self::AnyOf(clauses) if clauses.is_empty() => [false].serialize(serializer),
            Self::AnyOf(clauses) => clauses.serialize(serializer),
        }
    }
}

/// The `<monitor-cond-requests>` of one connection: what was asked for, as far as the schema has it.
pub(crate) struct Requests<'a> {
    pub(crate) layouts: &'a [Layout],
    /// In the order of `layouts`.
    pub(crate) conditions: &'a [MonitorCondition],
}

impl Serialize for Requests<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.layouts.len()))?;
        for (layout, condition) in self.layouts.iter().zip(self.conditions) {
            map.serialize_entry(&layout.table, &[Request { layout, condition }])?;
        }
        map.end()
    }
}

struct Request<'a> {
    layout: &'a Layout,
    condition: &'a MonitorCondition,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("columns", &self.layout.columns)?;
        map.serialize_entry("where", self.condition)?;
        map.end()
    }
}

/// The `<monitor-cond-update-requests>` of `monitor_cond_change`.
pub(crate) struct ConditionChanges<'a>(pub(crate) Vec<(&'a str, &'a MonitorCondition)>);

impl Serialize for ConditionChanges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Change<'a>(&'a MonitorCondition);
        impl Serialize for Change<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("where", self.0)?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (table, condition) in &self.0 {
            map.serialize_entry(table, &[Change(condition)])?;
        }
        map.end()
    }
}
