//! Between the mirror's batches and the database's transactions.

use super::databases::{MAC_BINDING, MAC_BINDING_COLUMNS};
use crate::{
    mirror::{Batch, Failure, FailureKind, RowAtFault, RowOperation, RowWrite},
    ovsdb::{
        Aborted, Clause, Client, ErrorKind, Operation, OperationResult, Outcome, Row,
        TransactError, Uuid,
    },
};

/// A row's write as the database takes it.
pub(super) fn operation(operation: &RowOperation) -> Operation {
    match &operation.write {
        RowWrite::Insert {
            port,
            datapath,
            ip,
            mac,
            timestamp,
        } => Operation::insert(MAC_BINDING)
            .set("logical_port", port.clone())
            .set("datapath", *datapath)
            .set("ip", ip.clone())
            .set("mac", mac.to_string())
            .set("timestamp", *timestamp)
            .into(),
        RowWrite::Update {
            uuid,
            mac,
            timestamp,
        } => {
            let update = Operation::update(MAC_BINDING)
                .by_uuid(*uuid)
                .set("timestamp", *timestamp);
            match mac {
                Some(mac) => update.set("mac", mac.to_string()).into(),
                None => update.into(),
            }
        }
    }
}

/// Positions of the updates that met no row.
pub(super) fn missed(batch: &Batch, results: &[OperationResult]) -> Vec<usize> {
    let pairs = batch.operations.iter().zip(results).enumerate();
    pairs
        .filter(|(_, (operation, result))| {
            matches!(operation.write, RowWrite::Update { .. })
                && matches!(result, OperationResult::Count(0))
        })
        .map(|(position, _)| position)
        .collect()
}

/// What the mirror is told of a transaction that is not known to be committed.
pub(super) fn failure(batch: &Batch, error: &TransactError) -> Failure {
    let TransactError::Aborted(Aborted { operations, commit }) = error else {
        let refused = matches!(error, TransactError::Refused(_));
        let kind = if refused {
            FailureKind::Refused
        } else {
            FailureKind::Unavailable
        };
        return Failure {
            kind,
            rows: Vec::new(),
        };
    };
    let failed = operations
        .iter()
        .enumerate()
        .filter_map(|(position, outcome)| match outcome {
            Outcome::Failed(error) => Some((position, error)),
            _ => None,
        });
    let failed: Vec<_> = failed.collect();
    let (mut rows, error) = match (commit, failed.first()) {
        (Some(error), _) => (
            batch.blame(error.details.as_deref().unwrap_or_default()),
            Some(error),
        ),
        (None, Some((_, error))) => (Vec::new(), Some(*error)),
        (None, None) => (Vec::new(), None),
    };
    rows.extend(failed.iter().map(|(position, _)| *position));
    let kind = match error.map(|error| error.kind) {
        Some(ErrorKind::ConstraintViolation) if commit.is_some() => FailureKind::DuplicateIndex,
        Some(ErrorKind::ReferentialIntegrity) => FailureKind::MissingReference,
        Some(ErrorKind::ConstraintViolation | ErrorKind::Syntax | ErrorKind::DuplicateUuid) => {
            FailureKind::Constraint
        }
        Some(ErrorKind::NotOwner) => FailureKind::Refused,
        _ => FailureKind::Unavailable,
    };
    Failure { kind, rows }
}

/// Reads rows that the server has and the mirror did not know of.
pub(super) async fn read_again(client: &Client, rows: Vec<RowAtFault>) -> Vec<(Uuid, Row)> {
    let selects: Vec<Operation> = rows
        .iter()
        .map(|row| {
            let columns = std::iter::once("_uuid").chain(MAC_BINDING_COLUMNS);
            let select = Operation::select(MAC_BINDING, columns)
                .filter(Clause::equal("logical_port", &*row.port));
            match &row.ip {
                Some(ip) => select.filter(Clause::equal("ip", &**ip)).into(),
                None => select.into(),
            }
        })
        .collect();
    match client.transact(&selects).await {
        Ok(results) => results
            .iter()
            .filter_map(|result| match result {
                OperationResult::Rows(rows) => Some(rows),
                _ => None,
            })
            .flatten()
            .filter_map(|row| Some((row.uuid("_uuid").ok()?, row.clone())))
            .collect(),
        Err(error) => {
            tracing::debug!(error = %crate::agent::chain(&error), "rows at fault not read");
            Vec::new()
        }
    }
}
