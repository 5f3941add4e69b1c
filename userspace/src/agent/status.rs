//! What the agent says of itself.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    agent::{mode::NodeMode, node_bindings::NodeBindingsStatus, steering::BridgeSteering},
    datapath::Mode,
    mirror,
    ovsdb::LockState,
    plan::{NoMark, SteeringMark},
    topology::{BridgeGroup, Skipped},
};

/// The whole of it, as `neighsteer status --output json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct AgentStatus {
    /// The agent's version.
    pub version: &'static str,
    /// What kind of node this is.
    pub mode: NodeMode,
    /// The agent's process.
    pub pid: u32,
    /// Whether `disable-udn-arp-ndp-flood` is on: the agent steers and mirrors.
    pub steering_gate: bool,
    /// Whether steering and mirroring were paused by hand.
    pub paused: bool,
    /// Whether every bridge has what is wanted of it now, or stands down.
    pub settled: bool,
    /// The databases by name.
    pub databases: BTreeMap<&'static str, DatabaseStatus>,
    /// Groups of gateway routers by bridge.
    pub groups: Vec<GroupStatus>,
    /// What was found half built or foreign, and why it takes no part.
    pub skipped: Vec<Skipped>,
    /// The datapath by interface.
    pub datapath: Vec<DatapathStatus>,
    /// Flows, no-flood flags and static FDB by bridge.
    pub steering: Vec<BridgeSteering>,
    /// Bindings seen since the start whose address or MAC is empty or cannot be read.
    pub bad_bindings: u64,
    /// The lock of the one who mirrors for this chassis; `None` = nothing is mirrored.
    pub mirror_lock: Option<LockState>,
    /// The mirrors by bridge.
    pub mirror: BTreeMap<String, mirror::Status>,
    /// Node IPs; `None` = nothing is known of nodes, and nothing was ever written for them.
    pub nodes: Option<NodeBindingsStatus>,
}

impl AgentStatus {
    /// What an agent says that only observes, on the host of a DPU.
    #[must_use]
    pub fn observing(mode: NodeMode, datapath: Vec<DatapathStatus>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            mode,
            pid: std::process::id(),
            steering_gate: false,
            paused: false,
            settled: true,
            databases: BTreeMap::new(),
            groups: Vec::new(),
            skipped: Vec::new(),
            datapath,
            steering: Vec::new(),
            bad_bindings: 0,
            mirror_lock: None,
            mirror: BTreeMap::new(),
            nodes: None,
        }
    }
}

/// One database connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DatabaseStatus {
    /// Whether the first snapshot has arrived, ever.
    pub synced: bool,
    /// Whether the connection stands.
    pub connected: bool,
    /// Why it last broke.
    pub last_error: Option<String>,
    /// How often it broke.
    pub disconnects: u64,
    /// How often it was made anew or tried again, by the cause that ended it or the attempt
    /// ([`SessionError::cause`](crate::ovsdb::SessionError::cause)).
    pub reconnects: BTreeMap<&'static str, u64>,
}

/// One group of gateway routers.
#[derive(Clone, Debug, Serialize)]
pub struct GroupStatus {
    /// The bridge that they share.
    pub bridge: String,
    /// The MAC address that they share.
    pub bridge_mac: crate::ids::Mac,
    /// The port that the host is behind: `LOCAL`, or on a DPU the representor's name.
    pub host: String,
    /// The external-ingress ports' names, the uplink first.
    pub external_ingress_ports: Vec<String>,
    /// The mark by which the uplink is steered; `None` = by the frames' headers.
    pub steering_mark: Option<SteeringMark>,
    /// Why it is steered by headers though a mark is wanted.
    pub no_mark: Option<String>,
    /// Why invalid frames reach the bridge though they are to be dropped.
    pub no_drop: Option<&'static str>,
    /// The gateway router that sees neighbour traffic.
    pub source: String,
    /// The gateway routers that get copies of its bindings.
    pub followers: Vec<String>,
}

impl GroupStatus {
    /// A group, with what it is steered by, and why nothing is dropped before it.
    #[must_use]
    pub fn new(
        group: &BridgeGroup,
        mark: Result<Option<SteeringMark>, NoMark>,
        no_drop: Option<&'static str>,
    ) -> Self {
        Self {
            no_drop,
            steering_mark: mark.as_ref().ok().copied().flatten(),
            no_mark: mark.err().map(|reason| reason.to_string()),
            bridge: group.bridge.to_string(),
            bridge_mac: group.bridge_mac,
            host: match group.host.representor() {
                Some(name) => name.to_string(),
                None => "LOCAL".to_owned(),
            },
            external_ingress_ports: group
                .ingress_ports()
                .map(|port| port.name.to_string())
                .collect(),
            source: group.source.name.to_string(),
            followers: group
                .followers
                .iter()
                .map(|follower| follower.name.to_string())
                .collect(),
        }
    }
}

/// The datapath on one interface.
#[derive(Clone, Debug, Serialize)]
pub struct DatapathStatus {
    /// The interface.
    pub interface: String,
    /// Which way the frames go that it counts.
    pub direction: &'static str,
    /// How the program runs; `None` = it is not attached.
    pub mode: Option<Mode>,
    /// The mark that it gives frames to steer; `None` = it marks none.
    pub steering_mark: Option<SteeringMark>,
    /// What becomes of frames that every receiver must discard: `off`, `count` or `drop`.
    pub validate: &'static str,
    /// Why it is not attached.
    pub error: Option<String>,
    /// What its counters cannot see.
    pub warnings: Vec<String>,
}
