use proptest::prelude::*;

use super::*;

fn decode(json: &str) -> Result<Datum, serde_json::Error> {
    let mut interner = Interner::default();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let datum = DatumSeed {
        interner: &mut interner,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(datum)
}

#[test]
fn values_are_read_as_the_rfc_writes_them() {
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    let row: Uuid = uuid.parse().unwrap();
    for (json, expected) in [
        ("7", Datum::from(7)),
        ("-9223372036854775808", Datum::from(i64::MIN)),
        ("0.5", Datum::from(0.5)),
        ("true", Datum::from(true)),
        (r#""a\n\u00e4""#, Datum::from("a\nä")),
        (&format!(r#"["uuid","{uuid}"]"#), Datum::from(row)),
        (r#"["set",[]]"#, Datum::Set(vec![])),
        (r#"["set",[2,1,2]]"#, Datum::set([1, 2])),
        (
            r#"["map",[["k","v"],["a","b"]]]"#,
            Datum::map([("a", "b"), ("k", "v")]),
        ),
        (
            &format!(r#"["map",[[1,["uuid","{uuid}"]]]]"#),
            Datum::map([(1, row)]),
        ),
    ] {
        assert_eq!(decode(json).unwrap(), expected, "{json}");
    }
}

#[test]
fn what_is_no_value_is_refused() {
    for json in [
        "",
        "null",
        "{}",
        "[]",
        "[1]",
        r#"["set"]"#,
        r#"["set",[1],2]"#,
        r#"["set",1]"#,
        r#"["set",[["set",[]]]]"#,
        r#"["map",[[1]]]"#,
        r#"["map",[[1,2,3]]]"#,
        r#"["uuid","x"]"#,
        r#"["uuid",1]"#,
        r#"["named-uuid","x"]"#,
        "9223372036854775808",
        "\"a",
    ] {
        assert!(decode(json).is_err(), "{json}");
    }
}

fn atom() -> impl Strategy<Value = Atom> {
    prop_oneof![
        any::<i64>().prop_map(Atom::Integer),
        any::<f64>()
            .prop_filter("JSON has no others", |real| real.is_finite())
            .prop_map(Atom::Real),
        any::<bool>().prop_map(Atom::Boolean),
        ".*".prop_map(Atom::from),
        any::<u128>().prop_map(|bits| Atom::Uuid(Uuid(uuid::Uuid::from_u128(bits)))),
    ]
}

fn datum() -> impl Strategy<Value = Datum> {
    prop_oneof![
        atom().prop_map(Datum::Scalar),
        proptest::collection::vec(atom(), 0..6).prop_map(Datum::set),
        proptest::collection::vec((atom(), atom()), 0..6).prop_map(Datum::map),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(datum in datum()) {
        let json = serde_json::to_string(&datum).unwrap();
        prop_assert_eq!(decode(&json).unwrap(), datum, "{}", json);
    }

    #[test]
    fn arbitrary_text_never_panics(json in r#"[\[\]{}:,"a-z0-9.\\ ]{0,60}"#) {
        let _ = decode(&json);
    }

    #[test]
    fn order_of_atoms_is_total(mut atoms in proptest::collection::vec(atom(), 0..20)) {
        // The standard library panics, or leaves it unsorted, where it is not.
        atoms.sort();
        prop_assert!(atoms.is_sorted());
    }
}
