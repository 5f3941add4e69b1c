//! Every type that a column can have, changed at random, as the server itself tells the changes.

use std::{collections::BTreeMap, fs};

use neighsteer::ovsdb::{
    Datum, MonitorRequest, Operation, Options, Row, Snapshot, TableRequest, Uuid,
};
use neighsteer_tests::database::DatabaseServer;

use crate::peer::{DEADLINE, Peer};

const ATOMS: [&str; 5] = ["integer", "real", "boolean", "string", "uuid"];

/// Bounds on the number of values: a scalar, an optional one, a set, a set that is never empty.
const SHAPES: [(&str, u64, Option<u64>); 4] = [
    ("one", 1, Some(1)),
    ("optional", 0, Some(1)),
    ("set", 0, None),
    ("some", 1, Some(8)),
];

/// A table with every atom in every shape, and every pair of atoms as an optional pair and a map.
fn schema() -> (serde_json::Value, Vec<String>) {
    let mut columns = serde_json::Map::new();
    let mut add = |name: String, key: &str, value: Option<&str>, min, max: Option<u64>| {
        let max = max.map_or(serde_json::json!("unlimited"), |max| max.into());
        let mut kind = serde_json::json!({"key": key, "min": min, "max": max});
        if let Some(value) = value {
            kind["value"] = value.into();
        }
        columns.insert(name, serde_json::json!({"type": kind}));
    };
    for key in ATOMS {
        for (shape, min, max) in SHAPES {
            add(format!("{key}_{shape}"), key, None, min, max);
        }
        for value in ATOMS {
            add(format!("{key}_{value}_pair"), key, Some(value), 0, Some(1));
            add(format!("{key}_{value}_map"), key, Some(value), 0, None);
        }
    }
    let names = columns.keys().cloned().collect();
    let schema = serde_json::json!({
        "name": "Types",
        "version": "1.0.0",
        "tables": {"Thing": {"columns": columns}},
    });
    (schema, names)
}

/// One of a few values, the default among them.
fn atom(kind: &str, random: &mut fastrand::Rng) -> neighsteer::ovsdb::Atom {
    let number = random.i64(-2..3);
    match kind {
        "integer" => number.into(),
        "real" => [0.0, 1.0, -2.5, 1e300, 0.1][random.usize(..5)].into(),
        "boolean" => random.bool().into(),
        "string" => ["", "a", "ä\"\\\n\u{1}", "z", "}]"][random.usize(..5)].into(),
        _ => Uuid(uuid(random.u128(..4))).into(),
    }
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

fn datum(column: &str, random: &mut fastrand::Rng) -> Datum {
    let mut parts = column.split('_');
    let key = parts.next().unwrap();
    let second = parts.next().unwrap();
    match (second, parts.next()) {
        ("one", None) => Datum::Scalar(atom(key, random)),
        ("optional", None) => Datum::set((0..random.usize(..2)).map(|_| atom(key, random))),
        ("set", None) => Datum::set((0..random.usize(..4)).map(|_| atom(key, random))),
        (_, None) => Datum::set((0..random.usize(1..4)).map(|_| atom(key, random))),
        (value, Some(shape)) => {
            let most = if shape == "pair" { 2 } else { 4 };
            Datum::map((0..random.usize(..most)).map(|_| (atom(key, random), atom(value, random))))
        }
    }
}

#[tokio::test]
async fn cache_equals_the_database_after_random_changes_of_every_type() {
    let (schema, columns) = schema();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("types.ovsschema");
    fs::write(&path, schema.to_string()).unwrap();
    let mut server = DatabaseServer::start(&path).unwrap();
    // The table is no root: without this it would lose its rows at once.
    let table = TableRequest::new("Thing", columns.iter().map(String::as_str));
    let request = MonitorRequest::new().table(table);
    let options = Options::new(vec![server.remote()], "Types", request.clone());
    let mut peer = Peer::synced(options).await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut things: Vec<Uuid> = Vec::new();
    for round in 0..60 {
        if round == 40 {
            server.kill().unwrap();
            server.resurrect().unwrap();
            peer.until(|peer| peer.synced == 2).await;
        }
        let mut operations: Vec<Operation> = Vec::new();
        for _ in 0..random.usize(1..8) {
            let row: Vec<(String, Datum)> = (0..random.usize(..12))
                .map(|_| {
                    let column = columns[random.usize(..columns.len())].clone();
                    let value = datum(&column, &mut random);
                    (column, value)
                })
                .collect();
            match random.usize(..10) {
                0..4 => {
                    let thing = Uuid::random();
                    things.push(thing);
                    let insert = Operation::insert("Thing").uuid(thing);
                    operations.push(
                        row.into_iter()
                            .fold(insert, |insert, (column, value)| insert.set(column, value))
                            .into(),
                    );
                }
                4..9 if !things.is_empty() => {
                    let thing = things[random.usize(..things.len())];
                    let update = Operation::update("Thing").by_uuid(thing);
                    operations.push(
                        row.into_iter()
                            .fold(update, |update, (column, value)| update.set(column, value))
                            .into(),
                    );
                }
                _ if !things.is_empty() => {
                    let thing = things.swap_remove(random.usize(..things.len()));
                    operations.push(Operation::delete("Thing").by_uuid(thing).into());
                }
                _ => {}
            }
        }
        peer.client.transact(&operations).await.unwrap();
        let snapshot = Snapshot::fetch(&[server.remote()], "Types", request.clone(), DEADLINE)
            .await
            .unwrap();
        let expected: BTreeMap<Uuid, Row> = snapshot
            .rows("Thing")
            .map(|(uuid, row)| (uuid, row.clone()))
            .collect();
        assert_eq!(expected.len(), things.len());
        // What the transaction changed was queued before its answer.
        while let Ok(changes) = tokio::time::timeout(std::time::Duration::ZERO, peer.take()).await {
            assert!(!changes.is_empty());
        }
        assert_eq!(peer.rows, expected, "round {round}");
    }
}
