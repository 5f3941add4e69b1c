use std::sync::Arc;

use super::*;
use crate::ovsdb::{Atom, Datum, Row, Uuid};

/// A row with every monitored column of its table at the schema's default, but for those given.
pub(crate) fn row(table: Table, given: &[(&str, Datum)]) -> Row {
    let columns: Arc<[Arc<str>]> = table
        .columns()
        .iter()
        .map(|name| Arc::from(*name))
        .collect();
    let values = table.columns().iter().map(|column| {
        let given = given.iter().find(|(name, _)| name == column);
        given.map_or_else(|| default_of(column), |(_, value)| value.clone())
    });
    Row::new(Arc::clone(&columns), values.collect()).unwrap()
}

fn default_of(column: &str) -> Datum {
    match column {
        "name" | "type" | "mac" | "datapath_type" | "logical_port" => text(""),
        "external_ids" | "other_config" | "options" => Datum::Map(Vec::new()),
        "datapath" => Datum::Scalar(Atom::Uuid(Uuid(uuid::Uuid::nil()))),
        _ => Datum::Set(Vec::new()),
    }
}

pub(crate) fn text(text: &str) -> Datum {
    Datum::Scalar(Atom::String(Arc::from(text)))
}

pub(crate) fn texts(texts: &[&str]) -> Datum {
    Datum::Set(
        texts
            .iter()
            .map(|it| Atom::String(Arc::from(*it)))
            .collect(),
    )
}

pub(crate) fn number(number: i64) -> Datum {
    Datum::Set(vec![Atom::Integer(number)])
}

pub(crate) fn references(uuids: &[Uuid]) -> Datum {
    Datum::Set(uuids.iter().map(|uuid| Atom::Uuid(*uuid)).collect())
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> Datum {
    let atom = |text: &str| Atom::String(Arc::from(text));
    let pairs = pairs.iter().map(|(key, value)| (atom(key), atom(value)));
    Datum::Map(pairs.collect())
}

pub(crate) fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

#[test]
fn a_bad_row_is_left_out_with_its_reason_and_the_others_stay() {
    let mut rows = Rows::default();
    let port = |name: &str, ofport| {
        row(
            Table::Interface,
            &[("name", text(name)), ("ofport", number(ofport))],
        )
    };
    assert_eq!(
        rows.apply(Table::Interface, uuid(1), Some(&port("eth0", 1))),
        Applied::Changed
    );
    let bad = row(Table::Interface, &[("mac_in_use", text("no address"))]);
    let applied = rows.apply(Table::Interface, uuid(2), Some(&bad));
    assert!(matches!(applied, Applied::Skipped(_)), "{applied:?}");
    assert_eq!(rows.interfaces.len(), 1);
    assert_eq!(
        rows.unreadable.values().next().unwrap().to_string(),
        "column mac_in_use is not an Ethernet address"
    );

    let good = rows.apply(Table::Interface, uuid(2), Some(&port("eth1", 2)));
    assert_eq!(good, Applied::Changed);
    assert!(rows.unreadable.is_empty());
}

#[test]
fn a_row_that_turns_bad_takes_its_former_self_with_it() {
    let mut rows = Rows::default();
    let good = row(Table::Port, &[("name", text("eth0"))]);
    rows.apply(Table::Port, uuid(1), Some(&good));
    let bad = row(Table::Port, &[("name", number(7))]);
    rows.apply(Table::Port, uuid(1), Some(&bad));
    assert!(rows.ports.is_empty());
    assert_eq!(rows.unreadable.len(), 1);
    assert_eq!(rows.apply(Table::Port, uuid(1), None), Applied::Changed);
    assert!(rows.unreadable.is_empty());
}

#[test]
fn the_same_row_again_is_no_change() {
    let mut rows = Rows::default();
    let bridge = row(Table::Bridge, &[("name", text("br-ex"))]);
    let apply = |rows: &mut Rows, row| rows.apply(Table::Bridge, uuid(1), row);
    assert_eq!(apply(&mut rows, Some(&bridge)), Applied::Changed);
    assert_eq!(apply(&mut rows, Some(&bridge)), Applied::Unchanged);
    assert_eq!(apply(&mut rows, None), Applied::Changed);
    assert_eq!(apply(&mut rows, None), Applied::Unchanged);
}

#[test]
fn a_database_that_is_cleared_takes_only_its_own_rows() {
    let mut rows = Rows::default();
    for table in Table::ALL {
        rows.apply(table, uuid(1), Some(&row(table, &[])));
        rows.apply(table, uuid(2), Some(&row(Table::Interface, &[])));
    }
    rows.clear(Database::Northbound);
    assert!(rows.routers.is_empty() && rows.switch_ports.is_empty());
    assert!(!rows.bridges.is_empty() && !rows.port_bindings.is_empty());
    assert!(
        rows.unreadable
            .keys()
            .all(|(table, _)| table.database() != Database::Northbound)
    );
}

#[test]
fn an_ofport_of_minus_one_and_an_empty_one_are_no_port() {
    for ofport in [Datum::Set(Vec::new()), number(-1), number(65534)] {
        let mut rows = Rows::default();
        let row = row(Table::Interface, &[("ofport", ofport)]);
        rows.apply(Table::Interface, uuid(1), Some(&row));
        assert_eq!(rows.interfaces.values().next().unwrap().ofport, None);
    }
}

#[test]
fn a_tag_goes_before_the_requested_one_and_zero_is_none() {
    let tag_of = |tag, request| {
        let mut rows = Rows::default();
        let row = row(
            Table::LogicalSwitchPort,
            &[("tag", tag), ("tag_request", request)],
        );
        rows.apply(Table::LogicalSwitchPort, uuid(1), Some(&row));
        rows.switch_ports.values().next().map(|port| port.tag)
    };
    let none = || Datum::Set(Vec::new());
    assert_eq!(tag_of(none(), none()), Some(None));
    assert_eq!(tag_of(number(5), number(7)), Some(Some(5)));
    assert_eq!(tag_of(none(), number(7)), Some(Some(7)));
    assert_eq!(tag_of(none(), number(0)), Some(None));
    assert_eq!(tag_of(number(-1), none()), None);
}

#[test]
fn each_database_is_asked_only_for_its_own_tables() {
    let tables = |database| {
        let monitored = monitored(database, "node-1").into_iter();
        monitored.map(|it| it.table.name()).collect::<Vec<_>>()
    };
    assert_eq!(
        tables(Database::OpenVSwitch),
        ["Open_vSwitch", "Bridge", "Port", "Interface"]
    );
    assert_eq!(
        tables(Database::Northbound),
        [
            "NB_Global",
            "Logical_Router",
            "Logical_Router_Port",
            "Logical_Switch",
            "Logical_Switch_Port"
        ]
    );
    assert_eq!(tables(Database::Southbound), ["Port_Binding"]);
    let [bindings] = monitored(Database::Southbound, "node-1")
        .try_into()
        .unwrap();
    let chassis = map(&[("l3gateway-chassis", "node-1")]);
    assert_eq!(bindings.conditions[0].value, chassis);
}
