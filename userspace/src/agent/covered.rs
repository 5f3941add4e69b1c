//! Rows of some ports or datapaths only: which of them the monitor covers, and since when they are
//! known.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    ovsdb::{Clause, Client, MonitorCondition, NotMonitored, Uuid},
    rows::Table,
};

/// The rows of one table that the monitor was last asked to cover.
#[derive(Debug)]
pub struct Covered<K> {
    table: &'static str,
    clause: fn(&K) -> Clause,
    keys: BTreeSet<K>,
    /// Since which conditions all of them are known; `None` = they are.
    waiting_for: Option<u64>,
}

/// Rows of ports, by `logical_port`.
pub type CoveredPorts = Covered<Arc<str>>;

/// Datapaths, by their identity.
pub type CoveredDatapaths = Covered<Uuid>;

impl CoveredPorts {
    /// No ports: the monitor's request has to say so, too.
    #[must_use]
    pub fn of(table: &'static str) -> Self {
        Self::none(table, |port| Clause::equal("logical_port", &**port))
    }
}

impl CoveredDatapaths {
    /// No datapaths: the monitor's request has to say so, too.
    #[must_use]
    pub fn datapaths() -> Self {
        Self::none(Table::DatapathBinding.name(), |datapath| {
            Clause::equal("_uuid", *datapath)
        })
    }
}

impl<K: Ord> Covered<K> {
    fn none(table: &'static str, clause: fn(&K) -> Clause) -> Self {
        Self {
            table,
            clause,
            keys: BTreeSet::new(),
            waiting_for: None,
        }
    }

    /// Asks the monitor to cover these and no others; whether all of their rows are known. If not,
    /// [`Covered::reached`] will say so.
    ///
    /// # Errors
    /// Where the monitor does not cover the table.
    pub fn cover(&mut self, client: &Client, keys: BTreeSet<K>) -> Result<bool, NotMonitored> {
        if keys != self.keys {
            let condition = MonitorCondition::AnyOf(keys.iter().map(self.clause).collect());
            self.waiting_for = Some(client.set_condition(self.table, condition)?);
            self.keys = keys;
        }
        Ok(self.are_known())
    }

    /// Takes the conditions of a batch whose changes were taken; whether they are the first under which
    /// all rows are known.
    pub fn reached(&mut self, conditions: u64) -> bool {
        let reached = self.waiting_for.is_some_and(|it| conditions >= it);
        if reached {
            self.waiting_for = None;
        }
        reached
    }

    /// Whether all rows are known.
    #[must_use]
    pub const fn are_known(&self) -> bool {
        self.waiting_for.is_none()
    }

    /// The conditions that are waited for.
    #[cfg(test)]
    pub(super) const fn waits_for(&self) -> Option<u64> {
        self.waiting_for
    }
}
