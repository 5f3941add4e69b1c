//! The monitored rows, kept up to date by snapshots and differences.

pub mod diff;
mod interner;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

pub use interner::Interner;

use super::{
    value::{Datum, Row, Uuid},
    wire::{
        schema::Layout,
        updates::{RowUpdate, Updates},
    },
};

/// A row that came, changed or went. A row also comes or goes when the monitor's condition starts
/// or ceases to cover it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its table.
    pub table: Arc<str>,
    /// The row.
    pub uuid: Uuid,
    /// What it was; `None` for a new row.
    pub old: Option<Row>,
    /// What it is; `None` for one that is gone.
    pub new: Option<Row>,
}

/// The rows of one table.
#[derive(Debug, Default)]
struct TableCache {
    /// A tree: a hash table whose rows come and go uses up its places, and doubles although it holds
    /// no more than before.
    rows: BTreeMap<Uuid, Row>,
}

/// The rows of every monitored table.
#[derive(Debug, Default)]
pub struct Cache {
    layouts: Vec<Layout>,
    /// In the order of `layouts`.
    tables: Vec<TableCache>,
    /// Shared texts.
    pub interner: Interner,
}

/// Updates that do not fit the cache: it has lost touch and needs a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A difference for a row that is not there.
    #[error("table {table}: a change of row {uuid}, which is not cached")]
    UnknownRow {
        /// The table.
        table: Arc<str>,
        /// The row.
        uuid: Uuid,
    },
    /// A snapshot held something else than rows.
    #[error("table {table}: a snapshot with a change of row {uuid}")]
    NotASnapshot {
        /// The table.
        table: Arc<str>,
        /// The row.
        uuid: Uuid,
    },
}

impl Cache {
    /// The layouts that updates refer to.
    #[must_use]
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// The layouts together with the shared texts, for a decoder.
    pub fn decoder_parts(&mut self) -> (&[Layout], &mut Interner) {
        (&self.layouts, &mut self.interner)
    }

    /// Takes over the layouts of a new connection, for the same tables in the same order. Rows
    /// stay, so that the next snapshot yields only differences. `false` where the layouts are the
    /// ones it had.
    pub fn set_layouts(&mut self, layouts: Vec<Layout>) -> bool {
        let changed = layouts != self.layouts;
        if changed {
            self.tables.resize_with(layouts.len(), TableCache::default);
            self.layouts = layouts;
        }
        changed
    }

    /// The rows of a table, by its place among the layouts.
    pub fn rows(&self, table: usize) -> impl Iterator<Item = (Uuid, &Row)> {
        self.tables
            .get(table)
            .into_iter()
            .flat_map(|table| table.rows.iter().map(|(uuid, row)| (*uuid, row)))
    }

    /// Hands out all rows of a table, which is empty then.
    pub fn take_rows(&mut self, table: usize) -> Vec<(Uuid, Row)> {
        self.tables
            .get_mut(table)
            .map(|table| std::mem::take(&mut table.rows).into_iter().collect())
            .unwrap_or_default()
    }

    /// Replaces everything by a snapshot; `changes` receives only what differs.
    ///
    /// # Errors
    /// Where the updates are no snapshot. `changes` then tells what was done so far.
    pub fn replace(
        &mut self,
        updates: Updates,
        changes: &mut Vec<Change>,
    ) -> Result<(), ApplyError> {
        let mut by_table: Vec<Vec<(Uuid, RowUpdate)>> = Vec::new();
        by_table.resize_with(self.layouts.len(), Vec::new);
        for (index, rows) in updates {
            match by_table.get_mut(index) {
                // A table is named once; to copy its rows would double what they take for a moment.
                Some(slot) if slot.is_empty() => *slot = rows,
                Some(slot) => slot.extend(rows),
                None => {}
            }
        }
        for ((layout, table), rows) in self.layouts.iter().zip(&mut self.tables).zip(by_table) {
            if !table.rows.is_empty() {
                let present: HashSet<Uuid> = rows.iter().map(|(uuid, _)| *uuid).collect();
                table.rows.retain(|uuid, row| {
                    let keep = present.contains(uuid);
                    if !keep {
                        changes.push(Change {
                            table: Arc::clone(&layout.table),
                            uuid: *uuid,
                            old: Some(row.clone()),
                            new: None,
                        });
                    }
                    keep
                });
            }
            let added = rows.len().saturating_sub(table.rows.len());
            changes.reserve_exact(added);
            for (uuid, update) in rows {
                match update {
                    RowUpdate::Insert(values) => table.put(layout, uuid, values, changes),
                    RowUpdate::Modify(_) | RowUpdate::Delete => {
                        return Err(ApplyError::NotASnapshot {
                            table: Arc::clone(&layout.table),
                            uuid,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies differences.
    ///
    /// # Errors
    /// Where they do not fit the rows. `changes` then tells what was done so far.
    pub fn apply(&mut self, updates: Updates, changes: &mut Vec<Change>) -> Result<(), ApplyError> {
        for (index, rows) in updates {
            let (Some(layout), Some(table)) = (self.layouts.get(index), self.tables.get_mut(index))
            else {
                continue;
            };
            for (uuid, update) in rows {
                match update {
                    RowUpdate::Insert(values) => table.put(layout, uuid, values, changes),
                    RowUpdate::Modify(columns) => table.modify(layout, uuid, columns, changes)?,
                    RowUpdate::Delete => table.remove(layout, uuid, changes),
                }
            }
        }
        Ok(())
    }
}

impl TableCache {
    fn put(
        &mut self,
        layout: &Layout,
        uuid: Uuid,
        values: Arc<[Datum]>,
        changes: &mut Vec<Change>,
    ) {
        let row = Row::from_shared(Arc::clone(&layout.columns), values);
        let old = match self.rows.get_mut(&uuid) {
            None => {
                self.rows.insert(uuid, row.clone());
                None
            }
            Some(known) if *known == row => return,
            Some(known) => Some(std::mem::replace(known, row.clone())),
        };
        changes.push(Change {
            table: Arc::clone(&layout.table),
            uuid,
            old,
            new: Some(row),
        });
    }

    fn modify(
        &mut self,
        layout: &Layout,
        uuid: Uuid,
        columns: Vec<(usize, Datum)>,
        changes: &mut Vec<Change>,
    ) -> Result<(), ApplyError> {
        let Some(known) = self.rows.get_mut(&uuid) else {
            return Err(ApplyError::UnknownRow {
                table: Arc::clone(&layout.table),
                uuid,
            });
        };
        let mut values = known.values().to_vec();
        for (index, sent) in columns {
            let (Some(value), Some(kind)) = (values.get_mut(index), layout.types.get(index)) else {
                continue;
            };
            *value = if kind.is_sent_as_difference() {
                diff::apply(value, sent)
            } else {
                sent
            };
        }
        let row = Row::from_shared(Arc::clone(&layout.columns), values.into());
        if *known != row {
            let old = std::mem::replace(known, row.clone());
            changes.push(Change {
                table: Arc::clone(&layout.table),
                uuid,
                old: Some(old),
                new: Some(row),
            });
        }
        Ok(())
    }

    fn remove(&mut self, layout: &Layout, uuid: Uuid, changes: &mut Vec<Change>) {
        // A row that came and went between two messages was never seen.
        if let Some(old) = self.rows.remove(&uuid) {
            changes.push(Change {
                table: Arc::clone(&layout.table),
                uuid,
                old: Some(old),
                new: None,
            });
        }
    }
}

#[cfg(test)]
mod tests;
