//! Finds the row that a refused transaction failed for.

use super::batch::{Batch, RowWrite};
use crate::ovsdb::details::identical_values;

impl Batch {
    /// The positions of the operations that the details of an error speak of; empty where they name
    /// none.
    #[must_use]
    pub fn blame(&self, details: &str) -> Vec<usize> {
        let Some(values) = identical_values(details) else {
            return Vec::new();
        };
        let operations = self.operations.iter().enumerate();
        operations
            .filter(|(_, operation)| {
                matches!(operation.write, RowWrite::Insert { .. })
                    && values.contains(&*operation.port)
                    && values.contains(&*operation.ip.to_string())
            })
            .map(|(position, _)| position)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::Mac,
        ovsdb::Uuid,
        statics::{BatchId, Reason, RowOperation},
    };

    fn batch() -> Batch {
        let insert = RowWrite::Insert {
            mac: Mac([2, 0, 0, 0, 0, 1]),
        };
        let delete = RowWrite::Delete { uuid: Uuid::NIL };
        let operation = |port: &str, ip: &str, write| RowOperation {
            port: port.into(),
            ip: ip.parse().unwrap(),
            write,
            reason: Reason::Missing,
        };
        Batch {
            id: BatchId(1),
            guards: Vec::new(),
            operations: vec![
                operation("rtoe-GR_net1_node", "fd00::1", delete),
                operation("rtoe-GR_net1_node", "10.0.0.1", insert),
                operation("rtoe-GR_net1_node", "fd00::1", insert),
                operation("rtoe-GR_net12_node", "fd00::1", insert),
            ],
        }
    }

    /// As ovsdb-server 3.1 says it.
    #[test]
    fn the_row_that_was_there_already_is_named_by_its_values() {
        let details = "Transaction causes multiple rows in \"Static_MAC_Binding\" table to have \
            identical values (rtoe-GR_net1_node and \"fd00::1\") for index on columns \
            \"logical_port\" and \"ip\".  First row, with UUID \
            f81af6d2-0e68-4ddd-b86d-81a971952877, existed in the database before this transaction \
            and was not modified by the transaction.";
        assert_eq!(batch().blame(details), [2]);
    }

    #[test]
    fn details_that_name_no_row_blame_none() {
        for details in [
            "",
            "disk full",
            "identical values (",
            "identical values (rtoe-GR_net9_node and \"10.0.0.1\") for index on",
        ] {
            assert_eq!(batch().blame(details), [0; 0], "{details}");
        }
    }
}
