//! A southbound database in memory, as far as the mirror can tell.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use crate::{
    ids::Mac,
    mirror::{Batch, BatchId, BindingRow, Failure, FailureKind, RowWrite},
    ovsdb::Uuid,
};

/// What the server tells, in this order.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Row(BindingRow),
    Gone(Uuid),
    Outcome(BatchId, Result<Vec<usize>, Failure>),
}

/// `MAC_Binding` with its unique index, and the datapaths that its rows may refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) rows: BTreeMap<Uuid, BindingRow>,
    pub(super) datapaths: BTreeSet<Uuid>,
    pub(super) telling: VecDeque<Told>,
    /// What the next transaction is refused for, whatever it holds.
    pub(super) refuse: Option<FailureKind>,
    /// Whether errors name the rows at fault.
    pub(super) names_faults: bool,
    /// Rows written by transactions.
    pub(super) written: usize,
    pub(super) next: u128,
}

impl Server {
    pub(super) fn find(&self, port: &str, text: &str) -> Option<Uuid> {
        let mut rows = self.rows.values();
        rows.find(|row| &*row.port == port && &*row.ip_text == text)
            .map(|row| row.uuid)
    }

    /// Another client inserts or changes a row.
    pub(super) fn put(
        &mut self,
        port: &str,
        datapath: Uuid,
        text: &str,
        mac: Option<Mac>,
        timestamp: i64,
    ) {
        let uuid = self.find(port, text).unwrap_or_else(|| {
            self.next += 1;
            Uuid(uuid::Uuid::from_u128(self.next))
        });
        let row = BindingRow {
            uuid,
            port: port.into(),
            datapath,
            ip: text.parse().unwrap(),
            ip_text: text.into(),
            mac,
            timestamp,
        };
        self.rows.insert(uuid, row.clone());
        self.telling.push_back(Told::Row(row));
    }

    pub(super) fn delete(&mut self, uuid: Uuid) {
        if self.rows.remove(&uuid).is_some() {
            self.telling.push_back(Told::Gone(uuid));
        }
    }

    /// A router goes, and its rows with it.
    pub(super) fn delete_router(&mut self, port: &str, datapath: Uuid) {
        self.datapaths.remove(&datapath);
        let rows = self.rows.values().filter(|row| &*row.port == port);
        let rows: Vec<Uuid> = rows.map(|row| row.uuid).collect();
        for uuid in rows {
            self.delete(uuid);
        }
    }

    /// All of a transaction, or nothing. A timestamp ahead of `clock` would be the mirror's fault.
    pub(super) fn transact(&mut self, batch: &Batch, clock: i64) {
        let mut rows: BTreeSet<(Arc<str>, std::net::IpAddr)> = BTreeSet::new();
        for operation in &batch.operations {
            let timestamp = match &operation.write {
                RowWrite::Insert { timestamp, .. } | RowWrite::Update { timestamp, .. } => {
                    timestamp
                }
            };
            assert!(*timestamp <= clock, "{operation:?} is ahead of {clock}");
            assert!(
                rows.insert((operation.port.clone(), operation.ip)),
                "{operation:?} is in the batch twice"
            );
        }
        let outcome = match self.refusal(batch) {
            Some(failure) => Err(failure),
            None => Ok(self.apply(batch)),
        };
        self.telling.push_back(Told::Outcome(batch.id, outcome));
    }

    fn refusal(&mut self, batch: &Batch) -> Option<Failure> {
        if let Some(kind) = self.refuse.take() {
            return Some(Failure {
                kind,
                rows: Vec::new(),
            });
        }
        let mut faults = Vec::new();
        for (position, operation) in batch.operations.iter().enumerate() {
            if let RowWrite::Insert {
                port, datapath, ip, ..
            } = &operation.write
            {
                if self.find(port, ip).is_some() {
                    faults.push((position, FailureKind::DuplicateIndex));
                } else if !self.datapaths.contains(datapath) {
                    faults.push((position, FailureKind::MissingReference));
                }
            }
        }
        // As the real one, it reports one of them.
        let (position, kind) = *faults.first()?;
        Some(Failure {
            kind,
            rows: if self.names_faults {
                vec![position]
            } else {
                Vec::new()
            },
        })
    }

    fn apply(&mut self, batch: &Batch) -> Vec<usize> {
        let mut missed = Vec::new();
        for (position, operation) in batch.operations.iter().enumerate() {
            match &operation.write {
                RowWrite::Insert {
                    port,
                    datapath,
                    ip,
                    mac,
                    timestamp,
                } => {
                    self.put(port, *datapath, ip, Some(*mac), *timestamp);
                    self.written += 1;
                }
                RowWrite::Update {
                    uuid,
                    mac,
                    timestamp,
                } => match self.rows.get_mut(uuid) {
                    Some(row) => {
                        row.mac = mac.or(row.mac);
                        row.timestamp = *timestamp;
                        let row = row.clone();
                        assert_eq!(row.port, operation.port, "an update met a foreign row");
                        self.telling.push_back(Told::Row(row));
                        self.written += 1;
                    }
                    None => missed.push(position),
                },
            }
        }
        missed
    }
}
