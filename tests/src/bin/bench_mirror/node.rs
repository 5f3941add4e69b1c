//! A real node: a lab, its agent, and another client that writes to the southbound database.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::{Context as _, bail};
use neighsteer::ids::Mac;
use neighsteer_tests::{
    lab::{AgentProcess, BRIDGE, Daemon, FlowSet, Lab, Network, wait_until},
    southbound::now,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An agent that steers and mirrors, and attaches to nothing.
const STEERING: [&str; 3] = [
    "--enable-network-segmentation",
    "--disable-udn-arp-ndp-flood",
    "--datapath=none",
];
/// How long the agent may take for everything that is to be done.
const PATIENCE: Duration = Duration::from_secs(300);
/// As upstream ages bindings, seconds.
pub(crate) const AGE_S: u32 = 300;
/// How often a neighbour's binding is refreshed: 3/16 of that, as OVN does.
pub(crate) const REFRESH: Duration = Duration::from_secs(56);

/// A lab of so many UDNs, with pods in some.
///
/// # Errors
/// When it does not come up.
pub(crate) fn lab(
    udns: u16,
    pods: impl IntoIterator<Item = u16>,
    age_s: u32,
) -> anyhow::Result<Lab> {
    eprintln!("bringing up {udns} UDNs");
    let builder = Lab::builder().udns(udns).pods(pods).age_threshold(age_s);
    Ok(builder.flows(FlowSet::Base).start()?)
}

/// Starts an agent, and waits until there is nothing left for it to do.
///
/// # Errors
/// When it ends, or does not settle.
pub(crate) fn agent(lab: &Lab, flags: &[&str]) -> anyhow::Result<AgentProcess> {
    let mut agent = lab.agent(STEERING.iter().chain(flags))?;
    agent.wait_for_log("group", PATIENCE)?;
    settled(lab, |mirror| mirror.followers == lab.udns().count())?;
    Ok(agent)
}

/// What is read of the agent's status.
#[derive(Deserialize)]
struct Status {
    settled: bool,
    mirror_lock: Option<String>,
    mirror: BTreeMap<String, Mirror>,
}

/// The mirror's part of it.
#[derive(Deserialize)]
pub(crate) struct Mirror {
    pub(crate) synced: bool,
    pub(crate) followers: usize,
    pub(crate) rows: usize,
    queued: BTreeMap<String, usize>,
    in_flight: usize,
    counters: Counters,
}

#[derive(Deserialize)]
struct Counters {
    writes: BTreeMap<String, u64>,
}

impl Mirror {
    /// Rows written since the agent's start, and how many of them were refreshed.
    pub(crate) fn written(&self) -> Written {
        let writes = &self.counters.writes;
        Written {
            rows: writes.values().sum(),
            refreshed: writes.get("refresh").copied().unwrap_or(0),
        }
    }

    fn is_idle(&self) -> bool {
        self.synced && self.in_flight == 0 && self.queued.values().all(|waiting| *waiting == 0)
    }
}

/// Rows that the agent has written.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) refreshed: u64,
}

fn status(lab: &Lab) -> anyhow::Result<Status> {
    let state = lab.state_directory().display().to_string();
    // The exit code says whether all is well, which is not the question here.
    let output = lab
        .neighsteer(&["status", "--output", "json", "--state-dir", &state])?
        .output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("the agent does not say how it is: {}", errors.trim())
    })
}

/// The mirror's state.
///
/// # Errors
/// When the agent does not answer, or mirrors nothing.
pub(crate) fn mirror(lab: &Lab) -> anyhow::Result<Mirror> {
    let mirror = status(lab)?.mirror.remove(BRIDGE);
    mirror.context("nothing is mirrored")
}

/// Waits until the agent has done everything, and the mirror is as wanted.
///
/// # Errors
/// When that takes too long.
pub(crate) fn settled(lab: &Lab, wanted: impl Fn(&Mirror) -> bool) -> anyhow::Result<Mirror> {
    let mirror = wait_until(PATIENCE, "the agent to have done everything", || {
        let mut status = status(lab).map_err(|error| format!("{error:#}"))?;
        let ready = status.settled && status.mirror_lock.as_deref() == Some("held");
        match status.mirror.remove(BRIDGE) {
            Some(mirror) if ready && mirror.is_idle() && wanted(&mirror) => Ok(mirror),
            Some(mirror) => Err(format!(
                "settled and locked {ready}, idle {}, {} followers, {} rows",
                mirror.is_idle(),
                mirror.followers,
                mirror.rows
            )),
            None => Err("no mirror".to_owned()),
        }
    })?;
    Ok(mirror)
}

/// Runs operations of another client's in one transaction.
///
/// # Errors
/// When the server refuses them.
pub(crate) fn transact(lab: &Lab, operations: Vec<Value>) -> anyhow::Result<Vec<Value>> {
    let results = lab.with_database(Daemon::Southbound, |it| it.transact(operations))?;
    Ok(results)
}

/// A neighbour of the source, the default network's gateway router.
#[derive(Clone)]
pub(crate) struct Neighbour {
    pub(crate) ip: IpAddr,
    /// Its row, as a reference.
    row: Value,
}

/// The source learns neighbours with these numbers, all at once.
///
/// # Errors
/// When the server refuses them.
pub(crate) fn learn(lab: &Lab, numbers: &[u16]) -> anyhow::Result<Vec<Neighbour>> {
    let port = Network::DEFAULT.external_port();
    let rows = lab.with_database(Daemon::Southbound, |southbound| {
        southbound.select(
            "Port_Binding",
            json!([["logical_port", "==", port]]),
            &["datapath"],
        )
    })?;
    let datapath = &rows.first().context("the source has no port")?["datapath"];
    let address = |number: &u16| {
        let [high, low] = number.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(172, 18, 200_u8.wrapping_add(high), low))
    };
    let insert = |number: &u16| {
        json!({"op": "insert", "table": "MAC_Binding", "row": {
            "logical_port": port, "ip": address(number).to_string(), "datapath": datapath,
            "mac": random_mac().to_string(), "timestamp": now()}})
    };
    let results = transact(lab, numbers.iter().map(insert).collect())?;
    let rows = numbers.iter().zip(results);
    Ok(rows
        .map(|(number, result)| Neighbour {
            ip: address(number),
            row: result["uuid"].clone(),
        })
        .collect())
}

fn random_mac() -> Mac {
    let [_, _, a, b, c, d, ..] = fastrand::u64(..).to_be_bytes();
    Mac([0x02, 0xdd, a, b, c, d])
}

impl Neighbour {
    /// An operation on the source's row.
    fn operation(&self, mut operation: Value) -> Value {
        operation["table"] = "MAC_Binding".into();
        operation["where"] = json!([["_uuid", "==", self.row]]);
        operation
    }

    /// The source hears from it.
    pub(crate) fn refresh(&self) -> Value {
        self.operation(json!({"op": "update", "row": {"timestamp": now()}}))
    }

    /// It shows up with another MAC.
    pub(crate) fn change_mac(&self) -> Value {
        let row = json!({"timestamp": now(), "mac": random_mac().to_string()});
        self.operation(json!({"op": "update", "row": row}))
    }

    /// The source's row goes.
    pub(crate) fn forget(&self) -> Value {
        self.operation(json!({"op": "delete"}))
    }

    /// The followers' rows go.
    pub(crate) fn forget_followers(&self) -> Value {
        json!({"op": "delete", "table": "MAC_Binding", "where": [
            ["ip", "==", self.ip.to_string()],
            ["logical_port", "!=", Network::DEFAULT.external_port()]]})
    }
}

/// Refreshes sources in one transaction.
///
/// # Errors
/// When a row is gone, or the server refuses.
pub(crate) fn refresh(lab: &Lab, neighbours: &[&Neighbour]) -> anyhow::Result<()> {
    let operations = neighbours.iter().map(|it| it.refresh()).collect();
    for (neighbour, result) in neighbours.iter().zip(transact(lab, operations)?) {
        if result["count"] != 1 {
            bail!("the source's row of {} is gone", neighbour.ip);
        }
    }
    Ok(())
}

/// CPU time of those that writes keep busy, s; of a span of time, or since their start.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Cpu {
    pub(crate) southbound: f64,
    pub(crate) northd: f64,
    pub(crate) controller: f64,
    pub(crate) agent: f64,
}

impl Cpu {
    /// So far.
    ///
    /// # Errors
    /// When one of them has ended.
    pub(crate) fn read(lab: &Lab, agent: &AgentProcess) -> anyhow::Result<Self> {
        Ok(Self {
            southbound: lab.cpu(Daemon::Southbound)?.as_secs_f64(),
            northd: lab.cpu(Daemon::Northd)?.as_secs_f64(),
            controller: lab.cpu(Daemon::Controller)?.as_secs_f64(),
            agent: agent.cpu()?.as_secs_f64(),
        })
    }

    /// What was used since, spread over so many minutes.
    pub(crate) fn since(self, earlier: Self, minutes: f64) -> Self {
        Self {
            southbound: (self.southbound - earlier.southbound) / minutes,
            northd: (self.northd - earlier.northd) / minutes,
            controller: (self.controller - earlier.controller) / minutes,
            agent: (self.agent - earlier.agent) / minutes,
        }
    }
}
