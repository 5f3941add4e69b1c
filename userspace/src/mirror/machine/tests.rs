//! The mirror's behaviour, event by event.

mod aging;
mod learning;
mod members;
mod pinned;
mod transactions;

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use super::*;
use crate::{
    ids::Mac,
    mirror::{Batch, BindingRow, Failure, FailureKind, GroupMembers, Member, RowWrite},
    ovsdb::Uuid,
    topology::AgeThreshold,
};

const WALL: i64 = 1_700_000_000_000;
const MAC_A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
const MAC_B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

fn member(port: &str, seconds: Option<&str>) -> Member {
    Member {
        port: port.into(),
        datapath: datapath(port),
        age: age(seconds),
    }
}

fn age(seconds: Option<&str>) -> AgeThreshold {
    let option = seconds.map(Arc::from);
    AgeThreshold::from_option(option.as_ref())
}

fn datapath(port: &str) -> Uuid {
    uuid(port.bytes().map(u128::from).sum::<u128>() << 64)
}

fn members(source: &str, followers: &[&str]) -> GroupMembers {
    GroupMembers {
        source: Some(member(source, Some("300"))),
        followers: followers
            .iter()
            .map(|port| member(port, Some("300")))
            .collect(),
        ..GroupMembers::default()
    }
}

/// A mirror with its clock and the rows of an obedient server.
struct Bench {
    mirror: Mirror,
    now: Now,
    rows: Vec<BindingRow>,
    next: u128,
}

impl Bench {
    fn new(members: GroupMembers) -> Self {
        let mut bench = Self {
            mirror: Mirror::new(Settings::default()),
            now: Now {
                at: Millis(1_000),
                wall_ms: WALL,
            },
            rows: Vec::new(),
            next: 1,
        };
        bench.mirror.set_group(members, [], bench.now);
        bench
    }

    fn synced(members: GroupMembers) -> Self {
        let mut bench = Self::new(members);
        bench.mirror.synced(bench.now);
        bench
    }

    fn pass(&mut self, ms: u64) {
        self.now.at = self.now.at.after(ms);
        self.now.wall_ms += i64::try_from(ms).unwrap();
    }

    fn put(&mut self, port: &str, ip: &str, mac: Option<Mac>, timestamp: i64) -> Uuid {
        let known = self
            .rows
            .iter()
            .position(|row| &*row.port == port && &*row.ip_text == ip);
        let row = BindingRow {
            uuid: known.map_or(uuid(self.next), |index| self.rows[index].uuid),
            port: port.into(),
            datapath: datapath(port),
            ip: ip.parse().unwrap(),
            ip_text: ip.into(),
            mac,
            timestamp,
        };
        match known {
            Some(index) => self.rows[index] = row.clone(),
            None => {
                self.next += 1;
                self.rows.push(row.clone());
            }
        }
        self.mirror.upsert(&row, self.now);
        row.uuid
    }

    /// The source learns a neighbour now.
    fn learn(&mut self, port: &str, ip: &str, mac: Mac) -> Uuid {
        self.put(port, ip, Some(mac), self.now.wall_ms)
    }

    fn delete(&mut self, port: &str, ip: &str) {
        let index = self.find(port, ip).unwrap();
        let row = self.rows.remove(index);
        self.mirror.remove(row.uuid, self.now);
    }

    fn find(&self, port: &str, ip: &str) -> Option<usize> {
        let ip: IpAddr = ip.parse().unwrap();
        self.rows
            .iter()
            .position(|row| &*row.port == port && row.ip == ip)
    }

    fn row(&self, port: &str, ip: &str) -> Option<&BindingRow> {
        self.find(port, ip).map(|index| &self.rows[index])
    }

    fn take(&mut self) -> Option<Batch> {
        self.mirror.take_batch(self.now)
    }

    fn commit(&mut self, batch: &Batch) {
        for operation in &batch.operations {
            match &operation.write {
                RowWrite::Insert {
                    port,
                    ip,
                    mac,
                    timestamp,
                    ..
                } => {
                    assert!(self.row(port, ip).is_none(), "{port} {ip} twice");
                    self.put(&port.clone(), &ip.clone(), Some(*mac), *timestamp);
                }
                RowWrite::Update {
                    uuid,
                    mac,
                    timestamp,
                } => {
                    let row = self.rows.iter().find(|row| row.uuid == *uuid).unwrap();
                    let (port, ip) = (row.port.clone(), row.ip_text.clone());
                    let mac = mac.or(row.mac);
                    self.put(&port, &ip, mac, *timestamp);
                }
            }
        }
        self.mirror.committed(batch.id, &[], self.now);
    }

    /// Takes and commits all there is; how many rows, by reason.
    fn settle(&mut self) -> Vec<(Reason, usize)> {
        let mut written = BTreeMap::new();
        while let Some(batch) = self.take() {
            for operation in &batch.operations {
                *written.entry(operation.reason).or_insert(0) += 1;
            }
            self.commit(&batch);
        }
        written.into_iter().collect()
    }

    fn assert_mirrored(&self, ip: &str, source: &str, followers: &[&str]) {
        let truth = self.row(source, ip).unwrap();
        for follower in followers {
            let row = self
                .row(follower, ip)
                .unwrap_or_else(|| panic!("{follower} lacks {ip}"));
            assert_eq!(row.mac, truth.mac, "{follower}");
            assert!(row.timestamp >= truth.timestamp, "{follower}");
        }
    }
}
