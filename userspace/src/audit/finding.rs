//! What an audit can find.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::Serialize;

use super::TrafficKind;
use crate::{
    ids::{Mac, OfPort},
    openflow::Flow,
};

/// Something that is not as the design wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// The bridge has gateway routers and was left out: nothing steers it, and nothing was looked at.
    LeftOut {
        /// Why.
        reason: String,
    },
    /// The bridge has no flow of priority 52: nothing is steered, and no other rule was looked at.
    NotSteered,
    /// A flow of the design is not installed.
    MissingFlow {
        /// The flow.
        flow: Flow,
    },
    /// A steering flow outputs to something else than the source's patch port and `NORMAL`.
    WrongSource {
        /// The installed flow.
        flow: Flow,
        /// The ports that it outputs to.
        outputs: Vec<Arc<str>>,
        /// The source's patch port.
        source: Arc<str>,
    },
    /// Another flow of the design is installed with other actions.
    OtherActions {
        /// The installed flow.
        flow: Flow,
        /// What it should do, as ovs-ofctl writes it.
        wanted: String,
    },
    /// A steering flow that no frame gets to: one flow of a higher priority takes them all.
    Shadowed {
        /// The steering flow.
        flow: Flow,
        /// The flow above it.
        by: Flow,
    },
    /// A steering flow of ours that the design has not, for example of a port that has gone.
    StrayFlow {
        /// The installed flow.
        flow: Flow,
    },
    /// A follower's patch port without no-flood: flooded frames reach the follower.
    FollowerFloods {
        /// The router.
        router: Arc<str>,
        /// Its patch port.
        port: Arc<str>,
        /// The port's number.
        ofport: OfPort,
    },
    /// The source's patch port with no-flood: flooded frames do not reach the source.
    SourceNoFlood {
        /// The router.
        router: Arc<str>,
        /// Its patch port.
        port: Arc<str>,
        /// The port's number.
        ofport: OfPort,
    },
    /// The patch port of a secondary localnet network with no-flood.
    SecondaryNoFlood {
        /// The patch port.
        port: Arc<str>,
        /// The port's number.
        ofport: OfPort,
    },
    /// A port that the databases name and the bridge does not have.
    PortMissing {
        /// The port.
        port: Arc<str>,
        /// The number that it should have.
        ofport: OfPort,
    },
    /// No static forwarding entry for the shared address.
    FdbMissing {
        /// The address.
        mac: Mac,
        /// The VLAN, 0 for none.
        vlan: u16,
        /// The port that it should lead to.
        port: Arc<str>,
    },
    /// The static forwarding entry for the shared address leads to another port.
    FdbElsewhere {
        /// The address.
        mac: Mac,
        /// The VLAN, 0 for none.
        vlan: u16,
        /// The port that it should lead to.
        port: Arc<str>,
        /// The port that it leads to.
        leads_to: Arc<str>,
    },
    /// A router's external port whose address is not the bridge's: steered frames are not for it.
    MacDiffers {
        /// The router.
        router: Arc<str>,
        /// Its external port.
        port: Arc<str>,
        /// The port's address.
        mac: Mac,
        /// The bridge's address.
        bridge_mac: Mac,
    },
    /// A flow that hands neighbour or multicast traffic to several gateway routers.
    FanOut(FanOut),
    /// A measured frame that is not seen by the source alone, though no other finding says why: a
    /// flow above the steering ones takes it, or one with an action that is not understood.
    WrongReceivers {
        /// The frame.
        frame: TrafficKind,
        /// Whether the source sees it.
        source: bool,
        /// How many followers do.
        followers: usize,
    },
    /// The translation of a frame runs into the limit of lookups.
    LookupLimit {
        /// The frame.
        frame: TrafficKind,
        /// How many lookups there were.
        lookups: usize,
    },
}

/// A flow that hands neighbour or multicast traffic to several gateway routers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FanOut {
    /// The flow.
    pub flow: Flow,
    /// How many ports it outputs to by their numbers, whatever is behind them.
    pub outputs: usize,
    /// How many gateway routers get a frame that it takes.
    pub routers: usize,
    /// What reaches it: no flow of a higher priority takes all of this.
    pub traffic: BTreeSet<TrafficKind>,
    /// The ports by which that comes in.
    pub in_ports: BTreeSet<Arc<str>>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut { reason } => write!(f, "left out: {reason}"),
            Self::NotSteered => f.write_str("not steered: no flow of priority 52 is installed"),
            Self::MissingFlow { flow } => write!(f, "missing flow: {}", brief(flow)),
            Self::WrongSource {
                flow,
                outputs,
                source,
            } => write!(
                f,
                "wrong source: outputs to {}, not to {source} and NORMAL: {}",
                list(outputs.iter()),
                brief(flow)
            ),
            Self::OtherActions { flow, wanted } => {
                write!(f, "other actions: {wanted} is wanted of {}", brief(flow))
            }
            Self::Shadowed { flow, by } => write!(
                f,
                "no frame gets to the steering flow {}: it is under {}",
                brief(flow),
                brief(by)
            ),
            Self::StrayFlow { flow } => write!(f, "stray flow: {}", brief(flow)),
            Self::FollowerFloods {
                router,
                port,
                ofport,
            } => write!(
                f,
                "no-flood is not set on {port} ({ofport}): flooded frames reach {router}"
            ),
            Self::SourceNoFlood {
                router,
                port,
                ofport,
            } => write!(
                f,
                "no-flood is set on {port} ({ofport}): flooded frames do not reach the source {router}"
            ),
            Self::SecondaryNoFlood { port, ofport } => write!(
                f,
                "no-flood is set on {port} ({ofport}), the port of a secondary localnet network"
            ),
            Self::PortMissing { port, ofport } => {
                write!(f, "the bridge has no port {port} ({ofport})")
            }
            Self::FdbMissing { mac, vlan, port } => {
                write!(f, "no static entry {mac} in VLAN {vlan} to {port}")
            }
            Self::FdbElsewhere {
                mac,
                vlan,
                port,
                leads_to,
            } => write!(
                f,
                "the static entry {mac} in VLAN {vlan} leads to {leads_to}, not to {port}"
            ),
            Self::MacDiffers {
                router,
                port,
                mac,
                bridge_mac,
            } => write!(
                f,
                "{port} of {router} has the address {mac}, the bridge {bridge_mac}"
            ),
            Self::FanOut(fan_out) => write!(f, "{fan_out}"),
            Self::WrongReceivers {
                frame,
                source,
                followers,
            } => {
                let source = if *source {
                    "the source"
                } else {
                    "not the source"
                };
                write!(
                    f,
                    "{frame} by the uplink reaches {source} and {followers} followers: `neighsteer trace` shows the flows that it takes"
                )
            }
            Self::LookupLimit { frame, lookups } => write!(
                f,
                "{frame} runs into the limit: {lookups} lookups, and the rest of the actions is lost"
            ),
        }
    }
}

impl fmt::Display for FanOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fan-out to {} ports, {} gateway routers, of {} by {}: {}",
            self.outputs,
            self.routers,
            list(self.traffic.iter()),
            list(self.in_ports.iter()),
            brief(&self.flow)
        )
    }
}

/// A flow without the outputs that make it long.
fn brief(flow: &Flow) -> String {
    const LONG: usize = 60;
    let comma = if flow.matches.is_empty() { "" } else { ", " };
    let actions = flow.actions_text();
    let short = actions.get(..LONG).filter(|_| actions.len() > LONG);
    let short = short.and_then(|it| it.rsplit_once(','));
    let actions = short.map_or(actions.clone(), |(whole, _)| format!("{whole},…"));
    format!(
        "cookie={}, priority={}, table={}{comma}{}, actions={actions}",
        flow.cookie, flow.priority, flow.table, flow.matches
    )
}

fn list(items: impl ExactSizeIterator<Item = impl fmt::Display>) -> String {
    if items.len() == 0 {
        return "nothing".to_owned();
    }
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    items.join(", ")
}
