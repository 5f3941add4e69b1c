use super::*;
use crate::ovsdb::wire::monitor::TableRequest;

fn read(columns: serde_json::Value, request: TableRequest) -> Result<Vec<Layout>, SchemaError> {
    let schema = serde_json::json!({
        "name": "D",
        "version": "1.2.3",
        "tables": {
            "T": {"columns": columns, "isRoot": true, "indexes": [["a"]]},
            "Other": {"columns": {"odd": {"type": "colour"}}},
        },
    });
    let request = MonitorRequest::new().table(request);
    layouts(schema.to_string().as_bytes(), "D", &request)
}

#[test]
fn every_type_of_the_rfc_is_read() {
    let unlimited = u64::MAX;
    for (written, key, value, min, max) in [
        (
            serde_json::json!("integer"),
            AtomicType::Integer,
            None,
            1,
            1,
        ),
        (
            serde_json::json!({"key": "real"}),
            AtomicType::Real,
            None,
            1,
            1,
        ),
        (
            serde_json::json!({"key": {"type": "boolean"}, "min": 0}),
            AtomicType::Boolean,
            None,
            0,
            1,
        ),
        (
            serde_json::json!({"key": {"type": "uuid", "refTable": "T", "refType": "weak"},
                "min": 0, "max": "unlimited"}),
            AtomicType::Uuid,
            None,
            0,
            unlimited,
        ),
        (
            serde_json::json!({"key": {"type": "string", "enum": ["set", ["a", "b"]]}, "max": 2}),
            AtomicType::String,
            None,
            1,
            2,
        ),
        (
            serde_json::json!({"key": "string", "value": {"type": "integer", "minInteger": 1},
                "min": 0, "max": "unlimited"}),
            AtomicType::String,
            Some(AtomicType::Integer),
            0,
            unlimited,
        ),
    ] {
        let columns = serde_json::json!({"a": {"type": written, "ephemeral": true}});
        let layouts = read(columns, TableRequest::new("T", ["a"])).unwrap();
        let expected = ColumnType {
            key,
            value,
            min,
            max,
        };
        assert_eq!(layouts[0].types, [expected]);
    }
}

#[test]
fn unknown_types_are_refused_only_where_they_are_asked_for() {
    let columns = serde_json::json!({
        "a": {"type": "string"},
        "b": {"type": {"key": "string", "max": "many"}},
        "c": {"type": {"value": "string"}},
        "d": {"type": {"key": {"type": "date"}}},
    });
    assert!(read(columns.clone(), TableRequest::new("T", ["a"])).is_ok());
    for (column, said) in [
        ("b", "many"),
        ("c", "{\"value\":\"string\"}"),
        ("d", "date"),
    ] {
        let error = read(columns.clone(), TableRequest::new("T", [column])).unwrap_err();
        let SchemaError::UnknownType { kind, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(kind, said);
    }
}

#[test]
fn optional_column_is_left_out_where_the_schema_lacks_it() {
    let columns = serde_json::json!({"a": {"type": "string"}});
    let request = TableRequest::new("T", ["a"]).optional_column("b");
    let layouts = read(columns, request).unwrap();
    assert_eq!(layouts[0].columns.len(), 1);
}

#[test]
fn what_is_no_schema_is_malformed() {
    for text in ["", "[]", "{}", "{\"tables\":[]}", "{\"tables\":{\"T\":1}}"] {
        let request = MonitorRequest::new().table(TableRequest::new("T", []));
        let error = layouts(text.as_bytes(), "D", &request).unwrap_err();
        assert!(
            matches!(error, SchemaError::Malformed { .. }),
            "{text}: {error:?}"
        );
    }
}

fn column(value: Option<AtomicType>, min: u64, max: u64) -> ColumnType {
    ColumnType {
        key: AtomicType::Integer,
        value,
        min,
        max,
    }
}

#[test]
fn values_take_the_shape_of_their_column() {
    let scalar = column(None, 1, 1);
    let optional = column(None, 0, 1);
    let set = column(None, 0, u64::MAX);
    let map = column(Some(AtomicType::Integer), 0, u64::MAX);
    let one = || Datum::from(1);
    assert_eq!(scalar.conform(one()), Ok(one()));
    assert_eq!(scalar.conform(Datum::set([1])), Ok(one()));
    assert_eq!(optional.conform(one()), Ok(Datum::set([1])));
    assert_eq!(set.conform(Datum::set([2, 1])), Ok(Datum::set([1, 2])));
    assert_eq!(map.conform(Datum::map([(1, 2)])), Ok(Datum::map([(1, 2)])));
    for (kind, value) in [
        (scalar, Datum::set([1, 2])),
        (scalar, Datum::from("1")),
        (scalar, Datum::from(1.5)),
        (scalar, Datum::map([(1, 2)])),
        (set, Datum::map([(1, 2)])),
        (set, Datum::set(["1"])),
        (map, one()),
        (map, Datum::set([1])),
        (map, Datum::map([(1, true)])),
    ] {
        assert!(kind.conform(value.clone()).is_err(), "{kind:?} {value:?}");
    }
}

#[test]
fn real_without_a_fraction_stays_a_real() {
    let real = ColumnType {
        key: AtomicType::Real,
        ..column(None, 1, 1)
    };
    assert_eq!(real.conform(Datum::from(5)), Ok(Datum::from(5.0)));
}

#[test]
fn defaults_are_empty_where_nothing_is_needed_and_zero_otherwise() {
    assert_eq!(column(None, 1, 1).default_datum(), Datum::from(0));
    assert_eq!(column(None, 0, 1).default_datum(), Datum::Set(vec![]));
    assert_eq!(column(None, 1, 9).default_datum(), Datum::set([0]));
    let value = Some(AtomicType::Integer);
    assert_eq!(column(value, 0, 9).default_datum(), Datum::Map(vec![]));
    assert_eq!(column(value, 1, 9).default_datum(), Datum::map([(0, 0)]));
}
