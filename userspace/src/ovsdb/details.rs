//! What the details of an error say of rows.
//!
//! OVSDB reports a broken index or reference for the transaction, not for an operation: the rows at
//! fault are only in the text (ovsdb/transaction.c, "identical values", "references nonexistent row").

use std::collections::HashSet;

/// The values of an index that two rows would have; `None` where the text speaks of none.
#[must_use]
pub fn identical_values(details: &str) -> Option<HashSet<&str>> {
    let (_, rest) = details.split_once("identical values (")?;
    let (values, _) = rest.split_once(") for index")?;
    let values = values.split(", ").flat_map(|it| it.split(" and "));
    // Three and more are "a, b, and c".
    let values = values.map(|value| value.strip_prefix("and ").unwrap_or(value));
    // Quoted unless it reads as a word.
    Some(values.map(|value| value.trim_matches('"')).collect())
}

/// The identity of the row that a reference leads to and that is not there.
#[must_use]
pub fn nonexistent_row(details: &str) -> Option<&str> {
    let (_, rest) = details.split_once("references nonexistent row ")?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ovsdb-server 3.1 says it.
    #[test]
    fn the_values_of_an_index_are_read() {
        let details = "Transaction causes multiple rows in \"MAC_Binding\" table to have identical \
            values (rtoe-GR_net1_node and \"fd00::1\") for index on columns \"logical_port\" and \
            \"ip\".  First row, with UUID f81af6d2-0e68-4ddd-b86d-81a971952877, existed in the \
            database before this transaction and was not modified by the transaction.";
        let values = identical_values(details);
        assert_eq!(
            values,
            Some(HashSet::from(["rtoe-GR_net1_node", "fd00::1"]))
        );
        let of_three = identical_values("identical values (a, \"b c\", and d) for index on");
        assert_eq!(of_three, Some(HashSet::from(["a", "b c", "d"])));
        assert_eq!(nonexistent_row(details), None);
    }

    #[test]
    fn the_row_that_is_not_there_is_read() {
        let details = "Table MAC_Binding column datapath row c5395cbf-dffd-489b-824d-4520cbb9fb9b \
            references nonexistent row 00000000-0000-0000-0000-00000000beef in table \
            Datapath_Binding.";
        assert_eq!(
            nonexistent_row(details),
            Some("00000000-0000-0000-0000-00000000beef")
        );
        assert_eq!(identical_values(details), None);
    }

    #[test]
    fn other_texts_speak_of_no_row() {
        for details in [
            "",
            "disk full",
            "identical values (",
            "references nonexistent row ",
        ] {
            assert_eq!(identical_values(details), None, "{details}");
            assert_eq!(nonexistent_row(details), None, "{details}");
        }
    }
}
