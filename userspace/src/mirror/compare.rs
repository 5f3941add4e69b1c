//! What every follower has, beside what the source says and what is pinned: from nothing but the
//! rows.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use serde::Serialize;

use super::{
    batch::Skip,
    clock::{Now, ServerClock},
    decide::{Ages, Need, Times, decide},
    group::{GroupMembers, Member},
    machine::Settings,
    rows::BindingRow,
    table::{StoredRow, Truth},
};
use crate::ids::Mac;

/// How a follower's row about a neighbour stands to what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// It says the same, and needs no refresh yet.
    Right,
    /// It says the same, and is due for a refresh: it would expire before the source's.
    Stale,
    /// There is none.
    Missing,
    /// There is none, and none will be written: the source's row has reached its age.
    Expiring,
    /// It has another MAC.
    Wrong,
    /// It belongs to a former router with the same port.
    OtherDatapath,
}

/// From what it is known what followers should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The source has learnt it.
    Source,
    /// It is a node's, and pinned.
    Node,
}

/// One follower's row about one neighbour.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// The neighbour.
    pub ip: IpAddr,
    /// The MAC that it should have.
    pub mac: Mac,
    /// From what that is known.
    pub origin: Origin,
    /// Whose row it is.
    pub follower: &'a Member,
    /// The row.
    pub row: Option<&'a BindingRow>,
    /// How it stands.
    pub state: RowState,
    pub(super) need: Need,
    pub(super) truth: Truth,
}

/// Compares all followers' rows with the source's and with what is pinned, ordered by neighbour and
/// then as the followers are. Other node addresses are left out.
#[must_use]
pub fn compare<'a>(
    rows: &[&'a BindingRow],
    members: &'a GroupMembers,
    settings: &Settings,
    clock: &ServerClock,
    now: Now,
) -> Vec<Compared<'a>> {
    compare_with(
        truths(rows, members, clock, now),
        rows,
        members,
        settings,
        clock,
        now,
    )
}

/// The same for one neighbour, of whose rows these are all.
#[must_use]
pub fn compare_one<'a>(
    ip: IpAddr,
    rows: &[&'a BindingRow],
    members: &'a GroupMembers,
    settings: &Settings,
    clock: &ServerClock,
    now: Now,
) -> Vec<Compared<'a>> {
    let truth = truth(ip, rows, members, clock, now);
    let truths = truth.into_iter().map(|truth| (ip, truth)).collect();
    compare_with(truths, rows, members, settings, clock, now)
}

fn compare_with<'a>(
    truths: BTreeMap<IpAddr, (Origin, Truth)>,
    rows: &[&'a BindingRow],
    members: &'a GroupMembers,
    settings: &Settings,
    clock: &ServerClock,
    now: Now,
) -> Vec<Compared<'a>> {
    let source = members.source.as_ref();
    let is_source = |port: &str| source.is_some_and(|source| *source.port == *port);
    let mut by_port: BTreeMap<(&str, IpAddr), Vec<&'a BindingRow>> = BTreeMap::new();
    for row in rows.iter().copied().filter(|row| !is_source(&row.port)) {
        by_port.entry((&row.port, row.ip)).or_default().push(row);
    }
    let times = Times::new(clock, now);
    let mut compared = Vec::new();
    for (ip, (origin, truth)) in truths {
        let source_age = match origin {
            Origin::Source => source.and_then(|source| source.age_ms(ip)),
            Origin::Node => None,
        };
        for follower in &members.followers {
            if is_source(&follower.port) {
                continue;
            }
            let rows = by_port.get(&(&*follower.port, ip));
            let row = worst(rows.map_or(&[], Vec::as_slice), truth.mac);
            let age = follower.age_ms(ip);
            let ages = Ages {
                source: source_age,
                follower: age,
                cooldown: match origin {
                    Origin::Source => settings.cooldown(age),
                    Origin::Node => settings.pinned_cooldown(age, ip),
                },
            };
            let stored = row.map(|row| StoredRow {
                uuid: row.uuid,
                timestamp: row.timestamp,
                mac: row.mac,
                elsewhere: row.is_elsewhere(follower),
            });
            let need = decide(&truth, stored.as_ref(), ages, times);
            compared.push(Compared {
                ip,
                mac: truth.mac,
                origin,
                follower,
                row,
                state: state(need, row.is_some()),
                need,
                truth: truth.clone(),
            });
        }
    }
    compared
}

/// What followers should know.
fn truths(
    rows: &[&BindingRow],
    members: &GroupMembers,
    clock: &ServerClock,
    now: Now,
) -> BTreeMap<IpAddr, (Origin, Truth)> {
    let mut learnt: BTreeMap<IpAddr, Vec<&BindingRow>> = BTreeMap::new();
    if let Some(source) = &members.source {
        for row in rows.iter().filter(|row| row.belongs_to(source)) {
            learnt.entry(row.ip).or_default().push(row);
        }
    }
    let ips: BTreeSet<IpAddr> = learnt
        .keys()
        .chain(members.pinned.keys())
        .copied()
        .collect();
    let rows = |ip| learnt.get(&ip).map_or(&[] as &[_], Vec::as_slice);
    ips.into_iter()
        .filter_map(|ip| Some((ip, truth(ip, rows(ip), members, clock, now)?)))
        .collect()
}

/// What followers should know about a neighbour, by what is pinned or else by the source's newest row
/// that says anything.
fn truth(
    ip: IpAddr,
    rows: &[&BindingRow],
    members: &GroupMembers,
    clock: &ServerClock,
    now: Now,
) -> Option<(Origin, Truth)> {
    if let Some(mac) = members.pinned.get(&ip) {
        let truth = Truth {
            mac: *mac,
            timestamp: clock.fresh(now),
            text: None,
        };
        return Some((Origin::Node, truth));
    }
    if members.node_ips.contains(&ip) {
        return None;
    }
    let source = members.source.as_ref()?;
    let (row, mac) = rows
        .iter()
        .filter(|row| row.ip == ip && row.belongs_to(source))
        .filter_map(|row| Some((row, row.mac?)))
        .max_by_key(|(row, _)| (row.timestamp, row.uuid))?;
    let truth = Truth {
        mac,
        timestamp: row.timestamp,
        text: Some(Arc::clone(&row.ip_text)),
    };
    Some((Origin::Source, truth))
}

/// Of several rows about the same neighbour, spelt differently, the one that needs most.
fn worst<'a>(rows: &[&'a BindingRow], mac: Mac) -> Option<&'a BindingRow> {
    let rows = rows.iter().copied();
    rows.min_by_key(|row| (row.mac == Some(mac), row.timestamp, row.uuid))
}

const fn state(need: Need, there: bool) -> RowState {
    match need {
        Need::Insert => RowState::Missing,
        Need::Correct(_) => RowState::Wrong,
        Need::Refresh(_) => RowState::Stale,
        Need::Nothing(Skip::OtherDatapath, _) => RowState::OtherDatapath,
        Need::Nothing(..) if there => RowState::Right,
        Need::Nothing(..) => RowState::Expiring,
    }
}
