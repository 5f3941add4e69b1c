//! What the demo asks the agent.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::frames::arp_reply;
use crate::lab::{
    AgentProcess, BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_MAC, Lab, LabError, NODE_IPV4, Result,
    wait_until,
};

/// How long the agent may take until it steers, and for a mirror's write.
const CONVERGED: Duration = Duration::from_secs(60);
/// The priority of the steering flows.
const STEERING: u16 = 52;

/// The agent's own measure, from a source row seen to the last follower's row committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Source rows mirrored.
    pub count: u64,
    /// The newest, ms.
    pub last: u64,
    /// The median (an upper bound of it), ms.
    pub p50: u64,
    /// The longest, ms.
    pub max: u64,
}

/// Waits until the agent steers, and holds the other routers back from floods.
///
/// # Errors
/// When it has not after a minute, or ends.
pub fn wait_until_steered(lab: &Lab, agent: &mut AgentProcess) -> Result<()> {
    let frame = arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4);
    let uplink = lab.uplink();
    let followers = lab.udns().count();
    wait_until(CONVERGED, "the agent to steer", || {
        if let Some(status) = agent.try_wait().map_err(|error| error.to_string())? {
            return Ok(Err(LabError::Command {
                command: "neighsteer agent".to_owned(),
                status,
                stderr: agent.log(),
            }));
        }
        let look = || -> Result<(Option<u16>, usize)> {
            Ok((
                lab.trace(&uplink, &frame)?.priority(),
                lab.no_flood_ports()?.len(),
            ))
        };
        match look().map_err(|error| error.to_string())? {
            (Some(STEERING), no_flood) if no_flood == followers => Ok(Ok(())),
            (priority, no_flood) => Err(format!(
                "a unicast reply takes priority {priority:?}, {no_flood} of {followers} patch \
                 ports are no-flood; the agent says: {}",
                agent.log()
            )),
        }
    })?
}

/// How long mirroring has taken; `None` before anything was mirrored.
pub(crate) fn latency(lab: &Lab) -> Result<Option<Latency>> {
    let state = lab.state_directory().display().to_string();
    let mut command = lab.neighsteer(&["status", "--output", "json", "--state-dir", &state])?;
    // Its exit code says whether all is well, which is not the question here.
    let output = command.output().map_err(|source| LabError::Spawn {
        program: "neighsteer status".to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Ok(status) = serde_json::from_str::<Value>(&text) else {
        return Err(LabError::Command {
            command: "neighsteer status --output json".to_owned(),
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    };
    find(&status["mirror"], "latency").map_or(
        Err(LabError::Unexpected {
            what: "the agent's status: no mirror latency in it",
            text,
        }),
        |histogram| Ok(read(histogram)),
    )
}

/// Waits for a latency later than one read before; ms.
pub(crate) fn next_latency(lab: &Lab, before: Option<Latency>) -> Result<u64> {
    let before = before.map_or(0, |latency| latency.count);
    wait_until(
        CONVERGED,
        "the agent to mirror a binding",
        || match latency(lab).map_err(|error| error.to_string())? {
            Some(now) if now.count > before => Ok(now.last),
            _ => Err(format!("{before} mirrored, as before")),
        },
    )
}

fn read(histogram: &Value) -> Option<Latency> {
    Some(Latency {
        count: histogram["count"].as_u64().filter(|count| *count > 0)?,
        last: histogram["last"].as_u64()?,
        p50: histogram["p50"].as_u64()?,
        max: histogram["max"].as_u64()?,
    })
}

/// The first value with this key, at whatever depth: statuses are kept by bridge.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map
            .get(key)
            .or_else(|| map.values().find_map(|value| find(value, key))),
        Value::Array(list) => list.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}
