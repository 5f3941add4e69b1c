//! Beside a manager that replaces all flows every second.

use std::time::{Duration, Instant};

use anyhow::ensure;
use neighsteer::openflow::{NativeSwitch, Switch as _};
use neighsteer::plan::COOKIE;
use neighsteer_tests::gaps::Gaps;
use neighsteer_tests::lab::{BRIDGE, Lab, wait_until};
use serde::Serialize;

use crate::STEERING;

const INTERVAL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Times in ms.
#[derive(Serialize)]
pub(crate) struct GapTimes {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) flows: usize,
    pub(crate) our_flows: usize,
    pub(crate) seconds: f64,
    pub(crate) replacements: u32,
    /// Removals of single flows of ours.
    pub(crate) removals: usize,
    /// The share of the time that at least one flow of ours was absent.
    pub(crate) absent: f64,
    pub(crate) gap_ms: GapTimes,
    /// The agent's share of one CPU.
    pub(crate) agent_cpu: f64,
}

pub(crate) async fn measure(flows: usize, time: Duration) -> anyhow::Result<Report> {
    let lab = Lab::builder().udns(5).start()?;
    let agent = lab.agent(STEERING)?;
    let our_flows = wait_for_flows(&lab)?;
    let gaps = Gaps::watch(&lab, BRIDGE)?;
    let (start, cpu) = (Instant::now(), agent.cpu()?);
    let manager = lab.manager(lab.manager_flows(flows)?, INTERVAL)?;
    tokio::time::sleep(time).await;
    let seconds = start.elapsed().as_secs_f64();
    let used = agent.cpu()?.saturating_sub(cpu);
    let replacements = manager.stop()?;
    wait_for_flows(&lab)?;
    let report = gaps.finish()?;
    ensure!(
        !report.gaps.is_empty(),
        "the manager removed no flow of ours"
    );
    let switch = NativeSwitch::new(lab.directory());
    let milliseconds = |share| report.part(share).as_secs_f64() * 1e3;
    Ok(Report {
        flows: switch.dump_flows(BRIDGE, None).await?.len(),
        our_flows,
        seconds,
        replacements,
        removals: report.gaps.len() + report.missing,
        absent: report.absent_share(),
        gap_ms: GapTimes {
            median: milliseconds(0.5),
            p99: milliseconds(0.99),
            longest: milliseconds(1.0),
        },
        agent_cpu: used.as_secs_f64() / seconds,
    })
}

/// Waits until the agent has installed its flows; how many they are.
pub(crate) fn wait_for_flows(lab: &Lab) -> anyhow::Result<usize> {
    let cookie = COOKIE.to_string();
    let mut before = 0;
    let found = wait_until(PATIENCE, "the agent's flows", || {
        let flows = lab.flows(BRIDGE).map_err(|error| error.to_string())?;
        let found = flows.iter().filter(|flow| flow.contains(&cookie)).count();
        let settled = found > 0 && found == before;
        before = found;
        if settled {
            Ok(found)
        } else {
            Err(format!("{found} flows"))
        }
    })?;
    Ok(found)
}
