use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::ovsdb::wire::{
    monitor::{MonitorRequest, TableRequest},
    schema,
};

fn cache() -> Cache {
    let schema = serde_json::json!({"tables": {"T": {"columns": {
        "name": {"type": "string"},
        "peer": {"type": {"key": "integer", "min": 0}},
        "tags": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
        "ids": {"type": {"key": "integer", "value": "integer", "min": 0, "max": "unlimited"}},
    }}}});
    let request =
        MonitorRequest::new().table(TableRequest::new("T", ["name", "peer", "tags", "ids"]));
    let mut cache = Cache::default();
    let layouts = schema::layouts(schema.to_string().as_bytes(), "D", &request).unwrap();
    assert!(cache.set_layouts(layouts.clone()));
    assert!(!cache.set_layouts(layouts));
    cache
}

fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

/// What a row of the table holds, apart from the database.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    name: String,
    peer: Option<i64>,
    tags: BTreeSet<i64>,
    ids: BTreeMap<i64, i64>,
}

impl Model {
    fn values(&self) -> Vec<Datum> {
        vec![
            Datum::from(self.name.as_str()),
            Datum::set(self.peer),
            Datum::set(self.tags.iter().copied()),
            Datum::map(self.ids.clone()),
        ]
    }

    /// The `modify` that a server sends from `self` to `new`.
    fn modify(&self, new: &Self) -> RowUpdate {
        let mut columns = Vec::new();
        if self.name != new.name {
            columns.push((0, Datum::from(new.name.as_str())));
        }
        if self.peer != new.peer {
            columns.push((1, Datum::set(new.peer)));
        }
        if self.tags != new.tags {
            let difference = self.tags.symmetric_difference(&new.tags).copied();
            columns.push((2, Datum::set(difference)));
        }
        let mut ids: BTreeMap<i64, i64> = BTreeMap::new();
        ids.extend(
            self.ids
                .iter()
                .filter(|(key, _)| !new.ids.contains_key(*key)),
        );
        ids.extend(
            new.ids
                .iter()
                .filter(|(key, value)| self.ids.get(*key) != Some(*value)),
        );
        if !ids.is_empty() {
            columns.push((3, Datum::map(ids)));
        }
        RowUpdate::Modify(columns)
    }
}

fn model() -> impl Strategy<Value = Model> {
    (
        "[a-c]?",
        proptest::option::of(0i64..3),
        proptest::collection::btree_set(0i64..6, 0..4),
        proptest::collection::btree_map(0i64..4, 0i64..2, 0..4),
    )
        .prop_map(|(name, peer, tags, ids)| Model {
            name,
            peer,
            tags,
            ids,
        })
}

fn contents(cache: &Cache) -> BTreeMap<Uuid, Vec<Datum>> {
    cache
        .rows(0)
        .map(|(uuid, row)| (uuid, row.values().to_vec()))
        .collect()
}

fn snapshot(models: &BTreeMap<u128, Model>) -> Updates {
    let rows = models
        .iter()
        .map(|(number, model)| (uuid(*number), RowUpdate::Insert(model.values().into())))
        .collect();
    vec![(0, rows)]
}

/// What the changes make of what was known, where each must start from.
fn follow(known: &mut BTreeMap<Uuid, Row>, changes: Vec<Change>) {
    for change in changes {
        assert_ne!(change.old, change.new);
        assert_eq!(known.get(&change.uuid), change.old.as_ref());
        match change.new {
            Some(row) => known.insert(change.uuid, row),
            None => known.remove(&change.uuid),
        };
    }
}

proptest! {
    /// Differences, now and then a snapshot after a gap: always the same as a recompute.
    #[test]
    fn differences_and_snapshots_give_what_the_server_has(
        steps in proptest::collection::vec(
            (0u128..6, proptest::option::of(model()), proptest::bool::weighted(0.2)),
            0..40,
        ),
    ) {
        let mut cache = cache();
        let mut server: BTreeMap<u128, Model> = BTreeMap::new();
        let mut known = BTreeMap::new();
        let mut away = false;
        for (number, model, missed) in steps {
            let old = server.get(&number).cloned();
            let update = match (&old, &model) {
                (None, None) => continue,
                (None, Some(new)) => RowUpdate::Insert(new.values().into()),
                (Some(old), Some(new)) => old.modify(new),
                (Some(_), None) => RowUpdate::Delete,
            };
            match model {
                Some(model) => server.insert(number, model),
                None => server.remove(&number),
            };
            if missed {
                away = true;
                continue;
            }
            let mut changes = Vec::new();
            if away {
                away = false;
                cache.replace(snapshot(&server), &mut changes).unwrap();
            } else {
                cache.apply(vec![(0, vec![(uuid(number), update)])], &mut changes).unwrap();
            }
            follow(&mut known, changes);
            let expected: BTreeMap<Uuid, Vec<Datum>> = server
                .iter()
                .map(|(number, model)| (uuid(*number), model.values()))
                .collect();
            prop_assert_eq!(contents(&cache), expected.clone());
            let known: BTreeMap<Uuid, Vec<Datum>> = known
                .iter()
                .map(|(uuid, row)| (*uuid, row.values().to_vec()))
                .collect();
            prop_assert_eq!(known, expected);
        }
    }
}

fn sample() -> BTreeMap<u128, Model> {
    (0..10)
        .map(|number| {
            let model = Model {
                name: number.to_string(),
                peer: None,
                tags: BTreeSet::new(),
                ids: BTreeMap::new(),
            };
            (number, model)
        })
        .collect()
}

#[test]
fn snapshot_of_what_is_known_changes_nothing_and_keeps_the_rows() {
    let mut cache = cache();
    cache.replace(snapshot(&sample()), &mut Vec::new()).unwrap();
    let before = contents(&cache);
    let mut changes = Vec::new();
    cache.replace(snapshot(&sample()), &mut changes).unwrap();
    assert_eq!(changes, []);
    assert_eq!(contents(&cache), before);
}

#[test]
fn change_of_a_row_that_is_not_cached_is_an_error() {
    let mut changes = Vec::new();
    let update = RowUpdate::Modify(vec![(0, Datum::from("x"))]);
    let error = cache()
        .apply(vec![(0, vec![(uuid(1), update)])], &mut changes)
        .unwrap_err();
    assert!(matches!(error, ApplyError::UnknownRow { .. }));
    let error = cache()
        .replace(vec![(0, vec![(uuid(1), RowUpdate::Delete)])], &mut changes)
        .unwrap_err();
    assert!(matches!(error, ApplyError::NotASnapshot { .. }));
}

#[test]
fn rows_of_another_layout_count_as_changed() {
    let mut cache = cache();
    cache.replace(snapshot(&sample()), &mut Vec::new()).unwrap();
    let mut layouts = cache.layouts().to_vec();
    layouts[0].columns = ["name"].map(Arc::from).into();
    layouts[0].types.truncate(1);
    layouts[0].defaults.truncate(1);
    assert!(cache.set_layouts(layouts));
    let rows = vec![(uuid(1), RowUpdate::Insert([Datum::from("1")].into()))];
    let mut changes = Vec::new();
    cache.replace(vec![(0, rows)], &mut changes).unwrap();
    assert_eq!(changes.len(), 10);
    assert_eq!(contents(&cache).len(), 1);
}
