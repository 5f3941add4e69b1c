//! Planning dynamic rows: the mirror alone, with nodes' bindings pinned.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use neighsteer::{
    ids::Mac,
    mirror::{BindingRow, GroupMembers, Millis, Mirror, Now, RowOperation, RowWrite, Settings},
    nodes::Inventory,
    ovsdb::Uuid,
    statics::Wanted,
};
use neighsteer_tests::lab::BRIDGE;

use super::{
    Machine, Planner,
    model::{CHASSIS, Model},
    resident,
};
use crate::others::{FAMILIES, Others};

/// The mirror with the time that has passed.
struct Bench<'a> {
    model: &'a Model,
    others: Others,
    mirror: Mirror,
    members: GroupMembers,
    now: Now,
}

/// Measures, with so many changes of one node and of one joining.
///
/// # Errors
/// When something else is planned than is wanted.
pub(super) fn measure(
    model: &Model,
    others: &Others,
    followers: usize,
    rounds: u8,
) -> anyhow::Result<Machine> {
    let mut bench = Bench {
        model,
        others: others.clone(),
        mirror: Mirror::new(Settings::default()),
        members: GroupMembers::of(model.group()?, Arc::default()),
        now: Now {
            at: Millis(1_000),
            wall_ms: 1_800_000_000_000,
        },
    };
    bench.pin(&others.inventory(CHASSIS)?)?;
    let before = resident()?;
    let rows = bench.fill();
    let start = Instant::now();
    bench.mirror.synced(bench.now);
    let written = bench.work_off();
    let first = start.elapsed();
    let bytes = resident()?.saturating_sub(before);
    ensure!(written.is_empty(), "right rows are written");
    bench.measured((rows, bytes, first), followers, rounds)
}

impl Planner for Bench<'_> {
    fn others(&mut self) -> &mut Others {
        &mut self.others
    }

    fn turn(&mut self, followers: usize) -> anyhow::Result<Duration> {
        let inventory = self.others.inventory(CHASSIS)?;
        let start = Instant::now();
        self.pin(&inventory)?;
        let written = self.work_off();
        let time = start.elapsed();
        ensure!(
            written.len() == followers * FAMILIES,
            "{} rows",
            written.len()
        );
        let datapaths: BTreeMap<Arc<str>, Uuid> = self
            .members
            .followers
            .iter()
            .map(|follower| (Arc::clone(&follower.port), follower.datapath))
            .collect();
        let macs: BTreeMap<IpAddr, Mac> = self.others.bindings().collect();
        for operation in written {
            let (uuid, timestamp) = match operation.write {
                RowWrite::Insert { timestamp, .. } => (Uuid::random(), timestamp),
                RowWrite::Update {
                    uuid, timestamp, ..
                } => (uuid, timestamp),
            };
            let row = BindingRow {
                uuid,
                datapath: datapaths.get(&operation.port).copied().unwrap_or_default(),
                port: operation.port,
                ip: operation.ip,
                ip_text: operation.ip.to_string().into(),
                mac: macs.get(&operation.ip).copied(),
                timestamp,
            };
            self.mirror.upsert(&row, self.now);
        }
        self.now.at = self.now.at.after(100);
        self.now.wall_ms += 100;
        let further = self.work_off();
        ensure!(further.is_empty(), "{} rows too many", further.len());
        Ok(time)
    }
}

impl Bench<'_> {
    /// What the agent does when something of the nodes has changed.
    fn pin(&mut self, inventory: &Inventory) -> anyhow::Result<()> {
        self.model.targets();
        let wanted = self.model.wanted(inventory)?;
        let bindings = wanted.bridges.get(BRIDGE);
        let bindings = bindings.into_iter().flat_map(|bridge| &bridge.bindings);
        let pins: BTreeMap<IpAddr, Mac> = bindings
            .filter_map(|(ip, wanted)| match wanted {
                Wanted::Binding(mac) => Some((*ip, *mac)),
                Wanted::Keep => None,
            })
            .collect();
        let members = self.members.clone().with_pinned(Arc::new(pins));
        self.mirror.set_group(members, [], self.now);
        Ok(())
    }

    /// Tells of all rows, as they should be.
    fn fill(&mut self) -> usize {
        let bindings: Vec<_> = self.others.bindings().collect();
        for (ip, mac) in &bindings {
            let text: Arc<str> = ip.to_string().into();
            for follower in &self.members.followers {
                let row = BindingRow {
                    uuid: Uuid::random(),
                    port: Arc::clone(&follower.port),
                    datapath: follower.datapath,
                    ip: *ip,
                    ip_text: Arc::clone(&text),
                    mac: Some(*mac),
                    timestamp: self.now.wall_ms,
                };
                self.mirror.upsert(&row, self.now);
            }
        }
        bindings.len() * self.members.followers.len()
    }

    /// Carries out transactions until there is no more to do now.
    fn work_off(&mut self) -> Vec<RowOperation> {
        let mut written = Vec::new();
        loop {
            while let Some(batch) = self.mirror.take_batch(self.now) {
                self.mirror.committed(batch.id, &[], self.now);
                written.extend(batch.operations);
            }
            let due = self.mirror.next_deadline();
            if due.is_none_or(|due| due > self.now.at) {
                return written;
            }
        }
    }
}
