//! The rows that are known: hundreds of thousands on a node with many networks, at about 50 bytes each.
//!
//! Every follower has a row for every node, so each address is kept once, with its rows in order of
//! their ports; and since rows go by their identity, an index holds a number of four bytes for each.

use std::{collections::BTreeMap, net::IpAddr};

use hashbrown::HashTable;

use super::ports::PortId;
use crate::{ids::Mac, ovsdb::Uuid};

/// What is known of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    pub(super) uuid: Uuid,
    /// `None` where the row has none that can be read.
    pub(super) mac: Option<Mac>,
    pub(super) overrides: bool,
}

/// A row as it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    uuid: [u8; 16],
    address: AddressId,
    port: PortId,
    mac: [u8; 6],
    has_mac: bool,
    overrides: bool,
}

type AddressId = u32;
type Slot = u32;

impl Stored {
    fn known(&self) -> Known {
        Known {
            uuid: Uuid(uuid::Uuid::from_bytes(self.uuid)),
            mac: self.has_mac.then_some(Mac(self.mac)),
            overrides: self.overrides,
        }
    }
}

/// An address with its rows, in order of their ports.
#[derive(Clone, Debug)]
struct Address {
    ip: IpAddr,
    rows: Vec<Slot>,
}

/// The rows of all ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    rows: Slots,
    by_uuid: HashTable<Slot>,
    by_ip: BTreeMap<IpAddr, AddressId>,
    addresses: Vec<Address>,
    free_addresses: Vec<AddressId>,
}

impl Table {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.by_uuid.len()
    }

    /// The addresses that have rows, in order.
    pub(super) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.by_ip.keys().copied()
    }

    /// Where a row is.
    pub(super) fn find(&self, uuid: Uuid) -> Option<(PortId, IpAddr)> {
        let slot = self.by_uuid.find(hash(uuid), |slot| self.is(*slot, uuid))?;
        let row = self.rows.get(*slot)?;
        Some((row.port, self.address(row.address)?.ip))
    }

    /// The rows for an address, in order of their ports.
    pub(super) fn rows_for(&self, ip: IpAddr) -> impl Iterator<Item = (PortId, Known)> + Clone {
        self.slots(ip).iter().filter_map(|slot| {
            let row = self.rows.get(*slot)?;
            Some((row.port, row.known()))
        })
    }

    /// A port's rows for an address: one, but for different spellings.
    pub(super) fn rows_at(&self, port: PortId, ip: IpAddr) -> impl Iterator<Item = Known> + Clone {
        let slots = self.slots(ip);
        let first = slots.partition_point(|slot| self.port(*slot) < Some(port));
        let from = slots.get(first..).unwrap_or_default().iter();
        from.map_while(move |slot| {
            let row = self.rows.get(*slot)?;
            (row.port == port).then(|| row.known())
        })
    }

    /// Puts a row in or renews it; where it was, if that was elsewhere.
    pub(super) fn put(&mut self, port: PortId, ip: IpAddr, row: Known) -> Option<(PortId, IpAddr)> {
        let before = self.find(row.uuid);
        if before == Some((port, ip)) {
            let found = self
                .by_uuid
                .find(hash(row.uuid), |slot| self.is(*slot, row.uuid));
            if let Some(stored) = found.copied().and_then(|slot| self.rows.get_mut(slot)) {
                stored.mac = row.mac.map_or([0; 6], |mac| mac.0);
                stored.has_mac = row.mac.is_some();
                stored.overrides = row.overrides;
            }
            return None;
        }
        if before.is_some() {
            self.remove(row.uuid);
        }
        let address = self.intern(ip);
        let slot = self.rows.add(Stored {
            uuid: *row.uuid.0.as_bytes(),
            address,
            port,
            mac: row.mac.map_or([0; 6], |mac| mac.0),
            has_mac: row.mac.is_some(),
            overrides: row.overrides,
        });
        let rows = &self.rows;
        let key = |slot: Slot| rows.get(slot).map(|row| (row.port, row.uuid));
        if let Some(entry) = self.addresses.get_mut(index(address)) {
            let at = entry.rows.partition_point(|other| key(*other) < key(slot));
            entry.rows.insert(at, slot);
        }
        let rehash = |slot: &Slot| rows.get(*slot).map_or(0, |row| hash_bytes(row.uuid));
        self.by_uuid.insert_unique(hash(row.uuid), slot, rehash);
        before
    }

    /// Takes a row out; where it was.
    pub(super) fn remove(&mut self, uuid: Uuid) -> Option<(PortId, IpAddr)> {
        let rows = &self.rows;
        let is = |slot: &Slot| {
            rows.get(*slot)
                .is_some_and(|row| row.uuid == *uuid.0.as_bytes())
        };
        let entry = self.by_uuid.find_entry(hash(uuid), is).ok()?;
        let (slot, _) = entry.remove();
        let row = self.rows.take(slot)?;
        let address = self.addresses.get_mut(index(row.address))?;
        let ip = address.ip;
        address.rows.retain(|other| *other != slot);
        if address.rows.is_empty() {
            address.rows = Vec::new();
            self.by_ip.remove(&ip);
            self.free_addresses.push(row.address);
        }
        Some((row.port, ip))
    }

    /// Gives back what a bulk of new rows has reserved beyond its need.
    pub(super) fn shrink(&mut self) {
        for address in &mut self.addresses {
            address.rows.shrink_to_fit();
        }
    }

    fn is(&self, slot: Slot, uuid: Uuid) -> bool {
        let row = self.rows.get(slot);
        row.is_some_and(|row| row.uuid == *uuid.0.as_bytes())
    }

    fn port(&self, slot: Slot) -> Option<PortId> {
        self.rows.get(slot).map(|row| row.port)
    }

    fn address(&self, id: AddressId) -> Option<&Address> {
        self.addresses.get(index(id))
    }

    fn slots(&self, ip: IpAddr) -> &[Slot] {
        let id = self.by_ip.get(&ip).copied();
        let address = id.and_then(|id| self.address(id));
        address.map_or(&[], |address| &address.rows)
    }

    fn intern(&mut self, ip: IpAddr) -> AddressId {
        if let Some(id) = self.by_ip.get(&ip) {
            return *id;
        }
        let rows = Vec::new();
        let id = match self.free_addresses.pop() {
            Some(id) => {
                if let Some(free) = self.addresses.get_mut(index(id)) {
                    *free = Address { ip, rows };
                }
                id
            }
            None => {
                self.addresses.push(Address { ip, rows });
                number(self.addresses.len() - 1)
            }
        };
        self.by_ip.insert(ip, id);
        id
    }
}

/// How many rows are reserved at a time: one vector for all would be twice as large as its rows at
/// worst.
const CHUNK: usize = 4_096;

/// Rows by number; the numbers of rows that are gone are given to new ones.
#[derive(Clone, Debug, Default)]
struct Slots {
    chunks: Vec<Vec<Stored>>,
    free: Vec<Slot>,
}

impl Slots {
    fn get(&self, slot: Slot) -> Option<&Stored> {
        let slot = index(slot);
        self.chunks.get(slot / CHUNK)?.get(slot % CHUNK)
    }

    fn get_mut(&mut self, slot: Slot) -> Option<&mut Stored> {
        let slot = index(slot);
        self.chunks.get_mut(slot / CHUNK)?.get_mut(slot % CHUNK)
    }

    fn add(&mut self, row: Stored) -> Slot {
        if let Some(slot) = self.free.pop() {
            if let Some(free) = self.get_mut(slot) {
                *free = row;
            }
            return slot;
        }
        let full = self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK);
        if full {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let Some(chunk) = self.chunks.last_mut() else {
            return 0;
        };
        chunk.push(row);
        number(before + chunk.len() - 1)
    }

    fn take(&mut self, slot: Slot) -> Option<Stored> {
        let row = *self.get(slot)?;
        self.free.push(slot);
        Some(row)
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// No table holds four thousand million rows.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn hash(uuid: Uuid) -> u64 {
    hash_bytes(*uuid.0.as_bytes())
}

/// Identities are random already: their halves are only mixed, for those that are not.
fn hash_bytes(uuid: [u8; 16]) -> u64 {
    let bits = u128::from_be_bytes(uuid);
    let halves = u64::try_from(bits >> 64).unwrap_or(0)
        ^ u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
    let mixed = halves.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(number: u128) -> Uuid {
        Uuid(uuid::Uuid::from_u128(number))
    }

    fn row(number: u128) -> Known {
        Known {
            uuid: uuid(number),
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            overrides: true,
        }
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn a_row_costs_no_more_than_it_has_to() {
        assert_eq!(size_of::<Stored>(), 32);
        assert_eq!(size_of::<Slot>(), 4);
    }

    #[test]
    fn a_quarter_of_a_million_rows_takes_fifty_bytes_each() {
        let mut table = Table::default();
        for number in 0..250_000_u32 {
            table.put(PortId(number % 500), ip(number / 500), row(number.into()));
        }
        table.shrink();
        let rows = table.rows.chunks.len() * CHUNK * size_of::<Stored>();
        let index = table.by_uuid.allocation_size();
        let addresses = table
            .addresses
            .iter()
            .map(|it| it.rows.capacity() * size_of::<Slot>());
        let bytes = rows + index + addresses.sum::<usize>() + table.addresses.len() * 100;
        assert!(bytes / 250_000 <= 50, "{bytes}");
    }

    #[test]
    fn rows_are_found_by_identity_and_by_address_in_order_of_their_ports() {
        let mut table = Table::default();
        for (port, number) in [(3, 30), (1, 10), (2, 20), (2, 21)] {
            assert_eq!(table.put(PortId(port), ip(1), row(number)), None);
        }
        let ports: Vec<u32> = table.rows_for(ip(1)).map(|(port, _)| port.0).collect();
        assert_eq!(ports, [1, 2, 2, 3]);
        let at = |table: &Table, port| -> Vec<Uuid> {
            table
                .rows_at(PortId(port), ip(1))
                .map(|row| row.uuid)
                .collect()
        };
        assert_eq!(at(&table, 2), [uuid(20), uuid(21)]);
        assert_eq!(table.find(uuid(30)), Some((PortId(3), ip(1))));
        assert_eq!(table.remove(uuid(20)), Some((PortId(2), ip(1))));
        assert_eq!(at(&table, 2), [uuid(21)]);
        assert_eq!(table.remove(uuid(20)), None);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_row_that_moves_is_only_where_it_moved_to() {
        let mut table = Table::default();
        table.put(PortId(1), ip(1), row(1));
        assert_eq!(
            table.put(PortId(2), ip(9), row(1)),
            Some((PortId(1), ip(1)))
        );
        assert_eq!(table.rows_for(ip(1)).count(), 0);
        assert_eq!(table.ips().collect::<Vec<_>>(), [ip(9)]);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn rows_that_come_and_go_take_no_more_room() {
        let mut table = Table::default();
        for number in 0..100_000_u32 {
            table.put(PortId(1), ip(number % 7), row(number.into()));
            table.remove(uuid(number.into()));
        }
        assert_eq!(table.len(), 0);
        assert_eq!(table.rows.chunks.len(), 1);
        assert!(table.addresses.len() <= 7 && table.by_ip.is_empty());
    }
}
