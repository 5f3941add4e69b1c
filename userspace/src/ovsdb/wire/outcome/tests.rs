use proptest::prelude::*;

use super::*;

fn parse(
    result: &str,
    operations: usize,
) -> Result<Result<Vec<OperationResult>, Aborted>, OutcomeError> {
    parse_outcome(result.as_bytes(), operations)
}

const ROW: &str = "550e8400-e29b-41d4-a716-446655440000";

#[test]
fn results_of_a_commit_are_one_for_each_operation() {
    let row: Uuid = ROW.parse().unwrap();
    let result = format!(r#"[{{"uuid":["uuid","{ROW}"]}},{{"count":3}},{{}},{{"rows":[]}}]"#);
    assert_eq!(
        parse(&result, 4).unwrap(),
        Ok(vec![
            OperationResult::Inserted(row),
            OperationResult::Count(3),
            OperationResult::Done,
            OperationResult::Rows(vec![]),
        ])
    );
}

#[test]
fn selected_rows_can_be_read() {
    let result = format!(r#"[{{"rows":[{{"b":["set",[]],"a":"x","_uuid":["uuid","{ROW}"]}}]}}]"#);
    let results = parse(&result, 1).unwrap().unwrap();
    let [OperationResult::Rows(rows)] = &results[..] else {
        panic!("{results:?}");
    };
    assert_eq!(&*rows[0].string("a").unwrap(), "x");
    assert_eq!(rows[0].optional_string("b").unwrap(), None);
    assert_eq!(rows[0].uuid("_uuid").unwrap(), ROW.parse().unwrap());
}

#[test]
fn failed_operation_is_found_and_those_after_it_were_skipped() {
    let result = r#"[{"count":1},{"error":"timed out","details":"late"},null]"#;
    let aborted = parse(result, 3).unwrap().unwrap_err();
    let (place, error) = aborted.cause().unwrap();
    assert_eq!((place, error.kind), (Some(1), ErrorKind::TimedOut));
    assert_eq!(aborted.operations[2], Outcome::Skipped);
    assert_eq!(
        aborted.to_string(),
        "operation 2 of 3 failed: timed out: late"
    );
}

#[test]
fn failure_of_the_commit_is_the_extra_last_element() {
    let result = format!(
        r#"[{{"count":1}},{{"error":"constraint violation","details":"rows {ROW}, and x{ROW} and {ROW}."}}]"#
    );
    let aborted = parse(&result, 1).unwrap().unwrap_err();
    let (place, error) = aborted.cause().unwrap();
    assert_eq!((place, error.kind), (None, ErrorKind::ConstraintViolation));
    assert_eq!(error.rows(), [ROW.parse::<Uuid>().unwrap(); 3]);
}

#[test]
fn result_that_is_too_short_is_no_commit() {
    let aborted = parse(r#"[{"count":1}]"#, 2).unwrap().unwrap_err();
    assert_eq!(aborted.operations[1], Outcome::Skipped);
    assert!(parse("[null]", 1).unwrap().is_err());
}

#[test]
fn malformed_results_are_errors() {
    for result in [
        "",
        "{}",
        "null",
        "[1]",
        r#"[{"uuid":"x"}]"#,
        r#"[{"count":-1}]"#,
    ] {
        assert!(parse(result, 1).is_err(), "{result}");
    }
}

proptest! {
    #[test]
    fn arbitrary_results_never_panic(
        result in r#"[\[\]{}:,"a-z0-9.\\]{0,60}"#,
        operations in 0usize..5,
    ) {
        let _ = parse(&result, operations);
        let _ = parse(&format!(r#"[{{"rows":[{{"a":{result}}}]}}]"#), operations);
    }

    #[test]
    fn arbitrary_details_never_panic(details in ".*") {
        let error = OperationError {
            kind: ErrorKind::Other,
            error: String::new(),
            details: Some(details),
        };
        let _ = error.rows();
    }
}
