//! A real node: a lab, its agent and the manifests that it reads.

use std::{
    collections::BTreeMap,
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use neighsteer::agent::control::{Command, request};
use neighsteer_tests::lab::{
    AgentProcess, BRIDGE, Daemon, FlowSet, Lab, LabError, Manifests, OvnVersion, wait_until,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    others::{FAMILIES, Others},
    process::{Cpu, Memory},
    size::Size,
};

/// How long anything may take; OVN's own share of that is minutes on the largest node.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long OVN is waited for; in pieces of the lab's own patience.
const FOLLOWING: Duration = Duration::from_secs(300);
/// How often the agent is asked: that costs it something.
const PACE: Duration = Duration::from_millis(100);
/// How long the agent may take to end.
const END: Duration = Duration::from_secs(30);
/// As upstream ages bindings, seconds.
pub(crate) const AGE_S: u32 = 300;
/// The file that names all other nodes.
const FILE: &str = "others";

/// How followers know node IPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Strategy {
    /// Northbound rows.
    Static,
    /// Southbound rows.
    Dynamic,
}

impl Strategy {
    /// As `--node-bindings` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// A lab with an agent that knows of no other node at first.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) size: Size,
    pub(crate) strategy: Strategy,
    pub(crate) others: Others,
    manifests: Manifests,
    runtime: tokio::runtime::Runtime,
    agent: Option<AgentProcess>,
    /// Whether OVN has followed so far.
    follows: bool,
}

impl Bench {
    /// Brings lab and agent up.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub(crate) fn start(ovn: OvnVersion, strategy: Strategy, size: Size) -> anyhow::Result<Self> {
        eprintln!("OVN {ovn}: bringing up {} UDNs", size.followers);
        let lab = Lab::builder()
            .udns(size.followers)
            .age_threshold(AGE_S)
            .flows(FlowSet::Base)
            .version(ovn)
            .start()?;
        // As on any node of OVN-Kubernetes, these are there, and nobody else's.
        lab.add_masquerade_bindings()?;
        let mut bench = Self {
            manifests: lab.manifests()?,
            lab,
            size,
            strategy,
            others: Others::new(size.nodes),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            agent: None,
            follows: true,
        };
        bench.start_agent()?;
        bench.settle("the agent to steer", |state| state.rows == 0)?;
        bench.lab.sync()?;
        Ok(bench)
    }

    /// Starts the agent.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) fn start_agent(&mut self) -> anyhow::Result<()> {
        let nodes = self.manifests.directory().display().to_string();
        let agent = self.lab.agent([
            "--enable-network-segmentation",
            "--disable-udn-arp-ndp-flood",
            "--datapath=none",
            "--nodes",
            &nodes,
            "--node-bindings",
            self.strategy.name(),
        ])?;
        self.agent = Some(agent);
        Ok(())
    }

    /// Ends the agent; its rows stay.
    ///
    /// # Errors
    /// When it does not end.
    pub(crate) fn stop_agent(&mut self) -> anyhow::Result<()> {
        if let Some(mut agent) = self.agent.take() {
            agent.terminate(END)?;
        }
        Ok(())
    }

    fn agent(&self) -> anyhow::Result<&AgentProcess> {
        self.agent.as_ref().context("no agent runs")
    }

    /// Tells the agent of the other nodes as they are.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn tell(&self) -> anyhow::Result<()> {
        Ok(self.manifests.write(FILE, &self.others.list())?)
    }

    /// Rows that the followers need in all.
    pub(crate) fn wanted(&self) -> usize {
        self.size.rows()
    }

    /// Rows that one node needs.
    pub(crate) fn rows_of_a_node(&self) -> u64 {
        u64::from(self.size.followers) * u64::try_from(FAMILIES).unwrap_or(u64::MAX)
    }

    /// What the agent says of the rows.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn state(&self) -> anyhow::Result<State> {
        let directory = self.lab.state_directory();
        let status = self
            .runtime
            .block_on(request(&directory, Command::Status))?;
        State::read(status, self.strategy)
    }

    /// Waits until nothing is left to do, and the rows are as wanted; how they are.
    ///
    /// # Errors
    /// When the agent ends, or that takes too long.
    pub(crate) fn settle(
        &mut self,
        what: &str,
        wanted: impl Fn(&State) -> bool,
    ) -> anyhow::Result<State> {
        let mut ended = None;
        let state = wait_until(PATIENCE, what, || {
            if let Some(agent) = &mut self.agent
                && let Ok(Some(status)) = agent.try_wait()
            {
                ended = Some(format!("the agent has ended, {status}: {}", agent.log()));
                return Ok(None);
            }
            // Between two questions: each costs the agent something.
            thread::sleep(PACE);
            match self.state() {
                Ok(state) if state.idle && wanted(&state) => Ok(Some(state)),
                Ok(state) => Err(format!("{state:?}")),
                Err(error) => Err(format!("{error:#}")),
            }
        })?;
        state.with_context(|| ended.unwrap_or_default())
    }

    /// Waits until northd and ovn-controller have followed; the seconds since `start` then. [`None`] where
    /// they have not after [`FOLLOWING`], and from then on: that is a result, too.
    ///
    /// # Errors
    /// When a daemon ends.
    pub(crate) fn followed(&mut self, start: Instant) -> anyhow::Result<Option<f64>> {
        let waited = Instant::now();
        while self.follows {
            match self.lab.sync() {
                Ok(()) => return Ok(Some(start.elapsed().as_secs_f64())),
                Err(LabError::Deadline { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let waited = waited.elapsed();
            eprintln!("OVN has not followed for {} s", waited.as_secs());
            self.follows = waited < FOLLOWING;
        }
        Ok(None)
    }

    /// The CPU time that everybody has used so far.
    ///
    /// # Errors
    /// When one of them has ended.
    pub(crate) fn cpu(&self) -> anyhow::Result<Cpu> {
        let of = |daemon| anyhow::Ok(self.lab.cpu(daemon)?.as_secs_f64());
        let agent = self.agent.as_ref().map(AgentProcess::cpu).transpose()?;
        Ok(Cpu {
            northbound: of(Daemon::Northbound)?,
            southbound: of(Daemon::Southbound)?,
            northd: of(Daemon::Northd)?,
            controller: of(Daemon::Controller)?,
            agent: agent.unwrap_or_default().as_secs_f64(),
        })
    }

    /// The agent's memory.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn agent_memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.agent()?.pid())
    }

    /// The memory of OVN's daemons, by name.
    ///
    /// # Errors
    /// When one of them has ended.
    pub(crate) fn memory(&self) -> anyhow::Result<BTreeMap<&'static str, Memory>> {
        let daemons = [
            Daemon::Northbound,
            Daemon::Southbound,
            Daemon::Northd,
            Daemon::Controller,
        ];
        let of = |daemon: Daemon| Ok((daemon.name(), Memory::of(self.lab.pid(daemon)?)?));
        daemons.into_iter().map(of).collect()
    }

    /// The size of the northbound server's log, in bytes: whatever is written goes there.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn northbound_log(&self) -> anyhow::Result<u64> {
        let file = self.lab.directory().join("nb.db");
        Ok(fs::metadata(&file)
            .with_context(|| format!("no {}", file.display()))?
            .len())
    }
}

/// What the agent says of node IPs' rows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct State {
    /// Whether everything is done that there is to do now.
    pub(crate) idle: bool,
    /// Right rows that it knows of.
    pub(crate) rows: usize,
    /// Rows written since its start, by why or how.
    pub(crate) written: BTreeMap<String, u64>,
    /// Transactions committed since its start.
    pub(crate) transactions: u64,
    /// What went wrong since its start, where anything did.
    pub(crate) errors: BTreeMap<String, u64>,
}

impl State {
    /// Rows written since the agent's start, of those kinds of which there are any.
    pub(crate) fn written_at_all(&self) -> BTreeMap<String, u64> {
        self.since(&Self::default())
    }

    /// Rows written since an earlier look, of those kinds of which there are any.
    pub(crate) fn since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let before = |how: &String| earlier.written.get(how).copied().unwrap_or_default();
        let written = self.written.iter();
        written
            .map(|(how, rows)| (how.clone(), rows.saturating_sub(before(how))))
            .filter(|(_, rows)| *rows > 0)
            .collect()
    }

    fn read(status: Value, strategy: Strategy) -> anyhow::Result<Self> {
        let status: Status = serde_json::from_value(status).context("the agent's status")?;
        let nodes = status.nodes.context("the agent knows nothing of nodes")?;
        let locked = nodes.lock == "held" && status.mirror_lock.as_deref() == Some("held");
        let ready = status.settled && locked && nodes.strategy.as_deref() == Some(strategy.name());
        let errors = |errors: BTreeMap<String, u64>| {
            let errors = errors.into_iter();
            errors.filter(|(_, count)| *count > 0).collect()
        };
        Ok(match strategy {
            Strategy::Static => {
                let rows = nodes.static_rows;
                Self {
                    idle: ready && rows.synced && !rows.waiting && rows.in_flight == 0,
                    rows: rows.ours,
                    written: rows.counters.writes,
                    transactions: rows.counters.transactions,
                    errors: errors(rows.counters.errors),
                }
            }
            Strategy::Dynamic => {
                let mut mirrors = status.mirror;
                let mirror = mirrors.remove(BRIDGE).context("nothing is mirrored")?;
                let followers = mirror.followers;
                // Refreshes come and go all the time.
                let waiting = mirror.queued.into_iter();
                let waiting = waiting.filter(|(lane, rows)| lane != "refresh" && *rows > 0);
                Self {
                    idle: ready && mirror.synced && waiting.count() == 0,
                    rows: (followers * mirror.pinned).saturating_sub(mirror.pinned_missing),
                    written: mirror.counters.node_writes,
                    transactions: mirror.counters.transaction.count,
                    errors: errors(mirror.counters.errors),
                }
            }
        })
    }
}

/// What is read of the agent's status.
#[derive(Deserialize)]
struct Status {
    settled: bool,
    mirror_lock: Option<String>,
    mirror: BTreeMap<String, MirrorStatus>,
    nodes: Option<NodesStatus>,
}

#[derive(Deserialize)]
struct NodesStatus {
    strategy: Option<String>,
    lock: String,
    static_rows: StaticStatus,
}

#[derive(Deserialize)]
struct StaticStatus {
    synced: bool,
    ours: usize,
    waiting: bool,
    in_flight: usize,
    counters: StaticCounters,
}

#[derive(Deserialize)]
struct StaticCounters {
    transactions: u64,
    writes: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct MirrorStatus {
    synced: bool,
    followers: usize,
    pinned: usize,
    pinned_missing: usize,
    queued: BTreeMap<String, usize>,
    counters: MirrorCounters,
}

#[derive(Deserialize)]
struct MirrorCounters {
    node_writes: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
    transaction: Samples,
}

#[derive(Deserialize)]
struct Samples {
    count: u64,
}
