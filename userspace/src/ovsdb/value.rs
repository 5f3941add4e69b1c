//! Values as the database holds them (RFC 7047, 5.1).

use std::{cmp::Ordering, collections::BTreeMap, fmt, str::FromStr, sync::Arc};

/// A row's identity.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub uuid::Uuid);

impl Uuid {
    /// All zero: no row has it, and a server that cannot resume a monitor answers it.
    pub const NIL: Self = Self(uuid::Uuid::nil());

    /// A fresh identity, for a row that is to be inserted under a chosen one.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4())
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Uuid {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl serde::Serialize for Uuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// One scalar. The order is total (reals as in IEEE 754, 5.10), so that sets and maps can be sorted.
#[derive(Clone, Debug)]
pub enum Atom {
    /// 64 bits, signed.
    Integer(i64),
    /// A double.
    Real(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// Any text without NUL.
    String(Arc<str>),
    /// A row of this or another table.
    Uuid(Uuid),
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // The cache shares its texts: most comparisons end at the pointer.
            (Self::String(a), Self::String(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => self.cmp(other).is_eq(),
        }
    }
}

impl Eq for Atom {}

impl Atom {
    /// The order between atoms of different types, which no column mixes.
    const fn rank(&self) -> u8 {
        match self {
            Self::Integer(_) => 0,
            Self::Real(_) => 1,
            Self::Boolean(_) => 2,
            Self::String(_) => 3,
            Self::Uuid(_) => 4,
        }
    }
}

/// The value of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// A column of exactly one value.
    Scalar(Atom),
    /// A column of any number of values (an optional scalar is one of at most one), sorted.
    Set(Vec<Atom>),
    /// A map, sorted by key.
    Map(Vec<(Atom, Atom)>),
}

impl Datum {
    /// A set of these values, sorted and without duplicates.
    pub fn set<T: Into<Atom>>(atoms: impl IntoIterator<Item = T>) -> Self {
        let mut atoms: Vec<Atom> = atoms.into_iter().map(Into::into).collect();
        atoms.sort_unstable();
        atoms.dedup();
        Self::Set(atoms)
    }

    /// A map of these pairs, sorted by key; of two pairs with one key the last is kept.
    pub fn map<K: Into<Atom>, V: Into<Atom>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut pairs: Vec<(Atom, Atom)> = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        pairs.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self::Map(pairs)
    }
}

impl From<i64> for Atom {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Atom {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<bool> for Atom {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<&str> for Atom {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Atom {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Arc<str>> for Atom {
    fn from(value: Arc<str>) -> Self {
        Self::String(value)
    }
}

impl From<&Arc<str>> for Atom {
    fn from(value: &Arc<str>) -> Self {
        Self::String(Arc::clone(value))
    }
}

impl From<Uuid> for Atom {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

impl<T: Into<Atom>> From<T> for Datum {
    fn from(value: T) -> Self {
        Self::Scalar(value.into())
    }
}

/// One row: the monitored columns of a table, `_uuid` aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Names, in the order of `values`.
    columns: Arc<[Arc<str>]>,
    /// Shared, so that the cache and its readers hold one copy.
    values: Arc<[Datum]>,
}

/// A column that is missing or holds something else than the reader expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column} is not {wanted}")]
pub struct RowError {
    /// The column.
    pub column: String,
    /// What it should have been.
    pub wanted: &'static str,
}

impl Row {
    /// A row out of parallel lists of names and values.
    ///
    /// # Errors
    /// Where the lists differ in length.
    pub fn new(columns: Arc<[Arc<str>]>, values: Vec<Datum>) -> Result<Self, RowError> {
        if columns.len() == values.len() {
            Ok(Self {
                columns,
                values: values.into(),
            })
        } else {
            Err(RowError {
                column: columns.join(","),
                wanted: "as many values as columns",
            })
        }
    }

    /// A row whose list of values has, by construction, the length of `columns`.
    pub(super) fn from_shared(columns: Arc<[Arc<str>]>, values: Arc<[Datum]>) -> Self {
        Self { columns, values }
    }

    /// Every column with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Datum)> {
        self.columns
            .iter()
            .map(|name| &**name)
            .zip(self.values.iter())
    }

    /// The values, in the order of the columns.
    pub(super) fn values(&self) -> &[Datum] {
        &self.values
    }

    /// The value of a column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Datum> {
        let index = self.columns.iter().position(|name| &**name == column)?;
        self.values.get(index)
    }

    /// A column of one value, or of at most one: `None` where it is empty.
    fn optional<'a, T>(
        &'a self,
        column: &str,
        wanted: &'static str,
        read: impl Fn(&'a Atom) -> Option<T>,
    ) -> Result<Option<T>, RowError> {
        let error = || RowError {
            column: column.to_owned(),
            wanted,
        };
        match self.get(column).ok_or_else(error)? {
            Datum::Scalar(atom) => read(atom).map(Some).ok_or_else(error),
            Datum::Set(atoms) => match atoms.as_slice() {
                [] => Ok(None),
                [atom] => read(atom).map(Some).ok_or_else(error),
                _ => Err(error()),
            },
            Datum::Map(_) => Err(error()),
        }
    }

    fn required<'a, T>(
        &'a self,
        column: &str,
        wanted: &'static str,
        read: impl Fn(&'a Atom) -> Option<T>,
    ) -> Result<T, RowError> {
        self.optional(column, wanted, read)?
            .ok_or_else(|| RowError {
                column: column.to_owned(),
                wanted,
            })
    }

    /// A text.
    ///
    /// # Errors
    /// Where the column is missing, empty or of another type.
    pub fn string(&self, column: &str) -> Result<Arc<str>, RowError> {
        self.required(column, "a string", |atom| match atom {
            Atom::String(text) => Some(Arc::clone(text)),
            _ => None,
        })
    }

    /// A text that may be absent.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn optional_string(&self, column: &str) -> Result<Option<Arc<str>>, RowError> {
        self.optional(column, "an optional string", |atom| match atom {
            Atom::String(text) => Some(Arc::clone(text)),
            _ => None,
        })
    }

    /// A whole number.
    ///
    /// # Errors
    /// Where the column is missing, empty or of another type.
    pub fn integer(&self, column: &str) -> Result<i64, RowError> {
        self.required(column, "an integer", |atom| match atom {
            Atom::Integer(number) => Some(*number),
            _ => None,
        })
    }

    /// A whole number that may be absent.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn optional_integer(&self, column: &str) -> Result<Option<i64>, RowError> {
        self.optional(column, "an optional integer", |atom| match atom {
            Atom::Integer(number) => Some(*number),
            _ => None,
        })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Where the column is missing, empty or of another type.
    pub fn boolean(&self, column: &str) -> Result<bool, RowError> {
        self.required(column, "a boolean", |atom| match atom {
            Atom::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    /// `true` or `false`, or absent.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn optional_boolean(&self, column: &str) -> Result<Option<bool>, RowError> {
        self.optional(column, "an optional boolean", |atom| match atom {
            Atom::Boolean(value) => Some(*value),
            _ => None,
        })
    }

    /// A reference to a row.
    ///
    /// # Errors
    /// Where the column is missing, empty or of another type.
    pub fn uuid(&self, column: &str) -> Result<Uuid, RowError> {
        self.required(column, "a uuid", |atom| match atom {
            Atom::Uuid(uuid) => Some(*uuid),
            _ => None,
        })
    }

    /// References to rows: a set, or one.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn uuids(&self, column: &str) -> Result<Vec<Uuid>, RowError> {
        self.set(column, "a set of uuids", |atom| match atom {
            Atom::Uuid(uuid) => Some(*uuid),
            _ => None,
        })
    }

    /// Texts: a set, or one.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn strings(&self, column: &str) -> Result<Vec<Arc<str>>, RowError> {
        self.set(column, "a set of strings", |atom| match atom {
            Atom::String(text) => Some(Arc::clone(text)),
            _ => None,
        })
    }

    fn set<T>(
        &self,
        column: &str,
        wanted: &'static str,
        read: impl Fn(&Atom) -> Option<T>,
    ) -> Result<Vec<T>, RowError> {
        let error = || RowError {
            column: column.to_owned(),
            wanted,
        };
        let atoms = match self.get(column).ok_or_else(error)? {
            Datum::Scalar(atom) => std::slice::from_ref(atom),
            Datum::Set(atoms) => atoms.as_slice(),
            Datum::Map(_) => return Err(error()),
        };
        atoms
            .iter()
            .map(|atom| read(atom).ok_or_else(error))
            .collect()
    }

    /// A map from text to text, such as `external_ids`.
    ///
    /// # Errors
    /// Where the column is missing or of another type.
    pub fn string_map(&self, column: &str) -> Result<BTreeMap<Arc<str>, Arc<str>>, RowError> {
        let error = || RowError {
            column: column.to_owned(),
            wanted: "a map of strings",
        };
        match self.get(column).ok_or_else(error)? {
            Datum::Map(pairs) => pairs
                .iter()
                .map(|pair| match pair {
                    (Atom::String(key), Atom::String(value)) => {
                        Ok((Arc::clone(key), Arc::clone(value)))
                    }
                    _ => Err(error()),
                })
                .collect(),
            _ => Err(error()),
        }
    }
}
