//! Finds the row that a refused transaction failed for.
//!
//! OVSDB reports a broken index or reference for the transaction, not for an operation: the rows at
//! fault are only in the error's details (ovsdb/transaction.c, "identical values", "references
//! nonexistent row").

use super::batch::{Batch, RowWrite};

impl Batch {
    /// The positions of the operations that the details of an error speak of; empty where they name
    /// none.
    #[must_use]
    pub fn blame(&self, details: &str) -> Vec<usize> {
        let values = details
            .split_once("identical values (")
            .and_then(|(_, rest)| rest.split_once(") for index"))
            .map(|(values, _)| values);
        let missing = details
            .split_once("references nonexistent row ")
            .and_then(|(_, rest)| rest.split_whitespace().next());
        self.operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| match &operation.write {
                RowWrite::Insert {
                    port, datapath, ip, ..
                } => {
                    values.is_some_and(|values| names(values, port) && names(values, ip))
                        || missing.is_some_and(|missing| missing == datapath.to_string())
                }
                RowWrite::Update { .. } => false,
            })
            .map(|(position, _)| position)
            .collect()
    }
}

/// Whether a list of values, as ovsdb prints it, has this text: quoted unless it reads as a word.
fn names(values: &str, text: &str) -> bool {
    values
        .replace(" and ", ", ")
        .split(", ")
        .any(|value| value.trim_matches('"') == text)
}
