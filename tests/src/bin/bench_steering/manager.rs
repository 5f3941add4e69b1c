//! Beside a manager that replaces all flows every second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use neighsteer::openflow::{FlowEvent, FlowKey, NativeSwitch, Switch as _};
use neighsteer::plan::COOKIE;
use neighsteer_tests::lab::{BRIDGE, Lab, wait_until};
use serde::Serialize;

const INTERVAL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Times in ms.
#[derive(Serialize)]
pub(crate) struct Gaps {
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
    /// How often each flow of ours was removed, on average.
    pub(crate) removals: usize,
    /// The share of the time that a flow of ours was absent.
    pub(crate) absent: f64,
    pub(crate) gap_ms: Gaps,
    /// The agent's share of one CPU.
    pub(crate) agent_cpu: f64,
}

pub(crate) async fn measure(flows: usize, time: Duration) -> anyhow::Result<Report> {
    let lab = Lab::builder().udns(5).start()?;
    let agent = lab.agent([
        "--enable-network-segmentation",
        "--disable-udn-arp-ndp-flood",
        "--datapath=none",
    ])?;
    let switch = NativeSwitch::new(lab.directory());
    let our_flows = wait_for_flows(&lab)?;
    let manager = lab.manager(lab.manager_flows(flows)?, INTERVAL)?;
    let (_, mut watch) = switch.watch_flows(BRIDGE, &[]).await?;
    let (start, cpu) = (Instant::now(), agent.cpu()?);
    let mut absent_since: BTreeMap<FlowKey, Instant> = BTreeMap::new();
    let mut gaps = Vec::new();
    let deadline = tokio::time::sleep(time);
    tokio::pin!(deadline);
    loop {
        let event = tokio::select! {
            event = watch.next() => event?,
            () = &mut deadline => break,
        };
        let now = Instant::now();
        match event {
            FlowEvent::Deleted(flow) if flow.cookie == COOKIE => {
                absent_since.entry(flow.key()).or_insert(now);
            }
            FlowEvent::Added(flow) | FlowEvent::Modified(flow) if flow.cookie == COOKIE => {
                gaps.extend(absent_since.remove(&flow.key()).map(|since| now - since));
            }
            _ => {}
        }
    }
    let seconds = start.elapsed();
    let used = agent.cpu()?.saturating_sub(cpu);
    gaps.extend(absent_since.values().map(Instant::elapsed));
    let replacements = manager.stop()?;
    let installed = switch.dump_flows(BRIDGE, None).await?.len();
    gaps.sort_unstable();
    let at = |share: usize| {
        let place = gaps.len().saturating_sub(1) * share / 100;
        gaps.get(place).map(|gap| gap.as_secs_f64() * 1e3)
    };
    let none = "the manager removed no flow of ours";
    let absent: Duration = gaps.iter().sum();
    let flow_seconds = seconds.as_secs_f64() * u32::try_from(our_flows).map_or(f64::NAN, f64::from);
    Ok(Report {
        flows: installed,
        our_flows,
        seconds: seconds.as_secs_f64(),
        replacements,
        removals: gaps.len() / our_flows.max(1),
        absent: absent.as_secs_f64() / flow_seconds,
        gap_ms: Gaps {
            median: at(50).context(none)?,
            p99: at(99).context(none)?,
            longest: at(100).context(none)?,
        },
        agent_cpu: used.as_secs_f64() / seconds.as_secs_f64(),
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
