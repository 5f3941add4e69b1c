//! A northbound server as far as static bindings go: unique by port and text, all or nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    ids::Mac,
    ovsdb::Uuid,
    statics::{Batch, BatchId, Failure, FailureKind, RowWrite, StaticRow},
};

/// What a client is told, in the order in which it happened.
#[derive(Clone, Debug)]
pub(in crate::statics) enum Told {
    Row(StaticRow),
    Gone(Uuid),
    Outcome(BatchId, Result<Vec<usize>, Failure>),
}

#[derive(Debug)]
pub(in crate::statics) struct Server {
    /// With the text of the address.
    pub(in crate::statics) rows: BTreeMap<Uuid, (StaticRow, String)>,
    /// The router ports that exist.
    pub(in crate::statics) ports: BTreeMap<Arc<str>, Uuid>,
    pub(in crate::statics) telling: VecDeque<Told>,
    /// How the next transaction is refused.
    pub(in crate::statics) refuse: Option<FailureKind>,
    /// Whether it says which row or guard is at fault.
    pub(in crate::statics) names_faults: bool,
    pub(in crate::statics) transactions: usize,
    pub(in crate::statics) written: usize,
    next: u128,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            ports: BTreeMap::new(),
            telling: VecDeque::new(),
            refuse: None,
            names_faults: true,
            transactions: 0,
            written: 0,
            next: 1 << 80,
        }
    }
}

impl Server {
    pub(in crate::statics) fn find(&self, port: &str, text: &str) -> Option<Uuid> {
        let mut rows = self.rows.iter();
        rows.find(|(_, (row, spelt))| &*row.port == port && spelt == text)
            .map(|(uuid, _)| *uuid)
    }

    /// Somebody writes a row.
    pub(in crate::statics) fn put(
        &mut self,
        port: &str,
        text: &str,
        mac: Option<Mac>,
        overrides: bool,
    ) -> Uuid {
        let uuid = self.find(port, text).unwrap_or_else(|| {
            self.next += 1;
            Uuid(uuid::Uuid::from_u128(self.next))
        });
        let row = StaticRow {
            uuid,
            port: port.into(),
            ip: text.parse().ok(),
            mac,
            override_dynamic_mac: overrides,
        };
        self.rows.insert(uuid, (row.clone(), text.to_owned()));
        self.telling.push_back(Told::Row(row));
        uuid
    }

    pub(in crate::statics) fn delete(&mut self, uuid: Uuid) -> bool {
        let there = self.rows.remove(&uuid).is_some();
        if there {
            self.telling.push_back(Told::Gone(uuid));
        }
        there
    }

    pub(in crate::statics) fn transact(&mut self, batch: &Batch) {
        self.transactions += 1;
        let outcome = match self.refusal(batch) {
            Some(failure) => Err(failure),
            None => Ok(self.apply(batch)),
        };
        self.telling.push_back(Told::Outcome(batch.id, outcome));
    }

    fn refusal(&mut self, batch: &Batch) -> Option<Failure> {
        let failure = |kind, operations, guards| {
            Some(Failure {
                kind,
                operations,
                guards,
            })
        };
        if let Some(kind) = self.refuse.take() {
            return failure(kind, Vec::new(), Vec::new());
        }
        let broken = batch
            .guards
            .iter()
            .position(|guard| self.ports.get(&guard.port) != Some(&guard.port_row));
        let named = |position: usize| {
            if self.names_faults {
                vec![position]
            } else {
                Vec::new()
            }
        };
        if let Some(position) = broken {
            return failure(FailureKind::GuardFailed, Vec::new(), named(position));
        }
        let double = batch.operations.iter().position(|operation| {
            let inserts = matches!(operation.write, RowWrite::Insert { .. });
            inserts
                && self
                    .find(&operation.port, &operation.ip.to_string())
                    .is_some()
        });
        double
            .and_then(|position| failure(FailureKind::DuplicateIndex, named(position), Vec::new()))
    }

    fn apply(&mut self, batch: &Batch) -> Vec<usize> {
        let mut missed = Vec::new();
        for (position, operation) in batch.operations.iter().enumerate() {
            let port = &operation.port;
            let there = match operation.write {
                RowWrite::Insert { mac } => {
                    let guarded = batch.guards.iter().any(|guard| guard.port == *port);
                    assert!(guarded, "{operation:?} has no guard");
                    self.put(port, &operation.ip.to_string(), Some(mac), true);
                    true
                }
                RowWrite::Update { uuid, mac } => match self.rows.get(&uuid).cloned() {
                    Some((row, text)) => {
                        assert_eq!(row.port, *port, "an update met another port's row");
                        self.put(port, &text, Some(mac), true);
                        true
                    }
                    None => false,
                },
                RowWrite::Delete { uuid } => self.delete(uuid),
            };
            if there {
                self.written += 1;
            } else {
                missed.push(position);
            }
        }
        missed
    }
}
