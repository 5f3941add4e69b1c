//! What becomes of a port's rows for one address.

use super::{
    Mode, Reason, RowWrite, Treatment,
    table::Known,
    wanted::{BridgeBindings, Wanted},
};
use crate::ids::Mac;
use std::net::IpAddr;

/// What is told about an address on a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The nodes are not known.
    Unknown,
    /// It stays as it is.
    Keep,
    /// A node has it, with this MAC.
    Binding(Mac),
    /// No node has it.
    NoNode,
}

impl Told {
    /// What a bridge's bindings say; `None` where they are not known.
    pub(super) fn of(bindings: Option<&BridgeBindings>, ip: IpAddr) -> Self {
        let Some(bindings) = bindings else {
            return Self::Unknown;
        };
        match bindings.bindings.get(&ip) {
            Some(Wanted::Binding(mac)) => Self::Binding(*mac),
            Some(Wanted::Keep) => Self::Keep,
            None if bindings.keep_unlisted => Self::Keep,
            None => Self::NoNode,
        }
    }
}

/// What holds for a port's rows for one address that is not the gateway's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// They stay as they are.
    Leave,
    /// One of them is right, and there is no other.
    Ensure {
        mac: Mac,
        /// Where there is none, it is inserted.
        insert: bool,
    },
    /// There are none.
    Remove(Reason),
}

/// The rule for a port. `nodes_known`: whether anything is known of nodes at all.
pub(super) const fn rule(treatment: Treatment, mode: Mode, told: Told, nodes_known: bool) -> Rule {
    match (treatment, mode, told) {
        (Treatment::Leaving, ..) => Rule::Remove(Reason::Leaving),
        (Treatment::Gone | Treatment::Recreated, ..) => Rule::Remove(Reason::Gone),
        (Treatment::Paused, ..) => Rule::Leave,
        (_, Mode::Withdraw, _) => Rule::Remove(Reason::Withdrawn),
        (Treatment::DefaultSource, ..) if nodes_known => Rule::Remove(Reason::DefaultSource),
        (Treatment::DefaultSource, ..) | (_, _, Told::Unknown | Told::Keep) => Rule::Leave,
        (_, _, Told::NoNode) => Rule::Remove(Reason::NoNode),
        (Treatment::Follower, Mode::Write, Told::Binding(mac)) => {
            Rule::Ensure { mac, insert: true }
        }
        (_, _, Told::Binding(mac)) => Rule::Ensure { mac, insert: false },
    }
}

/// What to write to follow a rule.
pub(super) fn decide(
    rule: Rule,
    rows: impl Iterator<Item = Known> + Clone,
    mut write: impl FnMut(RowWrite, Reason),
) {
    match rule {
        Rule::Leave => {}
        Rule::Remove(reason) => {
            for row in rows {
                write(RowWrite::Delete { uuid: row.uuid }, reason);
            }
        }
        Rule::Ensure { mac, insert } => {
            let is_right = |row: &Known| row.mac == Some(mac) && row.overrides;
            let right = rows.clone().find(is_right);
            let Some(kept) = right.or_else(|| rows.clone().next()) else {
                if insert {
                    write(RowWrite::Insert { mac }, Reason::Missing);
                }
                return;
            };
            if right.is_none() {
                let reason = if kept.mac == Some(mac) {
                    Reason::NoOverride
                } else {
                    Reason::WrongMac
                };
                let uuid = kept.uuid;
                write(RowWrite::Update { uuid, mac }, reason);
            }
            for double in rows.filter(|row| row.uuid != kept.uuid) {
                write(RowWrite::Delete { uuid: double.uuid }, Reason::Double);
            }
        }
    }
}
