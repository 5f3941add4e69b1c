//! Finds the row that a refused transaction failed for.

use super::batch::{Batch, RowWrite};
use crate::ovsdb::details::{identical_values, nonexistent_row};

impl Batch {
    /// The positions of the operations that the details of an error speak of; empty where they name
    /// none.
    #[must_use]
    pub fn blame(&self, details: &str) -> Vec<usize> {
        let values = identical_values(details);
        let missing = nonexistent_row(details);
        self.operations
            .iter()
            .enumerate()
            .filter(|(_, operation)| match &operation.write {
                RowWrite::Insert {
                    port, datapath, ip, ..
                } => {
                    let names = |text: &str| values.as_ref().is_some_and(|it| it.contains(text));
                    (names(port) && names(ip))
                        || missing.is_some_and(|missing| missing == datapath.to_string())
                }
                RowWrite::Update { .. } => false,
            })
            .map(|(position, _)| position)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        ids::Mac,
        mirror::{BatchId, Reason, RowOperation},
        ovsdb::Uuid,
    };

    fn insert(port: &str, ip: &str, datapath: u128) -> RowOperation {
        let port: Arc<str> = port.into();
        RowOperation {
            reason: Reason::Fill,
            port: Arc::clone(&port),
            ip: ip.parse().unwrap(),
            write: RowWrite::Insert {
                port,
                datapath: Uuid(uuid::Uuid::from_u128(datapath)),
                ip: ip.into(),
                mac: Mac([2, 0, 0, 0, 0, 1]),
                timestamp: 1,
            },
        }
    }

    fn batch() -> Batch {
        Batch {
            id: BatchId(1),
            operations: vec![
                insert("rtoe-GR_net1_node", "10.0.0.1", 1),
                insert("rtoe-GR_net1_node", "fd00::1", 1),
                insert("rtoe-GR_net12_node", "fd00::1", 0xbeef),
                insert("GR", "10.0.0.11", 3),
            ],
        }
    }

    /// As ovsdb-server 3.1 says it.
    #[test]
    fn the_row_that_was_there_already_is_named_by_its_values() {
        let details = "Transaction causes multiple rows in \"MAC_Binding\" table to have identical \
            values (rtoe-GR_net1_node and \"fd00::1\") for index on columns \"logical_port\" and \
            \"ip\".  First row, with UUID f81af6d2-0e68-4ddd-b86d-81a971952877, existed in the \
            database before this transaction and was not modified by the transaction.";
        assert_eq!(batch().blame(details), [1]);
    }

    #[test]
    fn the_rows_of_a_datapath_that_is_gone_are_named_by_its_uuid() {
        let details = "Table MAC_Binding column datapath row c5395cbf-dffd-489b-824d-4520cbb9fb9b \
            references nonexistent row 00000000-0000-0000-0000-00000000beef in table \
            Datapath_Binding.";
        assert_eq!(batch().blame(details), [2]);
    }

    #[test]
    fn details_that_name_no_row_blame_none() {
        for details in [
            "",
            "disk full",
            "identical values (",
            "identical values (rtoe-GR_net9_node and \"10.0.0.1\") for index on",
            "references nonexistent row ",
        ] {
            assert_eq!(batch().blame(details), [0; 0], "{details}");
        }
    }
}
