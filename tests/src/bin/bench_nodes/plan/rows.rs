//! Planning static rows: the machine alone, told what a northbound database would tell.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use neighsteer::{
    ids::Mac,
    mirror::Millis,
    nodes::Inventory,
    ovsdb::Uuid,
    statics::{Batch, Mode, RowWrite, Settings, StaticBindings, StaticRow, Target, Treatment},
};

use super::{
    Machine, Planner,
    model::{CHASSIS, Model},
    resident,
};
use crate::others::{FAMILIES, Others};

/// Later than any gathering.
const GATHERED_MS: u64 = 10_000;

/// The machine with the time that has passed.
struct Bench<'a> {
    model: &'a Model,
    others: Others,
    machine: StaticBindings,
    now: Millis,
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
    let targets = model.targets();
    let inventory = others.inventory(CHASSIS)?;
    let mut bench = Bench {
        model,
        others: others.clone(),
        machine: StaticBindings::new(Settings::default()),
        now: Millis(1_000),
    };
    bench.machine.set_targets(&targets, bench.now);
    bench.machine.set_mode(Mode::Write, bench.now);
    bench.want(&inventory)?;
    let before = resident()?;
    let rows = bench.fill(&targets, followers)?;
    let start = Instant::now();
    bench.machine.synced(bench.now);
    let synced = start.elapsed();
    let bytes = resident()?.saturating_sub(before);
    let start = Instant::now();
    ensure!(bench.take().is_none(), "right rows are written");
    let first = synced + start.elapsed();
    ensure!(bench.machine.is_idle(), "something is left to do");

    bench.measured((rows, bytes, first), followers, rounds)
}

impl Planner for Bench<'_> {
    fn others(&mut self) -> &mut Others {
        &mut self.others
    }

    fn turn(&mut self, followers: usize) -> anyhow::Result<Duration> {
        let inventory = self.others.inventory(CHASSIS)?;
        let start = Instant::now();
        self.want(&inventory)?;
        let mut batch = self.take();
        let time = start.elapsed();
        let mut written = 0;
        while let Some(carried_out) = batch {
            written += carried_out.operations.len();
            self.carry_out(&carried_out);
            batch = self.take();
        }
        ensure!(written == followers * FAMILIES, "{written} rows");
        ensure!(self.machine.is_idle(), "something is left to do");
        Ok(time)
    }
}

impl Bench<'_> {
    /// What the agent does when something of the nodes has changed.
    fn want(&mut self, inventory: &Inventory) -> anyhow::Result<()> {
        self.model.targets();
        let wanted = self.model.wanted(inventory)?;
        self.machine.set_wanted(Some(&wanted), self.now);
        Ok(())
    }

    /// Once the gathering is over.
    fn take(&mut self) -> Option<Batch> {
        self.now = self.now.after(GATHERED_MS);
        self.machine.take_batch(self.now)
    }

    /// Tells of all rows, as they should be.
    fn fill(&mut self, targets: &[Target], followers: usize) -> anyhow::Result<usize> {
        let wanted: Vec<_> = self.others.bindings().collect();
        let ports: Vec<&Target> = targets
            .iter()
            .filter(|target| target.treatment == Treatment::Follower)
            .collect();
        ensure!(ports.len() == followers, "{} ports", ports.len());
        for (ip, mac) in &wanted {
            for target in &ports {
                let row = row(&target.port, *ip, *mac, Uuid::random());
                self.machine.upsert(&row, self.now);
            }
        }
        Ok(wanted.len() * ports.len())
    }

    fn carry_out(&mut self, batch: &Batch) {
        for operation in &batch.operations {
            let (uuid, mac) = match operation.write {
                RowWrite::Insert { mac } => (Uuid::random(), mac),
                RowWrite::Update { uuid, mac } => (uuid, mac),
                RowWrite::Delete { uuid } => {
                    self.machine.remove(uuid, self.now);
                    continue;
                }
            };
            let row = row(&operation.port, operation.ip, mac, uuid);
            self.machine.upsert(&row, self.now);
        }
        self.machine.committed(batch.id, &[], self.now);
    }
}

fn row(port: &Arc<str>, ip: std::net::IpAddr, mac: Mac, uuid: Uuid) -> StaticRow {
    StaticRow {
        uuid,
        port: Arc::clone(port),
        ip: Some(ip),
        mac: Some(mac),
        override_dynamic_mac: true,
    }
}
