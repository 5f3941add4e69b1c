//! Row parsing: rows of the tables that the agent monitors, the groups that follow from them, and what
//! the bindings among them come to.
//!
//! Input: lines; the first is a schema, or empty for that of the real databases, the others are params
//! of `update3` of the monitor "m".

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use neighsteer::{
    agent::databases::{MAC_BINDING, MAC_BINDING_COLUMNS, request as monitored},
    cli::bindings::{OtherSources, Watch, report},
    mirror::{BindingRow, GroupMembers, Millis, Now, Settings, recompute},
    ovsdb::{
        Change, MonitorRequest, TableRequest, Uuid,
        cache::Cache,
        wire::{schema::layouts, updates::Decoder},
    },
    rows::{Applied, Database, Rows, Table},
    topology::{self, Incumbents, Topology},
};

use super::lines;

/// The columns that are monitored, as the schemas of OVN 23.03 and Open vSwitch 3.1 have them.
const SCHEMA: &str = include_str!("rows/schema.json");

/// What the agent monitors, of all three databases at once.
pub(super) fn request() -> MonitorRequest {
    let databases = [
        Database::OpenVSwitch,
        Database::Northbound,
        Database::Southbound,
    ];
    let tables = databases
        .into_iter()
        .flat_map(|database| monitored(database, "node").tables);
    tables
        .fold(MonitorRequest::new(), MonitorRequest::table)
        .table(TableRequest::new(MAC_BINDING, MAC_BINDING_COLUMNS))
}

/// What an input says.
struct Read {
    cache: Cache,
    rows: Rows,
    bindings: BTreeMap<Uuid, BindingRow>,
}

pub(super) fn run(data: &[u8]) {
    let Some(read) = read(data) else {
        return;
    };
    let topology = groups(&read.rows);
    mirrored(&topology, &read.bindings.into_values().collect::<Vec<_>>());
    empty(&read.cache, read.rows);
}

fn read(data: &[u8]) -> Option<Read> {
    let mut lines = lines(data);
    let schema = match lines.next() {
        None | Some(b"") => SCHEMA.as_bytes(),
        Some(schema) => schema,
    };
    let mut cache = Cache::default();
    cache.set_layouts(layouts(schema, "fuzzed", &request()).ok()?);
    let mut rows = Rows::default();
    let mut bindings = BTreeMap::new();
    for line in lines {
        let (layouts, interner) = cache.decoder_parts();
        let mut changes = Vec::new();
        if let Ok(Some(update)) = Decoder::new(layouts, interner).update3(line, "m") {
            // What was done before an error counts.
            let _ = cache.apply(update.updates, &mut changes);
        }
        for change in changes {
            if &*change.table == MAC_BINDING {
                binding(&change, &mut bindings);
            } else {
                typed(&change, &mut rows);
            }
        }
    }
    Some(Read {
        cache,
        rows,
        bindings,
    })
}

fn table(name: &str) -> Table {
    let mut tables = Table::ALL.into_iter();
    tables
        .find(|table| table.name() == name)
        .expect("monitored")
}

fn typed(change: &Change, rows: &mut Rows) {
    let table = table(&change.table);
    let first = rows.apply(table, change.uuid, change.new.as_ref());
    let again = rows.apply(table, change.uuid, change.new.as_ref());
    match first {
        Applied::Changed | Applied::Unchanged => assert_eq!(again, Applied::Unchanged),
        Applied::Skipped(_) => assert_eq!(again, first),
    }
}

fn binding(change: &Change, bindings: &mut BTreeMap<Uuid, BindingRow>) {
    let row = change.new.as_ref();
    match row.map(|row| BindingRow::parse(change.uuid, row)) {
        Some(Ok(row)) => {
            assert_eq!(row.ip_text.parse::<IpAddr>().as_ref(), Ok(&row.ip));
            assert!(!row.port.is_empty());
            bindings.insert(change.uuid, row);
        }
        Some(Err(_)) | None => {
            bindings.remove(&change.uuid);
        }
    }
}

fn groups(rows: &Rows) -> Topology {
    let topology = topology::build(rows, &Incumbents::new());
    let again = topology::build(rows, &topology.incumbents());
    assert_eq!(again, topology, "the sources that it has designated itself");
    for skipped in &topology.skipped {
        let _ = skipped.to_string();
    }
    topology
}

fn mirrored(topology: &Topology, rows: &[BindingRow]) {
    let settings = Settings::default();
    let now = Now {
        at: Millis(1_000),
        wall_ms: 1_700_000_000_000,
    };
    let mut watch = Watch::new(settings);
    for row in rows {
        watch.upsert(row.clone(), true, now);
    }
    let groups: BTreeMap<Arc<str>, GroupMembers> = topology
        .groups
        .iter()
        .map(|group| {
            let members = GroupMembers::of(group, Arc::default());
            (Arc::clone(&group.bridge), members)
        })
        .collect();
    let references: Vec<&BindingRow> = rows.iter().collect();
    for (bridge, members) in &groups {
        let _ = recompute(rows, members, &settings, now);
        let others: Vec<_> = groups
            .iter()
            .filter(|(other, _)| *other != bridge)
            .filter_map(|(other, members)| Some((&**other, members.source.as_ref()?)))
            .collect();
        let others = OtherSources::of(&others, &references);
        let report = report(bridge, members, &references, &others, &settings, now);
        assert_eq!(report.followers.len(), members.followers.len());
    }
    let bridges = groups.len();
    watch.set_groups(groups, now);
    let records = watch.take(now);
    assert_eq!(records.len(), bridges, "one line a bridge");
    for record in &records {
        let _ = record.to_string();
    }
    for row in rows {
        watch.remove(row.uuid, now);
    }
    watch.take(now);
    assert_eq!(watch.take(now), []);
}

/// Rows that are all deleted leave nothing.
fn empty(cache: &Cache, mut rows: Rows) {
    for (place, layout) in cache.layouts().iter().enumerate() {
        for (uuid, _) in cache.rows(place) {
            if &*layout.table != MAC_BINDING {
                rows.apply(table(&layout.table), uuid, None);
            }
        }
    }
    assert_eq!(rows, Rows::default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_node_of_the_corpus_is_understood() {
        for data in [
            include_bytes!("../../corpus/rows/real-node").as_slice(),
            include_bytes!("../../corpus/rows/real-node-with-schema"),
        ] {
            let read = read(data).expect("a schema that is understood");
            assert!(read.rows.unreadable.is_empty(), "{:?}", read.rows);
            let topology = groups(&read.rows);
            let group = topology.group("br-ex").expect("the lab's group");
            assert_eq!(group.followers.len(), 2);
            let of_source = read.bindings.values();
            let of_source = of_source.filter(|row| row.port == group.source.external_port);
            assert!(of_source.count() > 0, "{:?}", read.bindings);
        }
    }
}
