//! Update decoding: what answers `monitor_cond_since`, then `update3` after `update3`, and the cache
//! that they make.
//!
//! Input: lines; the first is the answer, the others params of `update3` of the monitor "m".

use std::{collections::HashMap, sync::Arc};

use neighsteer::ovsdb::{
    Change, MonitorRequest, Row, TableRequest, Uuid,
    cache::Cache,
    wire::{
        schema::{Layout, layouts},
        updates::{Decoder, Updates},
    },
};

use super::lines;

/// A table with a column of every kind, and one to confuse it with.
const SCHEMA: &str = r#"{"tables": {
    "T": {"columns": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "real"},
        "flag": {"type": "boolean"},
        "owner": {"type": {"key": "uuid"}},
        "nick": {"type": {"key": "string", "min": 0}},
        "ports": {"type": {"key": "uuid", "min": 0, "max": "unlimited"}},
        "tags": {"type": {"key": "integer", "min": 0, "max": "unlimited"}},
        "pair": {"type": {"key": "string", "min": 2, "max": 2}},
        "ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
        "weights": {"type": {"key": "integer", "value": "real", "min": 0, "max": 4}}}},
    "U": {"columns": {"name": {"type": "string"}}}}}"#;

type Shadow = HashMap<(Arc<str>, Uuid), Row>;

fn tables() -> Vec<Layout> {
    let all = [
        "name", "count", "ratio", "flag", "owner", "nick", "ports", "tags", "pair", "ids",
        "weights",
    ];
    let request = MonitorRequest::new()
        .table(TableRequest::new("T", all))
        .table(TableRequest::new("U", ["name"]));
    layouts(SCHEMA.as_bytes(), "fuzzed", &request).expect("the schema above")
}

pub(super) fn run(data: &[u8]) {
    let mut lines = lines(data);
    let mut cache = Cache::default();
    cache.set_layouts(tables());
    let mut shadow = Shadow::new();
    let first = lines.next().unwrap_or_default();
    let (layouts, interner) = cache.decoder_parts();
    match Decoder::new(layouts, interner).monitor_reply(first) {
        Ok(reply) if reply.found => {
            update(&mut cache, reply.updates, &mut shadow);
        }
        Ok(reply) => snapshot(&mut cache, &reply.updates, &mut shadow),
        Err(error) => {
            let _ = error.to_string();
        }
    }
    for line in lines {
        let (layouts, interner) = cache.decoder_parts();
        match Decoder::new(layouts, interner).update3(line, "m") {
            Ok(Some(news)) => {
                if !update(&mut cache, news.updates, &mut shadow) {
                    // The client asks for a snapshot then.
                    return;
                }
            }
            Ok(None) => {}
            Err(error) => {
                let _ = error.to_string();
            }
        }
    }
}

fn snapshot(cache: &mut Cache, updates: &Updates, shadow: &mut Shadow) {
    let mut changes = Vec::new();
    let replaced = cache.replace(updates.clone(), &mut changes).is_ok();
    follow(cache, changes, shadow);
    let mut rows: Vec<_> = updates
        .iter()
        .flat_map(|(table, rows)| rows.iter().map(move |(uuid, _)| (*table, *uuid)))
        .collect();
    let named = rows.len();
    rows.sort_unstable();
    rows.dedup();
    // One that names a row twice changes it twice.
    if replaced && rows.len() == named {
        let mut changes = Vec::new();
        assert!(cache.replace(updates.clone(), &mut changes).is_ok());
        assert_eq!(changes, [], "the same snapshot again");
    }
}

fn update(cache: &mut Cache, updates: Updates, shadow: &mut Shadow) -> bool {
    let mut changes = Vec::new();
    let applied = cache.apply(updates, &mut changes).is_ok();
    follow(cache, changes, shadow);
    applied
}

/// Whoever follows the changes has the rows of the cache, which are as their columns want them.
fn follow(cache: &Cache, changes: Vec<Change>, shadow: &mut Shadow) {
    for change in changes {
        let key = (change.table, change.uuid);
        assert_ne!(change.old, change.new, "a change that is none");
        assert_eq!(shadow.remove(&key), change.old, "what it was before");
        if let Some(row) = change.new {
            shadow.insert(key, row);
        }
    }
    let mut count = 0;
    for (place, layout) in cache.layouts().iter().enumerate() {
        for (uuid, row) in cache.rows(place) {
            count += 1;
            let key = (Arc::clone(&layout.table), uuid);
            assert_eq!(shadow.get(&key), Some(row));
            assert_eq!(row.iter().count(), layout.types.len());
            for (kind, (column, value)) in layout.types.iter().zip(row.iter()) {
                let conforming = kind.conform(value.clone());
                assert_eq!(conforming.as_ref(), Ok(value), "{column}");
            }
        }
    }
    assert_eq!(count, shadow.len());
}
