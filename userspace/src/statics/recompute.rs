//! What is to be written, from nothing but the rows: for a dry run, and to check the machine against.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use super::{
    Masquerade, Mode, RowOperation, StaticRow, Target, WantedBindings,
    decide::{Told, decide, rule},
    table::Known,
};

/// The operations that would make the rows of all targets what they should be, in order of ports and
/// addresses.
#[must_use]
pub fn recompute<'a>(
    rows: impl IntoIterator<Item = &'a StaticRow>,
    targets: &[Target],
    wanted: Option<&WantedBindings>,
    mode: Mode,
    masquerade: &Masquerade,
) -> Vec<RowOperation> {
    let mut known: BTreeMap<&str, BTreeMap<IpAddr, Vec<Known>>> = BTreeMap::new();
    for row in rows {
        if let Some(ip) = row.ip {
            let rows = known.entry(&*row.port).or_default().entry(ip).or_default();
            rows.push(Known {
                uuid: row.uuid,
                mac: row.mac,
                overrides: row.override_dynamic_mac,
            });
        }
    }
    let mut operations = Vec::new();
    for target in targets {
        let mut rows = known.remove(&*target.port).unwrap_or_default();
        let bridge = target.bridge.as_ref();
        let bindings = wanted.zip(bridge);
        let bindings = bindings.and_then(|(wanted, bridge)| wanted.bridges.get(bridge));
        for ip in bindings.into_iter().flat_map(|it| it.bindings.keys()) {
            rows.entry(*ip).or_default();
        }
        for (ip, mut rows) in rows {
            if masquerade.contains(ip) {
                continue;
            }
            rows.sort();
            let told = Told::of(bindings, ip);
            let rule = rule(target.treatment, mode, told, wanted.is_some());
            decide(rule, rows.into_iter(), |write, reason| {
                operations.push(RowOperation {
                    port: Arc::clone(&target.port),
                    ip,
                    write,
                    reason,
                });
            });
        }
    }
    operations.sort();
    operations
}
