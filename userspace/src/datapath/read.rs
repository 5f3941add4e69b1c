//! Reads counters and attachments back.

use std::{collections::BTreeMap, path::Path};

use aya::{
    Pod,
    maps::{Map, MapData, PerCpuHashMap},
    programs::links::LinkType,
};
use neighsteer_common::{
    Decision, Kind,
    abi::{CounterKey, CounterValue, Direction},
};
use nix::{
    errno::Errno,
    net::if_::if_nametoindex,
    time::{ClockId, clock_gettime},
};
use serde::{Serialize, Serializer};

use super::{
    attach::Mode,
    error::{MapShape, ReadError, errno_of, is_permission},
    filter, links, load, netlink, owners,
    pins::{self, Pins},
};

/// `BPF_MAP_TYPE_PERCPU_HASH`.
const PER_CPU_HASH: u32 = 5;

/// One counter, summed over the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Index of the interface that the frames came from.
    pub interface_index: u32,
    /// Which way they went.
    #[serde(serialize_with = "as_text")]
    pub direction: Direction,
    /// What they were.
    #[serde(serialize_with = "as_text")]
    pub kind: Kind,
    /// What was decided.
    #[serde(serialize_with = "as_text")]
    pub decision: Decision,
    /// How many.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// When the last one was seen: ns since boot, time asleep not counted, to the kernel's tick.
    pub last_seen_ns: u64,
}

pub(super) fn as_text<S: Serializer>(
    value: &impl ToString,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

/// The counters of an interface, sorted by direction, kind and decision.
///
/// # Errors
/// Where nothing is attached, or its map cannot be read.
pub fn counters(interface: &str, bpffs: &Path) -> Result<Vec<Counter>, ReadError> {
    let pin = Pins::new(bpffs, interface).counters();
    let map = open::<CounterKey, CounterValue>(interface, &pin)?;
    let error = |source| ReadError::Map {
        path: pin.clone(),
        source,
    };
    let mut sums = BTreeMap::new();
    for entry in map.iter() {
        let (key, values) = entry.map_err(error)?;
        if let Some((order, counter)) = sum(key, &values) {
            sums.insert(order, counter);
        } else {
            // Pins are told apart by ABI version, so that no other version's key gets here.
            tracing::warn!(?key, "a counter with an unknown key");
        }
    }
    Ok(sums.into_values().collect())
}

/// Opens a pinned map of an interface, after a look at its shape.
pub(super) fn open<K: Pod, V: Pod>(
    interface: &str,
    pin: &Path,
) -> Result<PerCpuHashMap<MapData, K, V>, ReadError> {
    let error = |source| ReadError::Map {
        path: pin.to_owned(),
        source,
    };
    if !load::has_capabilities() {
        return Err(ReadError::Permission {
            missing: load::CAPABILITIES,
        });
    }
    let pinned = load::shape_of_pin(pin).map_err(|source| {
        if errno_of(&source) == Some(Errno::ENOENT) {
            ReadError::NotAttached {
                interface: interface.to_owned(),
                path: pin.to_owned(),
            }
        } else if is_permission(&source) {
            ReadError::Permission {
                missing: load::CAPABILITIES,
            }
        } else {
            error(source)
        }
    })?;
    let wanted = MapShape {
        map_type: PER_CPU_HASH,
        key_size: u32::try_from(size_of::<K>()).unwrap_or(u32::MAX),
        value_size: u32::try_from(size_of::<V>()).unwrap_or(u32::MAX),
        // The number of entries is the object's affair.
        max_entries: pinned.max_entries,
    };
    if pinned != wanted {
        return Err(ReadError::CountersShape {
            path: pin.to_owned(),
            pinned,
            wanted,
        });
    }
    MapData::from_pin(pin)
        .and_then(Map::from_map_data)
        .map_err(error)?
        .try_into()
        .map_err(error)
}

type Order = (u32, Direction, Kind, Decision);

fn sum(key: CounterKey, values: &[CounterValue]) -> Option<(Order, Counter)> {
    let counter = Counter {
        interface_index: key.interface_index,
        direction: Direction::from_number(key.direction)?,
        kind: Kind::from_number(key.kind)?,
        decision: Decision::from_number(key.decision)?,
        packets: values.iter().map(|value| value.packets).sum(),
        bytes: values.iter().map(|value| value.bytes).sum(),
        last_seen_ns: values
            .iter()
            .map(|value| value.last_seen_ns)
            .max()
            .unwrap_or(0),
    };
    let order = (
        counter.interface_index,
        counter.direction,
        counter.kind,
        counter.decision,
    );
    Some((order, counter))
}

/// The clock of [`Counter::last_seen_ns`]: ns since boot, time asleep not counted.
#[must_use]
pub fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map_or(0, |now| {
        let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
        let nanoseconds = u64::try_from(now.tv_nsec()).unwrap_or(0);
        seconds * 1_000_000_000 + nanoseconds
    })
}

/// How the pins of an interface and the kernel agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The program is attached to the interface of that name.
    Attached,
    /// There is no interface of that name, or none that the program is attached to.
    Stale,
}

/// What the pins of one interface stand for.
#[derive(Clone, Debug, Serialize)]
pub struct Attachment {
    /// The interface.
    pub interface: String,
    /// Whether it is attached.
    pub state: State,
    /// How the program runs, if it does.
    pub mode: Option<Mode>,
    /// The program's ID, if it runs.
    pub program_id: Option<u32>,
    /// What the interface is called now that the program is attached to, if otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
}

/// The attachments that are pinned in a bpffs, by interface. A directory with neither a program nor a link
/// is none.
///
/// # Errors
/// Where the pins cannot be listed.
pub fn attachments(bpffs: &Path) -> Result<Vec<Attachment>, ReadError> {
    let found = owners::survey(bpffs, &pins::own_version());
    let mut found = found.map_err(|source| ReadError::Directory {
        path: bpffs.to_owned(),
        source,
    })?;
    found.retain(|it| !it.is_aside);
    if !found.is_empty() && !load::has_capabilities() {
        return Err(ReadError::Permission {
            missing: load::CAPABILITIES,
        });
    }
    found.retain(|it| it.pins.program().exists() || it.pins.link().exists());
    let attachments = found.into_iter().map(|it| {
        let running = running(bpffs, &it.name);
        Attachment {
            state: match running {
                Some(_) => State::Attached,
                None => State::Stale,
            },
            mode: running.map(|(mode, _)| mode),
            program_id: running.map(|(_, program_id)| program_id),
            renamed: it.on.filter(|on| *on != it.name),
            interface: it.name,
        }
    });
    Ok(attachments.collect())
}

/// How our program runs on an interface, and its ID.
fn running(bpffs: &Path, interface: &str) -> Option<(Mode, u32)> {
    let interface_index = if_nametoindex(interface).ok()?;
    let pins = Pins::new(bpffs, interface);
    if let Some(link) = links::open(&pins.link()).ok().flatten()
        && link.is_on(interface, interface_index)
    {
        let mode = match link.link_type? {
            LinkType::Tcx => Mode::Tcx,
            _ => match netlink::xdp(interface_index).ok()??.mode {
                netlink::XdpMode::Generic => Mode::XdpGeneric,
                _ => Mode::XdpNative,
            },
        };
        return Some((mode, link.program_id));
    }
    let filters = netlink::ingress_filters(interface_index).ok()?;
    let filter = filters.iter().find(|filter| filter::is_ours(filter))?;
    Some((Mode::Clsact, filter.program_id))
}
