//! Conditions on rows (RFC 7047, 5.1, `<condition>`).

use std::borrow::Cow;

use serde::ser::{Serialize, Serializer};

use crate::ovsdb::value::{Atom, Datum, Uuid};

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Function {
    /// The same.
    #[serde(rename = "==")]
    Equal,
    /// Not the same.
    #[serde(rename = "!=")]
    NotEqual,
    /// A number below.
    #[serde(rename = "<")]
    Less,
    /// A number below or the same.
    #[serde(rename = "<=")]
    LessOrEqual,
    /// A number above.
    #[serde(rename = ">")]
    Greater,
    /// A number above or the same.
    #[serde(rename = ">=")]
    GreaterOrEqual,
    /// A set or map that has all of these.
    #[serde(rename = "includes")]
    Includes,
    /// A set or map that has none of these.
    #[serde(rename = "excludes")]
    Excludes,
}

/// One comparison of a column with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The column.
    pub column: Cow<'static, str>,
    /// How it is compared.
    pub function: Function,
    /// With what.
    pub value: Datum,
}

impl Clause {
    /// A comparison.
    pub fn new(
        column: impl Into<Cow<'static, str>>,
        function: Function,
        value: impl Into<Datum>,
    ) -> Self {
        Self {
            column: column.into(),
            function,
            value: value.into(),
        }
    }

    /// `column` holds exactly `value`.
    pub fn equal(column: impl Into<Cow<'static, str>>, value: impl Into<Datum>) -> Self {
        Self::new(column, Function::Equal, value)
    }

    /// The one row with this identity; the server finds it without a search.
    #[must_use]
    pub fn row(uuid: Uuid) -> Self {
        Self::equal("_uuid", Atom::Uuid(uuid))
    }
}

impl Serialize for Clause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.column, self.function, &self.value).serialize(serializer)
    }
}
