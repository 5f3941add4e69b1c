//! What is to be written, from nothing but the rows: for a dry run, and to check the machine against.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::{
    batch::{Reason, RowOperation, RowWrite},
    clock::{Now, ServerClock},
    decide::{Ages, Need, Times, decide},
    group::{GroupMembers, Member},
    machine::Settings,
    rows::BindingRow,
    table::{StoredRow, Truth},
};

/// The operations that would make every follower's rows what they should be, ordered by neighbour and
/// then as the followers are. Reasons are [`Reason::Fill`], [`Reason::Correction`] and
/// [`Reason::Refresh`], since rows have no history.
#[must_use]
pub fn recompute<'a>(
    rows: impl IntoIterator<Item = &'a BindingRow>,
    members: &GroupMembers,
    settings: &Settings,
    now: Now,
) -> Vec<RowOperation> {
    let rows: Vec<&BindingRow> = rows.into_iter().collect();
    let mut clock = ServerClock::new(settings.clock_tolerance_ms);
    let ports: BTreeSet<&str> = (members.source.iter().chain(&members.followers))
        .map(|member| &*member.port)
        .collect();
    for row in &rows {
        if ports.contains(&*row.port) {
            clock.observe(row.timestamp, false, now);
        }
    }
    with_clock(&rows, members, settings, &clock, now)
}

/// The same, with what is known of the server's clock.
pub(super) fn with_clock(
    rows: &[&BindingRow],
    members: &GroupMembers,
    settings: &Settings,
    clock: &ServerClock,
    now: Now,
) -> Vec<RowOperation> {
    let Some(source) = &members.source else {
        return Vec::new();
    };
    let mut truths: BTreeMap<IpAddr, (i64, crate::ovsdb::Uuid, Truth)> = BTreeMap::new();
    let mut by_port: BTreeMap<(&str, IpAddr), Vec<&BindingRow>> = BTreeMap::new();
    for row in rows {
        let is_source = row.port == source.port;
        if !is_source {
            by_port.entry((&row.port, row.ip)).or_default().push(row);
            continue;
        }
        let Some(mac) = row.mac else { continue };
        if row.is_elsewhere(source) || members.node_ips.contains(&row.ip) {
            continue;
        }
        let age = (row.timestamp, row.uuid);
        if truths
            .get(&row.ip)
            .is_none_or(|known| (known.0, known.1) < age)
        {
            let truth = Truth {
                mac,
                timestamp: row.timestamp,
                text: Arc::clone(&row.ip_text),
            };
            truths.insert(row.ip, (age.0, age.1, truth));
        }
    }
    let times = Times::new(clock, now);
    let mut operations = Vec::new();
    for (ip, (.., truth)) in &truths {
        for follower in &members.followers {
            if follower.port == source.port {
                continue;
            }
            let rows = by_port.get(&(&*follower.port, *ip));
            let row = worst(rows.map_or(&[], Vec::as_slice), follower, truth);
            let age = follower.age_ms(*ip);
            let ages = Ages {
                source: source.age_ms(*ip),
                follower: age,
                cooldown: settings.cooldown(age),
            };
            let need = decide(truth, row.as_ref(), ages, times);
            let stamp = clock.stamp(truth.timestamp, now);
            operations.extend(operation(follower, *ip, truth, need, stamp));
        }
    }
    operations
}

/// Of several rows about the same neighbour, spelt differently, the one that needs most.
fn worst(rows: &[&BindingRow], follower: &Member, truth: &Truth) -> Option<StoredRow> {
    let row = rows
        .iter()
        .min_by_key(|row| (row.mac == Some(truth.mac), row.timestamp, row.uuid))?;
    Some(StoredRow {
        uuid: row.uuid,
        timestamp: row.timestamp,
        mac: row.mac,
        elsewhere: row.is_elsewhere(follower),
    })
}

fn operation(
    follower: &Member,
    ip: IpAddr,
    truth: &Truth,
    need: Need,
    timestamp: i64,
) -> Option<RowOperation> {
    let (reason, write) = match need {
        Need::Insert => (
            Reason::Fill,
            RowWrite::Insert {
                port: Arc::clone(&follower.port),
                datapath: follower.datapath,
                ip: Arc::clone(&truth.text),
                mac: truth.mac,
                timestamp,
            },
        ),
        Need::Correct(uuid) => (
            Reason::Correction,
            RowWrite::Update {
                uuid,
                mac: Some(truth.mac),
                timestamp,
            },
        ),
        Need::Refresh(uuid) => (
            Reason::Refresh,
            RowWrite::Update {
                uuid,
                mac: None,
                timestamp,
            },
        ),
        Need::Nothing(..) => return None,
    };
    Some(RowOperation {
        reason,
        port: Arc::clone(&follower.port),
        ip,
        write,
    })
}
