//! The agent's configuration, checked once at start.

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, time::Duration};

use neighsteer_common::Validate;

use super::mode::HostConfig;
use crate::{
    datapath::Hook,
    mirror::Settings,
    ovsdb::{Remote, TlsFiles},
    plan::{Gates, Install, SteeringMark},
    sources::SourceConfig,
    statics::{self, StrategySetting},
};

/// What the agent was told.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Where the databases and the switch are.
    pub connection: Connection,
    /// The feature gates of OKEP-6691.
    pub gates: Gates,
    /// Which flows are installed.
    pub install: Install,
    /// Where the state file, the lock and the control socket are.
    pub state_directory: PathBuf,
    /// The BPF file system.
    pub bpffs: PathBuf,
    /// Where the datapath attaches to the uplink; `None` = nowhere.
    pub hook: Option<Hook>,
    /// The skb mark's base value, where frames are tagged.
    pub tag: Option<u32>,
    /// The mark by which frames are steered; `None` = by their headers.
    pub steering_mark: Option<SteeringMark>,
    /// What becomes of frames that every receiver must discard.
    pub validate: Validate,
    /// How often what is installed is compared with what is wanted, whatever the events say.
    pub check_interval: Duration,
    /// How the mirror behaves.
    pub mirror: Settings,
    /// Addresses that are never mirrored.
    pub node_addresses: BTreeSet<IpAddr>,
    /// What is done about the addresses of nodes.
    pub nodes: NodeConfig,
}

/// What is done about the addresses of nodes.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where nodes are known from; `None` = nothing is known of them.
    pub source: Option<SourceConfig>,
    /// This node's name, where its chassis does not tell.
    pub name: Option<String>,
    /// How followers know node IPs.
    pub strategy: StrategySetting,
    /// How many static rows an OVN before 25.03 gets, where the strategy is left to us.
    pub static_rows: usize,
    /// How static rows are written.
    pub settings: statics::Settings,
    /// Whether static rows of ours stay while the gate is off.
    pub keep_rows: bool,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            source: None,
            name: None,
            strategy: StrategySetting::default(),
            static_rows: 5_000,
            settings: statics::Settings::default(),
            keep_rows: false,
        }
    }
}

/// Where the databases and the switch are.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The Open_vSwitch database.
    pub ovs: Vec<Remote>,
    /// OVN's northbound database.
    pub northbound: Vec<Remote>,
    /// OVN's southbound database; `None` = `external_ids:ovn-remote` of the Open_vSwitch row.
    pub southbound: Option<Vec<Remote>>,
    /// Key, certificate and authorities, for `ssl:` remotes.
    pub tls: Option<TlsFiles>,
    /// ovs-vswitchd's run directory: `<bridge>.mgmt` and its control socket.
    pub ovs_run_directory: PathBuf,
    /// What kind of node this is.
    pub host: HostConfig,
    /// How long the databases may take to answer at start.
    pub startup_timeout: Duration,
}
