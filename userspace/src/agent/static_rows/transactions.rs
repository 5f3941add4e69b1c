//! Between the batches of static bindings and the database's transactions.

use crate::{
    agent::databases::STATIC_MAC_BINDING,
    ovsdb::{Aborted, Datum, ErrorKind, Operation, OperationResult, Outcome, TransactError},
    rows::Table,
    statics::{Batch, Failure, FailureKind, RowOperation, RowWrite},
};

/// A batch as the database takes it: its guards first.
#[must_use]
pub fn operations(batch: &Batch) -> Vec<Operation> {
    let guards = batch.guards.iter().map(|guard| {
        Operation::wait(Table::LogicalRouterPort.name(), ["name"])
            .by_uuid(guard.port_row)
            .row([("name", Datum::from(&*guard.port))])
            .into()
    });
    guards
        .chain(batch.operations.iter().map(operation))
        .collect()
}

/// A row's write as the database takes it.
#[must_use]
pub fn operation(operation: &RowOperation) -> Operation {
    match operation.write {
        RowWrite::Insert { mac } => Operation::insert(STATIC_MAC_BINDING)
            .set("logical_port", &*operation.port)
            .set("ip", operation.ip.to_string())
            .set("mac", mac.to_string())
            .set("override_dynamic_mac", true)
            .into(),
        RowWrite::Update { uuid, mac } => Operation::update(STATIC_MAC_BINDING)
            .by_uuid(uuid)
            .set("mac", mac.to_string())
            .set("override_dynamic_mac", true)
            .into(),
        RowWrite::Delete { uuid } => Operation::delete(STATIC_MAC_BINDING).by_uuid(uuid).into(),
    }
}

/// Positions of the updates and deletions that met no row.
pub(super) fn missed(batch: &Batch, results: &[OperationResult]) -> Vec<usize> {
    let results = results.iter().skip(batch.guards.len());
    results
        .enumerate()
        .filter(|(_, result)| matches!(result, OperationResult::Count(0)))
        .map(|(position, _)| position)
        .collect()
}

/// What the machine is told of a transaction that is not known to be committed.
pub(super) fn failure(batch: &Batch, error: &TransactError) -> Failure {
    let nothing_at_fault = |kind| Failure {
        kind,
        operations: Vec::new(),
        guards: Vec::new(),
    };
    let TransactError::Aborted(Aborted { operations, commit }) = error else {
        let refused = matches!(error, TransactError::Refused(_));
        return nothing_at_fault(if refused {
            FailureKind::Refused
        } else {
            FailureKind::Unavailable
        });
    };
    if let Some(error) = commit {
        let details = error.details.as_deref().unwrap_or_default();
        return match error.kind {
            ErrorKind::ConstraintViolation => Failure {
                kind: FailureKind::DuplicateIndex,
                operations: batch.blame(details),
                guards: Vec::new(),
            },
            ErrorKind::ReferentialIntegrity | ErrorKind::DuplicateUuid | ErrorKind::Syntax => {
                nothing_at_fault(FailureKind::Constraint)
            }
            ErrorKind::NotOwner => nothing_at_fault(FailureKind::Refused),
            _ => nothing_at_fault(FailureKind::Unavailable),
        };
    }
    let failed = operations
        .iter()
        .enumerate()
        .find_map(|(position, outcome)| match outcome {
            Outcome::Failed(error) => Some((position, error.kind)),
            _ => None,
        });
    let Some((position, kind)) = failed else {
        return nothing_at_fault(FailureKind::Unavailable);
    };
    match (position.checked_sub(batch.guards.len()), kind) {
        (None, ErrorKind::TimedOut) => Failure {
            kind: FailureKind::GuardFailed,
            operations: Vec::new(),
            guards: vec![position],
        },
        (
            Some(position),
            ErrorKind::ConstraintViolation | ErrorKind::Syntax | ErrorKind::ReferentialIntegrity,
        ) => Failure {
            kind: FailureKind::Constraint,
            operations: vec![position],
            guards: Vec::new(),
        },
        (_, ErrorKind::NotOwner) => nothing_at_fault(FailureKind::Refused),
        _ => nothing_at_fault(FailureKind::Unavailable),
    }
}
