use super::*;

fn json(operation: impl Into<Operation>) -> String {
    serde_json::to_string(&operation.into()).unwrap()
}

const ROW: &str = "550e8400-e29b-41d4-a716-446655440000";

fn row() -> Uuid {
    ROW.parse().unwrap()
}

#[test]
fn operations_are_written_as_the_rfc_has_them() {
    let by_uuid = format!(r#""where":[["_uuid","==",["uuid","{ROW}"]]]"#);
    for (operation, expected) in [
        (
            json(
                Operation::insert("T")
                    .uuid(row())
                    .set("a", 1)
                    .set("b", Datum::set(["x"])),
            ),
            format!(
                r#"{{"op":"insert","table":"T","uuid":"{ROW}","row":{{"a":1,"b":["set",["x"]]}}}}"#
            ),
        ),
        (
            json(Operation::update("T").by_uuid(row()).set("a", "\"\n")),
            format!(r#"{{"op":"update","table":"T",{by_uuid},"row":{{"a":"\"\n"}}}}"#)
                .replace('\n', "\\n")
                .replace("\"\"\\n\"", "\"\\\"\\n\""),
        ),
        (
            json(Operation::delete("T")),
            r#"{"op":"delete","table":"T","where":[]}"#.to_owned(),
        ),
        (
            json(Operation::select("T", ["a", "_uuid"]).filter(Clause::equal("a", true))),
            r#"{"op":"select","table":"T","where":[["a","==",true]],"columns":["a","_uuid"]}"#
                .to_owned(),
        ),
        (
            json(
                Operation::mutate("T")
                    .by_uuid(row())
                    .change("a", Mutator::Add, 1)
                    .change("b", Mutator::Delete, Datum::map([("k", "v")])),
            ),
            format!(
                r#"{{"op":"mutate","table":"T",{by_uuid},"mutations":[["a","+=",1],["b","delete",["map",[["k","v"]]]]]}}"#
            ),
        ),
        (
            json(
                Operation::wait("T", ["a"])
                    .by_uuid(row())
                    .row([("a", Datum::from(1))])
                    .until_different()
                    .timeout(Duration::from_millis(1500)),
            ),
            format!(
                r#"{{"op":"wait","table":"T",{by_uuid},"columns":["a"],"until":"!=","rows":[{{"a":1}}],"timeout":1500}}"#
            ),
        ),
        (
            json(Operation::assert_lock("a_b")),
            r#"{"op":"assert","lock":"a_b"}"#.to_owned(),
        ),
        (
            json(Operation::comment("why")),
            r#"{"op":"comment","comment":"why"}"#.to_owned(),
        ),
        (json(Operation::Abort), r#"{"op":"abort"}"#.to_owned()),
    ] {
        assert_eq!(operation, expected);
    }
}
