//! What every follower has, beside what the source says: from nothing but the rows.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

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

/// How a follower's row about a neighbour stands to the source's.
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

/// One follower's row about one neighbour of the source's.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// What the source says.
    pub source: &'a BindingRow,
    /// Whose row it is.
    pub follower: &'a Member,
    /// The row.
    pub row: Option<&'a BindingRow>,
    /// How it stands.
    pub state: RowState,
    pub(super) need: Need,
}

impl<'a> Compared<'a> {
    /// The neighbour.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.source.ip
    }
}

/// Compares all followers' rows with the source's, ordered by neighbour and then as the followers are.
/// Node addresses are left out.
#[must_use]
pub fn compare<'a>(
    rows: &[&'a BindingRow],
    members: &'a GroupMembers,
    settings: &Settings,
    clock: &ServerClock,
    now: Now,
) -> Vec<Compared<'a>> {
    let Some(source) = &members.source else {
        return Vec::new();
    };
    let mut truths: BTreeMap<IpAddr, &BindingRow> = BTreeMap::new();
    let mut by_port: BTreeMap<(&str, IpAddr), Vec<&'a BindingRow>> = BTreeMap::new();
    for row in rows.iter().copied() {
        if row.port != source.port {
            by_port.entry((&row.port, row.ip)).or_default().push(row);
        } else if row.mac.is_some()
            && !row.is_elsewhere(source)
            && !members.node_ips.contains(&row.ip)
        {
            let known = truths.entry(row.ip).or_insert(row);
            if (known.timestamp, known.uuid) < (row.timestamp, row.uuid) {
                *known = row;
            }
        }
    }
    let times = Times::new(clock, now);
    let mut compared = Vec::new();
    for (ip, truth) in truths {
        let source_age = source.age_ms(ip);
        for follower in &members.followers {
            if follower.port == source.port {
                continue;
            }
            let rows = by_port.get(&(&*follower.port, ip));
            let row = worst(rows.map_or(&[], Vec::as_slice), truth);
            let age = follower.age_ms(ip);
            let ages = Ages {
                source: source_age,
                follower: age,
                cooldown: settings.cooldown(age),
            };
            let Some(need) = need(truth, follower, row, ages, times) else {
                continue;
            };
            compared.push(Compared {
                source: truth,
                follower,
                row,
                state: state(need, row.is_some()),
                need,
            });
        }
    }
    compared
}

/// Of several rows about the same neighbour, spelt differently, the one that needs most.
fn worst<'a>(rows: &[&'a BindingRow], truth: &BindingRow) -> Option<&'a BindingRow> {
    let rows = rows.iter().copied();
    rows.min_by_key(|row| (row.mac == truth.mac, row.timestamp, row.uuid))
}

fn need(
    truth: &BindingRow,
    follower: &Member,
    row: Option<&BindingRow>,
    ages: Ages,
    times: Times,
) -> Option<Need> {
    let truth = Truth {
        mac: truth.mac?,
        timestamp: truth.timestamp,
        text: Arc::clone(&truth.ip_text),
    };
    let row = row.map(|row| StoredRow {
        uuid: row.uuid,
        timestamp: row.timestamp,
        mac: row.mac,
        elsewhere: row.is_elsewhere(follower),
    });
    Some(decide(&truth, row.as_ref(), ages, times))
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
