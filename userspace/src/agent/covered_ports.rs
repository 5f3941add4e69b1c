//! Rows of some ports only: which of them the monitor covers, and since when they are known.

use std::{collections::BTreeSet, sync::Arc};

use crate::ovsdb::{Clause, Client, MonitorCondition, NotMonitored};

/// The ports whose rows of one table the monitor was last asked to cover, by `logical_port`.
#[derive(Debug)]
pub struct CoveredPorts {
    table: &'static str,
    ports: BTreeSet<Arc<str>>,
    /// Since which conditions the rows of all of them are known; `None` = they are.
    waiting_for: Option<u64>,
}

impl CoveredPorts {
    /// No ports: the monitor's request has to say so, too.
    #[must_use]
    pub const fn of(table: &'static str) -> Self {
        Self {
            table,
            ports: BTreeSet::new(),
            waiting_for: None,
        }
    }

    /// Asks the monitor to cover these ports and no others; whether all of their rows are known. If not,
    /// [`CoveredPorts::reached`] will say so.
    ///
    /// # Errors
    /// Where the monitor does not cover the table.
    pub fn cover(
        &mut self,
        client: &Client,
        ports: BTreeSet<Arc<str>>,
    ) -> Result<bool, NotMonitored> {
        if ports != self.ports {
            let clauses = ports
                .iter()
                .map(|port| Clause::equal("logical_port", &**port));
            let condition = MonitorCondition::AnyOf(clauses.collect());
            self.waiting_for = Some(client.set_condition(self.table, condition)?);
            self.ports = ports;
        }
        Ok(self.are_known())
    }

    /// Takes the conditions of a batch whose changes were taken; whether they are the first under which
    /// the rows of all ports are known.
    pub fn reached(&mut self, conditions: u64) -> bool {
        let reached = self.waiting_for.is_some_and(|it| conditions >= it);
        if reached {
            self.waiting_for = None;
        }
        reached
    }

    /// Whether the rows of all ports are known.
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
