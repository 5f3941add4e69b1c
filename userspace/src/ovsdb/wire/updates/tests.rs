use proptest::prelude::*;

use super::*;
use crate::ovsdb::wire::{
    monitor::{MonitorRequest, TableRequest},
    schema,
};

fn layouts() -> Vec<Layout> {
    let schema = serde_json::json!({"tables": {"T": {"columns": {
        "name": {"type": "string"},
        "tags": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
    }}}});
    let request = MonitorRequest::new().table(TableRequest::new("T", ["name", "tags"]));
    schema::layouts(schema.to_string().as_bytes(), "D", &request).unwrap()
}

fn update3(params: &str) -> Result<Option<Update3>, serde_json::Error> {
    Decoder::new(&layouts(), &mut Interner::default()).update3(params.as_bytes(), "m")
}

const ROW: &str = "550e8400-e29b-41d4-a716-446655440000";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn one(update: &str) -> Result<RowUpdate, serde_json::Error> {
    let params = format!(r#"["m","{NIL}",{{"T":{{"{ROW}":{update}}}}}]"#);
    let mut updates = update3(&params)?.unwrap().updates;
    assert_eq!(updates.len(), 1);
    let (table, mut rows) = updates.remove(0);
    assert_eq!((table, rows.len()), (0, 1));
    let (uuid, update) = rows.remove(0);
    assert_eq!(uuid, ROW.parse().unwrap());
    Ok(update)
}

#[test]
fn columns_that_an_insert_omits_have_their_default() {
    for kind in ["insert", "initial"] {
        assert_eq!(
            one(&format!(r#"{{"{kind}":{{"tags":5}}}}"#)).unwrap(),
            RowUpdate::Insert([Datum::from(""), Datum::set([5])].into())
        );
    }
}

#[test]
fn modify_holds_only_what_was_sent() {
    assert_eq!(
        one(r#"{"modify":{"tags":["set",[1,2]]}}"#).unwrap(),
        RowUpdate::Modify(vec![(1, Datum::set([1, 2]))])
    );
    assert_eq!(one(r#"{"delete":null}"#).unwrap(), RowUpdate::Delete);
}

#[test]
fn tables_and_columns_that_nobody_asked_for_are_passed_over() {
    let params = format!(r#"["m","{NIL}",{{"U":{{"x":[1]}}}}]"#);
    assert_eq!(update3(&params).unwrap().unwrap().updates, []);
    assert_eq!(
        one(r#"{"modify":{"_version":["uuid","x"],"name":"n"}}"#).unwrap(),
        RowUpdate::Modify(vec![(0, Datum::from("n"))])
    );
}

#[test]
fn updates_of_another_monitor_are_left_alone() {
    for owner in ["\"other\"", "null", "[\"m\"]"] {
        let params = format!(r#"[{owner},"{NIL}",{{}}]"#);
        assert!(update3(&params).unwrap().is_none());
    }
}

#[test]
fn value_of_the_wrong_type_is_named() {
    let error = one(r#"{"modify":{"name":["set",["a","b"]]}}"#).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("column name of table T: not exactly one value"),
        "{said}"
    );
}

#[test]
fn updates_of_the_wrong_shape_are_refused() {
    for update in [
        "null",
        "{}",
        r#"{"rename":{}}"#,
        r#"{"insert":null}"#,
        r#"{"insert":[]}"#,
        r#"{"insert":{},"delete":null}"#,
    ] {
        assert!(one(update).is_err(), "{update}");
    }
    for params in ["", "[]", "[\"m\"]", "{}", r#"["m","x",{}]"#] {
        assert!(update3(params).is_err(), "{params}");
    }
}

#[test]
fn reply_says_whether_it_is_a_difference() {
    for found in [true, false] {
        let result = format!(r#"[{found},"{ROW}",{{}}]"#);
        let reply = Decoder::new(&layouts(), &mut Interner::default())
            .monitor_reply(result.as_bytes())
            .unwrap();
        assert_eq!(reply.found, found);
        assert_eq!(reply.last_transaction, ROW.parse().unwrap());
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(params in any::<Vec<u8>>()) {
        let _ = Decoder::new(&layouts(), &mut Interner::default()).update3(&params, "m");
    }

    #[test]
    fn arbitrary_rows_never_panic(rows in r#"[\[\]{}:,"a-z0-9.]{0,60}"#) {
        let _ = one(&format!(r#"{{"insert":{{"name":{rows}}}}}"#));
        let _ = update3(&format!(r#"["m","{NIL}",{{"T":{rows}}}]"#));
    }
}
