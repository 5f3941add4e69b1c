//! The demo: one node with N UDNs, today's flows and the steered ones side by side.

mod agent;
mod measure;
mod progress;
mod report;

use std::net::IpAddr;
use std::time::Duration;

use crate::lab::{FlowSet, Lab, LabError, Network, OvnVersion, Result};

use self::measure::Addresses;

pub use self::agent::{Latency, wait_until_steered};
pub use self::progress::Progress;
pub use self::report::{FirstPing, Mode, Report, Translation};

/// How long the agent may take to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The steps that [`run`] announces.
const STEPS: u64 = 9;

/// Brings a lab up and measures in it, first with today's flows, then steered and mirrored.
///
/// # Errors
/// When the lab or the agent does not come up, or does not answer. What the figures are worth is
/// for [`Report::broken_promises`] to say.
pub fn run(udns: u16, version: OvnVersion, progress: &mut Progress) -> Result<Report> {
    if udns == 0 {
        return Err(LabError::Choice(
            "the demo needs at least one UDN".to_owned(),
        ));
    }
    progress.begin(STEPS);
    progress.step(format_args!("bringing up OVN {version} with {udns} UDNs"));
    let last = Network(udns);
    let lab = Lab::builder()
        .udns(udns)
        .pods([udns])
        .version(version)
        .start()?;
    let versions = lab.versions()?;
    let legacy = measure_mode(&lab, last, Addresses::of_run(1), progress, "legacy", false)?;

    progress.step("taking the fan-out away, starting the agent");
    lab.clear_mac_bindings()?;
    lab.set_flows(FlowSet::Base)?;
    let mut agent = lab.agent([
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
    ])?;
    agent::wait_until_steered(&lab, &mut agent)?;
    let steered = measure_mode(&lab, last, Addresses::of_run(2), progress, "steered", true)?;
    let mirror_latency = agent::latency(&lab)?;
    let agent_resident_bytes = agent.resident_bytes()?;

    progress.step("taking the lab down");
    agent.terminate(PATIENCE)?;
    drop(lab);
    progress.end();
    Ok(Report {
        udns,
        versions,
        legacy,
        steered,
        mirror_latency,
        agent_resident_bytes,
    })
}

fn measure_mode(
    lab: &Lab,
    last: Network,
    addresses: Addresses,
    progress: &mut Progress,
    name: &str,
    mirrored: bool,
) -> Result<Mode> {
    progress.step(format_args!("{name}: following a frame of each kind"));
    let arp_reply = measure::arp_reply(lab, &addresses)?;
    let advertisement = measure::advertisement(lab, &addresses)?;
    let replies_to_who_has = measure::replies_to_who_has(lab)?;

    progress.step(format_args!("{name}: sending frames of new neighbours"));
    let neighbours = measure::new_neighbours(lab, &addresses, mirrored)?;
    lab.clear_mac_bindings()?;

    progress.step(format_args!("{name}: first pings of the last UDN's pod"));
    let ping = |host: IpAddr| -> Result<FirstPing> {
        let before = if mirrored { agent::latency(lab)? } else { None };
        let round_trip = measure::first_ping(lab, last, host)?;
        let mirror_ms = match round_trip {
            Some(_) if mirrored => Some(agent::next_latency(lab, before)?),
            _ => None,
        };
        Ok(FirstPing {
            round_trip_ms: round_trip.map(|time| time.as_secs_f64() * 1e3),
            mirror_ms,
        })
    };
    Ok(Mode {
        arp_reply,
        advertisement,
        vswitchd_cpu_seconds_per_1000_frames: neighbours.cpu_seconds_per_1000,
        neighbours_known: neighbours.known,
        routers_with_binding: neighbours.routers,
        replies_to_who_has,
        ping_ipv4: ping(addresses.host_ipv4.into())?,
        ping_ipv6: ping(addresses.host_ipv6.into())?,
    })
}
