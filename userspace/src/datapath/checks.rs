//! Reads back how many frames failed which check.

use std::{collections::BTreeMap, path::Path};

use neighsteer_common::{
    Check,
    abi::{CheckCounts, CheckKey, Direction},
};
use serde::Serialize;

use super::{
    error::ReadError,
    pins::Pins,
    read::{as_text, open},
};

/// How many frames failed one check, summed over the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CheckCounter {
    /// Index of the interface that the frames came from.
    pub interface_index: u32,
    /// Which way they went.
    #[serde(serialize_with = "as_text")]
    pub direction: Direction,
    /// What they failed.
    #[serde(serialize_with = "as_text")]
    pub check: Check,
    /// Whether every receiver must discard such frames.
    pub invalid: bool,
    /// How many.
    pub packets: u64,
}

/// What an interface's frames failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checks {
    /// By interface index, direction and check; only checks that a frame has failed.
    pub failed: Vec<CheckCounter>,
    /// Frames that were dropped.
    pub dropped: u64,
}

/// How many frames of an interface failed which check.
///
/// # Errors
/// Where nothing is attached, or its map cannot be read.
pub fn checks(interface: &str, bpffs: &Path) -> Result<Checks, ReadError> {
    let pin = Pins::new(bpffs, interface).checks();
    let map = open::<CheckKey, CheckCounts>(interface, &pin)?;
    let mut sums = BTreeMap::new();
    for entry in map.iter() {
        let (key, values) = entry.map_err(|source| ReadError::Map {
            path: pin.clone(),
            source,
        })?;
        let Some(direction) = Direction::from_number(key.direction) else {
            // Pins are told apart by ABI version, so that no other version's key gets here.
            tracing::warn!(?key, "failed checks with an unknown key");
            continue;
        };
        let mut sum = CheckCounts::default();
        values.iter().for_each(|value| sum.add(value));
        sums.insert((key.interface_index, direction), sum);
    }
    Ok(Checks {
        failed: sums
            .iter()
            .flat_map(|((interface_index, direction), sum)| {
                Check::ALL.map(|check| CheckCounter {
                    interface_index: *interface_index,
                    direction: *direction,
                    check,
                    invalid: check.is_of_invalid_frames(),
                    packets: sum.failed(check),
                })
            })
            .filter(|counter| counter.packets > 0)
            .collect(),
        dropped: sums.values().map(|sum| sum.dropped).sum(),
    })
}
