//! Which tables a flow's actions hand a frame on to.

use std::collections::BTreeSet;

use crate::openflow::{Action, Flow};

/// The tables that a flow's frames may go on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To none.
    Nowhere,
    /// To these.
    To(BTreeSet<u8>),
    /// To any: an action is not understood.
    Anywhere,
}

impl Leads {
    pub(super) fn of(flow: &Flow) -> Self {
        let mut tables = BTreeSet::new();
        for action in &flow.actions {
            let Action::Other(text) = action else {
                continue;
            };
            match read(text, flow.table) {
                Some(found) => tables.extend(found),
                None => return Self::Anywhere,
            }
        }
        if tables.is_empty() {
            Self::Nowhere
        } else {
            Self::To(tables)
        }
    }

    pub(super) fn contains(&self, table: u8) -> bool {
        match self {
            Self::Nowhere => false,
            Self::To(tables) => tables.contains(&table),
            Self::Anywhere => true,
        }
    }
}

/// The table that an action names, if it names one; `None` where the action is not understood.
fn read(text: &str, own: u8) -> Option<Option<u8>> {
    if let Some(experimenter) = text.strip_prefix("action(65535,0x2320") {
        return nicira(experimenter, own);
    }
    let (name, rest) = text.split_once(['(', ':', '=']).unwrap_or((text, ""));
    let inner = rest.trim_end_matches(')');
    match name {
        "goto_table" => inner.trim().parse().ok().map(Some),
        "resubmit" if text.starts_with("resubmit(") => match inner.split_once(',') {
            Some((_, table)) if !table.is_empty() => {
                let (table, _) = table.split_once(',').unwrap_or((table, ""));
                table.trim().parse().ok().map(Some)
            }
            _ => Some(Some(own)),
        },
        "resubmit" => Some(Some(own)),
        "ct" => match rest.split_once("table=") {
            None => Some(None),
            Some((_, table)) => {
                let digits = table.find(|c: char| !c.is_ascii_digit());
                let digits = table.get(..digits.unwrap_or(table.len()))?;
                digits.parse().ok().map(Some)
            }
        },
        "ct_clear" | "set_field" | "load" | "move" | "push_vlan" | "pop_vlan" | "strip_vlan"
        | "mod_vlan_vid" | "mod_vlan_pcp" | "mod_dl_src" | "mod_dl_dst" | "mod_nw_src"
        | "mod_nw_dst" | "set_queue" | "dec_ttl" | "CONTROLLER" | "controller" | "IN_PORT"
        | "ALL" | "check_pkt_larger" | "learn" | "note" | "enqueue" => Some(None),
        _ => None,
    }
}

/// An action of Nicira's extension (nicira-ext.h) as hex digits from its subtype on.
fn nicira(hex: &str, own: u8) -> Option<Option<u8>> {
    const RESUBMIT: u16 = 1;
    const REGISTER_MOVE: u16 = 6;
    const REGISTER_LOAD: u16 = 7;
    const NOTE: u16 = 8;
    const RESUBMIT_TABLE: u16 = 14;
    const LEARN: u16 = 16;
    const DECREMENT_TTL: u16 = 18;
    const CONTROLLER: u16 = 20;
    const REGISTER_LOAD_2: u16 = 33;
    const CONNTRACK: u16 = 35;
    const CONNTRACK_CLEAR: u16 = 43;
    const RESUBMIT_TABLE_CONNTRACK: u16 = 44;
    const CHECK_PACKET_LARGER: u16 = 49;
    let table = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    match u16::from_str_radix(hex.get(..4)?, 16).ok()? {
        RESUBMIT => Some(Some(own)),
        // Behind the port (2 bytes).
        RESUBMIT_TABLE | RESUBMIT_TABLE_CONNTRACK => match table(8)? {
            0xff => Some(Some(own)),
            table => Some(Some(table)),
        },
        // Behind flags (2 bytes) and the zone (6 bytes); 0xff where it does not recirculate.
        CONNTRACK => Some(table(20).filter(|table| *table != 0xff)),
        REGISTER_MOVE | REGISTER_LOAD | REGISTER_LOAD_2 | NOTE | LEARN | DECREMENT_TTL
        | CONTROLLER | CONNTRACK_CLEAR | CHECK_PACKET_LARGER => Some(None),
        _ => None,
    }
}
