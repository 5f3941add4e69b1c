//! A lab with an agent.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use neighsteer::datapath::{DEFAULT_BPFFS, bpffs};
use neighsteer_tests::lab::{AgentProcess, Builder, FlowSet, Lab, Network, wait_until};
use serde_json::Value;

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// OVN's buffer holds a packet for up to 10 s.
pub const PING: Duration = Duration::from_secs(10);
/// Both gates.
pub const STEER: [&str; 2] = [
    "--enable-network-segmentation",
    "--disable-udn-arp-ndp-flood",
];

/// The cookie of our flows.
pub const COOKIE: &str = "0x6e65696768737472";

/// A lab without fan-out flows, and the agent's pins below a directory of its own.
pub struct Rig {
    pub lab: Lab,
    bpffs: PathBuf,
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Each test has pins of its own: `cleanup` takes off all that it finds.
        drop(fs::remove_dir_all(&self.bpffs));
    }
}

impl Rig {
    pub fn start(udns: u16, pods: &[u16]) -> Self {
        Self::build(Lab::builder(), udns, pods)
    }

    /// A lab that is to be otherwise than by default too.
    pub fn build(builder: Builder, udns: u16, pods: &[u16]) -> Self {
        let lab = builder
            .udns(udns)
            .pods(pods.iter().copied())
            .flows(FlowSet::Base)
            .start()
            .unwrap();
        let bpffs = Path::new(DEFAULT_BPFFS);
        bpffs::ensure(bpffs).unwrap();
        let bpffs = bpffs.join(format!("neighsteer-test-{}", lab.state().id));
        fs::create_dir(&bpffs).unwrap();
        Self { lab, bpffs }
    }

    fn bpffs_flags(&self) -> [String; 2] {
        ["--bpffs".to_owned(), self.bpffs.display().to_string()]
    }

    /// `neighsteer attach`, `detach` or `stats`.
    pub fn datapath(&self, arguments: &[&str]) -> Output {
        let mut command = self.lab.neighsteer(arguments).unwrap();
        command.args(self.bpffs_flags()).output().unwrap()
    }

    /// An agent that steers and mirrors, once it has converged.
    pub fn steering_agent(&self) -> AgentProcess {
        let agent = self.agent(&STEER);
        self.wait_for_status("steering and mirroring", |status| {
            let followers = status["groups"][0]["followers"].as_array()?.len() as u64;
            let bridge = status["steering"]
                .as_array()?
                .iter()
                .find(|bridge| bridge["bridge"] == "br-ex")?;
            let mirror = &status["mirror"]["br-ex"];
            let converged = bridge["converged"] == true && bridge["flows"] == 6;
            (converged && mirror["synced"] == true && mirror["followers"] == followers)
                .then_some(())
        });
        agent
    }

    /// An agent with these flags.
    pub fn agent(&self, flags: &[&str]) -> AgentProcess {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        self.lab.agent(flags.chain(self.bpffs_flags())).unwrap()
    }

    /// The agent's status; `Null` while none answers.
    pub fn status(&self) -> Value {
        let output = self.status_command().output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// `neighsteer status`, as JSON.
    pub fn status_command(&self) -> Command {
        let directory = self.lab.state_directory().display().to_string();
        self.lab
            .neighsteer(&["status", "--output", "json", "--state-dir", &directory])
            .unwrap()
    }

    /// Waits until the status says something.
    pub fn wait_for_status<T>(&self, what: &str, wanted: impl Fn(&Value) -> Option<T>) -> T {
        wait_until(PATIENCE, what, || {
            let status = self.status();
            wanted(&status).ok_or_else(|| status.to_string())
        })
        .unwrap()
    }

    /// The source learns a neighbour now, as a row says.
    pub fn source_learns(&self, ip: &str) {
        self.lab
            .insert_mac_binding(Network::DEFAULT, ip, "02:aa:00:00:00:09", now_ms())
            .unwrap();
    }

    /// Waits until these networks' routers, and only they, have a binding; returns its MACs.
    pub fn wait_for_bindings(&self, address: IpAddr, networks: &[u16]) -> Vec<String> {
        let mut wanted: Vec<String> = networks
            .iter()
            .map(|id| Network(*id).external_port())
            .collect();
        wanted.sort();
        wait_until(
            PATIENCE,
            format_args!("bindings of {address} on {wanted:?}"),
            || {
                let rows = self.lab.mac_bindings(address).unwrap();
                let ports: Vec<String> = rows.iter().map(|row| row.logical_port.clone()).collect();
                if ports == wanted {
                    Ok(rows.into_iter().map(|row| row.mac).collect())
                } else {
                    Err(format!("{rows:?}"))
                }
            },
        )
        .unwrap()
    }

    /// `neighsteer` with a subcommand and the lab's connection flags.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.neighsteer(arguments).unwrap();
        let flags = self.lab.agent_flags();
        let wanted = match arguments[0] {
            "cleanup" => &["--ovs-db", "--ovn-nb", "--ovs-rundir", "--state-dir"][..],
            "agent" | "doctor" => &[
                "--ovs-db",
                "--ovn-nb",
                "--ovn-sb",
                "--ovs-rundir",
                "--state-dir",
            ],
            _ => &["--ovs-db", "--ovn-nb", "--ovn-sb", "--ovs-rundir"],
        };
        for pair in flags
            .chunks(2)
            .filter(|pair| wanted.contains(&pair[0].as_str()))
        {
            command.args(pair);
        }
        if ["agent", "doctor", "cleanup"].contains(&arguments[0]) {
            command.args(self.bpffs_flags());
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Our flows on br-ex.
    pub fn our_flows(&self) -> Vec<String> {
        let flows = self.lab.flows("br-ex").unwrap();
        flows
            .into_iter()
            .filter(|flow| flow.contains(COOKIE))
            .collect()
    }
}

/// The first datapath counter that fits, in packets.
pub fn packets(rig: &Rig, kind: &str, decision: &str) -> u64 {
    let output = rig.datapath(&["stats", "--output", "json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let uplink = rig.lab.uplink();
    let interfaces = stats.as_array().cloned().unwrap_or_default();
    let counters = interfaces
        .iter()
        .filter(|interface| interface["interface"] == *uplink);
    counters
        .flat_map(|interface| {
            interface["counters"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .filter(|counter| counter["kind"] == kind && counter["decision"] == decision)
        .filter_map(|counter| counter["packets"].as_u64())
        .sum()
}

/// Milliseconds since the epoch.
pub fn now_ms() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    u64::try_from(now.as_millis()).unwrap()
}
