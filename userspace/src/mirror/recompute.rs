//! What is to be written, from nothing but the rows: for a dry run, and to check the machine against.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    batch::{Reason, RowOperation, RowWrite},
    clock::{Now, ServerClock},
    compare::{Compared, compare},
    decide::Need,
    group::GroupMembers,
    machine::Settings,
    rows::BindingRow,
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
    let clock = ServerClock::from_rows(&rows, members, settings, now);
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
    compare(rows, members, settings, clock, now)
        .iter()
        .filter_map(|compared| operation(compared, clock, now))
        .collect()
}

impl ServerClock {
    /// What the rows of a group's members tell.
    #[must_use]
    pub fn from_rows(
        rows: &[&BindingRow],
        members: &GroupMembers,
        settings: &Settings,
        now: Now,
    ) -> Self {
        let mut clock = Self::new(settings.clock_tolerance_ms);
        let ports: BTreeSet<&str> = (members.source.iter().chain(&members.followers))
            .map(|member| &*member.port)
            .collect();
        for row in rows {
            if ports.contains(&*row.port) {
                clock.observe(row.timestamp, false, now);
            }
        }
        clock
    }
}

fn operation(compared: &Compared<'_>, clock: &ServerClock, now: Now) -> Option<RowOperation> {
    let (truth, follower) = (&compared.truth, compared.follower);
    let mac = truth.mac;
    let timestamp = clock.stamp(truth.timestamp, now);
    let (reason, write) = match compared.need {
        Need::Insert => (
            Reason::Fill,
            RowWrite::Insert {
                port: Arc::clone(&follower.port),
                datapath: follower.datapath,
                ip: truth.spell(compared.ip),
                mac,
                timestamp,
            },
        ),
        Need::Correct(uuid) => (
            Reason::Correction,
            RowWrite::Update {
                uuid,
                mac: Some(mac),
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
        ip: compared.ip,
        write,
    })
}
