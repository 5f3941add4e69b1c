//! Changes of rows as `monitor_cond_since` and `update3` send them (`<table-updates2>` in
//! ovsdb-server(7)).

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{decode::DatumSeed, schema::Layout};
use crate::ovsdb::{
    cache::Interner,
    value::{Datum, Uuid},
};

/// What happened to one row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowUpdate {
    /// It is there, with these values in the order of the layout.
    Insert(Arc<[Datum]>),
    /// Columns changed: the new value, or a difference where
    /// [`super::schema::ColumnType::is_sent_as_difference`].
    Modify(Vec<(usize, Datum)>),
    /// It is gone, or the condition does not cover it any more.
    Delete,
}

/// Changes of rows, each with the place of its table among the layouts.
pub type Updates = Vec<(usize, Vec<(Uuid, RowUpdate)>)>;

/// What answers `monitor_cond_since`.
#[derive(Debug)]
pub struct MonitorReply {
    /// Whether `updates` are the differences since the transaction that was named; otherwise they
    /// are every row.
    pub found: bool,
    /// The newest transaction; nil where the server keeps none.
    pub last_transaction: Uuid,
    /// The rows.
    pub updates: Updates,
}

/// One `update3`.
#[derive(Debug)]
pub struct Update3 {
    /// The newest transaction; nil where the server keeps none.
    pub last_transaction: Uuid,
    /// The changes.
    pub updates: Updates,
}

/// Reads updates against layouts. Tables and columns that nobody asked for are passed over.
pub struct Decoder<'a> {
    layouts: &'a [Layout],
    interner: &'a mut Interner,
}

impl<'a> Decoder<'a> {
    /// A decoder whose values share the texts of `interner`.
    pub const fn new(layouts: &'a [Layout], interner: &'a mut Interner) -> Self {
        Self { layouts, interner }
    }

    /// Reads the result of `monitor_cond_since`.
    ///
    /// # Errors
    /// Where it is malformed or holds a value that does not fit its column.
    pub fn monitor_reply(mut self, result: &[u8]) -> Result<MonitorReply, serde_json::Error> {
        let (found, last_transaction, updates) = self.read(result, |_: &bool| true)?;
        Ok(MonitorReply {
            found,
            last_transaction,
            updates,
        })
    }

    /// Reads the params of an `update3`; `None` where it belongs to another monitor.
    ///
    /// # Errors
    /// Where it is malformed or holds a value that does not fit its column.
    pub fn update3(
        mut self,
        params: &[u8],
        monitor: &str,
    ) -> Result<Option<Update3>, serde_json::Error> {
        let is_ours =
            |owner: &&RawValue| serde_json::from_str::<&str>(owner.get()).ok() == Some(monitor);
        let (owner, last_transaction, updates) = self.read(params, is_ours)?;
        Ok(is_ours(&owner).then_some(Update3 {
            last_transaction,
            updates,
        }))
    }

    /// Reads the three elements that both have, the rows only where the first is as wanted.
    fn read<'de, H: Deserialize<'de>>(
        &mut self,
        json: &'de [u8],
        wanted: impl Fn(&H) -> bool,
    ) -> Result<(H, Uuid, Updates), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let read = deserializer.deserialize_seq(Triple {
            decoder: self,
            wanted,
            head: PhantomData,
        })?;
        deserializer.end()?;
        Ok(read)
    }
}

/// Reads `[head, last-txn-id, <table-updates2>]`.
struct Triple<'d, 'a, H, F> {
    decoder: &'d mut Decoder<'a>,
    wanted: F,
    head: PhantomData<H>,
}

impl<'de, H: Deserialize<'de>, F: Fn(&H) -> bool> Visitor<'de> for Triple<'_, '_, H, F> {
    type Value = (H, Uuid, Updates);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of three elements, the rows last")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let short = || A::Error::custom("an array of fewer than three elements");
        let head: H = seq.next_element()?.ok_or_else(short)?;
        if !(self.wanted)(&head) {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok((head, Uuid::NIL, Updates::new()));
        }
        let last_transaction = seq.next_element()?.ok_or_else(short)?;
        let updates = seq.next_element_seed(self.decoder)?.ok_or_else(short)?;
        Ok((head, last_transaction, updates))
    }
}

impl<'de> DeserializeSeed<'de> for &mut Decoder<'_> {
    type Value = Updates;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Updates, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Decoder<'_> {
    type Value = Updates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Updates, A::Error> {
        let mut updates = Vec::new();
        while let Some(table) =
            map.next_key_seed(NameSeed(self.layouts.iter().map(|layout| &layout.table)))?
        {
            match table.and_then(|index| Some((index, self.layouts.get(index)?))) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some((index, layout)) => {
                    let rows = map.next_value_seed(RowsSeed {
                        layout,
                        interner: self.interner,
                    })?;
                    updates.push((index, rows));
                }
            }
        }
        Ok(updates)
    }
}

/// Reads a name as its place among known ones.
struct NameSeed<I>(I);

impl<'de, 'n, I: Iterator<Item = &'n Arc<str>>> DeserializeSeed<'de> for NameSeed<I> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'n, I: Iterator<Item = &'n Arc<str>>> Visitor<'_> for NameSeed<I> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(mut self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.position(|known| &**known == name))
    }
}

/// Reads the changed rows of one table.
struct RowsSeed<'a> {
    layout: &'a Layout,
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for RowsSeed<'_> {
    type Value = Vec<(Uuid, RowUpdate)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_> {
    type Value = Vec<(Uuid, RowUpdate)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of rows")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        while let Some(uuid) = map.next_key::<Uuid>()? {
            let update = map.next_value_seed(UpdateSeed {
                layout: self.layout,
                interner: &mut *self.interner,
            })?;
            rows.push((uuid, update));
        }
        Ok(rows)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Initial,
    Insert,
    Modify,
    Delete,
}

/// Reads what happened to one row.
struct UpdateSeed<'a> {
    layout: &'a Layout,
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for UpdateSeed<'_> {
    type Value = RowUpdate;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for UpdateSeed<'_> {
    type Value = RowUpdate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of initial, insert, modify and delete")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let layout = self.layout;
        let columns = ColumnsSeed {
            layout,
            interner: self.interner,
        };
        let update = match map.next_key::<Kind>()? {
            None => return Err(A::Error::custom("an update of a row that says nothing")),
            Some(Kind::Initial | Kind::Insert) => {
                let mut values = layout.defaults.clone();
                for (index, value) in map.next_value_seed(columns)? {
                    if let Some(slot) = values.get_mut(index) {
                        *slot = value;
                    }
                }
                RowUpdate::Insert(values.into())
            }
            Some(Kind::Modify) => RowUpdate::Modify(map.next_value_seed(columns)?),
            Some(Kind::Delete) => {
                map.next_value::<IgnoredAny>()?;
                RowUpdate::Delete
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(update),
            Some(_) => Err(A::Error::custom("an update of a row that says two things")),
        }
    }
}

/// Reads columns with their values.
struct ColumnsSeed<'a> {
    layout: &'a Layout,
    interner: &'a mut Interner,
}

impl<'de> DeserializeSeed<'de> for ColumnsSeed<'_> {
    type Value = Vec<(usize, Datum)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ColumnsSeed<'_> {
    type Value = Vec<(usize, Datum)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of columns")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let layout = self.layout;
        let mut values = Vec::new();
        while let Some(found) = map.next_key_seed(NameSeed(layout.columns.iter()))? {
            let typed = found.and_then(|index| Some((index, layout.types.get(index)?)));
            let Some((index, kind)) = typed else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let written = map.next_value_seed(DatumSeed {
                interner: &mut *self.interner,
            })?;
            let value = kind.conform(written).map_err(|mismatch| {
                let column = layout.columns.get(index).map_or("", |name| name);
                A::Error::custom(format_args!(
                    "column {column} of table {}: {mismatch}",
                    layout.table
                ))
            })?;
            values.push((index, value));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
