//! With many UDNs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use neighsteer::agent::{databases::request, model::Model};
use neighsteer::openflow::{NativeSwitch, Switch as _};
use neighsteer::ovsdb::{Change, Remote, Snapshot};
use neighsteer::plan::{Gates, Install, diff, plan, port_changes};
use neighsteer::rows::Database;
use neighsteer_tests::frames::{
    arp_announcement, arp_reply, neighbor_advertisement, unsolicited_advertisement,
};
use neighsteer_tests::lab::{
    BRIDGE, BRIDGE_MAC, FlowSet, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, Lab, NODE_IPV4, NODE_IPV6,
};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::{STEERING, manager::wait_for_flows};

/// The frames whose lookups are counted.
pub(crate) const FRAMES: [&str; 4] = [
    "unicast ARP reply",
    "unicast NA",
    "broadcast ARP",
    "multicast NA",
];
const ROUNDS: u32 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) udns: u16,
    /// Planning and comparing flows and flags of a bridge that has them all, CPU.
    pub(crate) rest_cpu_ms: f64,
    pub(crate) no_flood_ports: usize,
    pub(crate) no_flood_ms: f64,
    pub(crate) audit_ms: f64,
    /// As [`FRAMES`].
    pub(crate) lookups: [usize; 4],
}

pub(crate) async fn measure(udns: u16) -> anyhow::Result<Report> {
    let lab = Lab::builder().udns(udns).flows(FlowSet::Legacy).start()?;
    let switch = NativeSwitch::new(lab.directory());
    let model = model(&lab).await?;
    let group = model.topology().group(BRIDGE).context("no group")?;
    let gates = Gates::new(true, true)?;
    let wanted = plan(group, gates, Install::Overlay);
    let flags = |no_flood| wanted.no_flood.iter().map(move |port| (*port, no_flood));
    switch.set_no_flood(BRIDGE, &flags(false).collect()).await?;
    let start = Instant::now();
    switch.set_no_flood(BRIDGE, &flags(true).collect()).await?;
    let no_flood_ms = start.elapsed().as_secs_f64() * 1e3;

    let agent = lab.agent(STEERING)?;
    wait_for_flows(&lab)?;
    let installed = switch.dump_flows(BRIDGE, None).await?;
    let ports = switch.ports(BRIDGE).await?;
    let start = cpu()?;
    for _ in 0..ROUNDS {
        let wanted = plan(group, gates, Install::Overlay);
        let (flows, flags) = (
            diff(&wanted.flows, &installed),
            port_changes(&wanted, &ports),
        );
        ensure!(
            flows.is_empty() && flags.no_flood.is_empty(),
            "not at rest: {flows:?} {flags:?}"
        );
    }
    let rest_cpu_ms = (cpu()? - start).as_secs_f64() * 1e3 / f64::from(ROUNDS);

    let mut audit = lab.neighsteer(&["audit"])?;
    let connection = lab.agent_flags();
    // All but the state directory.
    audit.args(connection.iter().take(connection.len() - 2));
    let start = Instant::now();
    audit.output()?;
    let audit_ms = start.elapsed().as_secs_f64() * 1e3;

    let frames = [
        arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4),
        neighbor_advertisement(GATEWAY_MAC, GATEWAY_IPV6, BRIDGE_MAC, NODE_IPV6),
        arp_announcement(GATEWAY_MAC, GATEWAY_IPV4),
        unsolicited_advertisement(GATEWAY_MAC, GATEWAY_IPV6),
    ];
    let mut lookups = [0; 4];
    for (lookups, frame) in lookups.iter_mut().zip(&frames) {
        *lookups = lab.trace(&lab.uplink(), frame)?.lookups;
    }
    drop(agent);
    Ok(Report {
        udns,
        rest_cpu_ms,
        no_flood_ports: wanted.no_flood.len(),
        no_flood_ms,
        audit_ms,
        lookups,
    })
}

async fn model(lab: &Lab) -> anyhow::Result<Model> {
    let mut model = Model::default();
    for (database, remote) in [
        (Database::OpenVSwitch, lab.ovs_remote()),
        (Database::Northbound, lab.northbound_remote()),
        (Database::Southbound, lab.southbound_remote()),
    ] {
        let remotes = Remote::parse_list(&remote)?;
        let request = request(database, &lab.chassis());
        let snapshot = Snapshot::fetch(&remotes, database.name(), request, PATIENCE).await?;
        for (table, rows) in snapshot.tables {
            let changes = rows.into_iter().map(|(uuid, row)| Change {
                table: table.clone(),
                uuid,
                old: None,
                new: Some(row),
            });
            model.apply(&changes.collect::<Vec<_>>());
        }
    }
    model.rebuild();
    Ok(model)
}

fn cpu() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}
