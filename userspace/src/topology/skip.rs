//! What a topology leaves out.

use std::{fmt, sync::Arc};

use crate::representor::NoRepresentor;

/// An object that is not part of any group, or not in the way that it seems to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Its name: of a router, a port, a bridge or a key.
    pub object: Arc<str>,
    /// Why.
    pub reason: SkipReason,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)
    }
}

impl serde::Serialize for Skipped {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Skipped", 2)?;
        object.serialize_field("object", &self.object)?;
        object.serialize_field("reason", &self.reason.to_string())?;
        object.end()
    }
}

/// Why an object is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum SkipReason {
    /// Open_vSwitch has no `external_ids:system-id`, so that no router can be told to be ours.
    #[error("external_ids:system-id is not set: ovn-controller has no chassis name here")]
    NoSystemId,
    /// A row that cannot be read.
    #[error("its {table} row cannot be read: {problem}")]
    Unreadable {
        /// The table.
        table: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// An entry of ovn-bridge-mappings without a colon, or with nothing at one side of it.
    #[error("{0:?} in ovn-bridge-mappings is not network:bridge")]
    BadMapping(String),
    /// A router that is pinned to another chassis.
    #[error("it is pinned to chassis {0}")]
    OtherChassis(Arc<str>),
    /// A router on this chassis that is no gateway router of a network.
    #[error("it is on this chassis and its name does not begin with GR_")]
    NoGatewayRouter,
    /// A router of a network whose role is not primary.
    #[error("its network has the role {0:?}, and only primary ones have a gateway of their own")]
    NotPrimary(Arc<str>),
    /// The router has no port `rtoe-<router>`.
    #[error("it has no external port {0}")]
    NoExternalPort(Arc<str>),
    /// No switch port leads to the router's external port.
    #[error("no switch port of type router leads to its external port {0}")]
    NoExternalSwitch(Arc<str>),
    /// The external switch has no localnet port.
    #[error("its external switch {0} has no localnet port")]
    NoLocalnetPort(Arc<str>),
    /// The external switch has several localnet ports.
    #[error("its external switch {0} has {1} localnet ports, and it is not known which is meant")]
    SeveralLocalnetPorts(Arc<str>, usize),
    /// The localnet port names no physical network.
    #[error("its localnet port {0} has no options:network_name")]
    NoNetworkName(Arc<str>),
    /// No bridge is mapped to the physical network.
    #[error("ovn-bridge-mappings has no bridge for the physical network {0}")]
    NotMapped(Arc<str>),
    /// The mapped bridge does not exist.
    #[error("the bridge {0} of ovn-bridge-mappings does not exist")]
    NoBridge(Arc<str>),
    /// The bridge has no patch port for the localnet port.
    #[error("bridge {bridge} has no patch port for the localnet port {localnet}")]
    NoPatchPort {
        /// The bridge.
        bridge: Arc<str>,
        /// The localnet port.
        localnet: Arc<str>,
    },
    /// The bridge has several ports for the localnet port.
    #[error("bridge {bridge} has {count} ports for the localnet port {localnet}")]
    SeveralPatchPorts {
        /// The bridge.
        bridge: Arc<str>,
        /// The localnet port.
        localnet: Arc<str>,
        /// How many.
        count: usize,
    },
    /// A port without an OpenFlow number (the column is empty or -1).
    #[error("port {0} has no OpenFlow number (yet)")]
    NoOfPort(Arc<str>),
    /// Another router uses the same patch port.
    #[error("router {0} uses the same patch port")]
    SharedPatchPort(Arc<str>),
    /// A second router without a network on one bridge.
    #[error("router {0} is the default network's gateway router on this bridge already")]
    SecondDefault(Arc<str>),
    /// The bridge's default gateway router is there and cannot be followed.
    #[error(
        "{0}, the default network's gateway router, is left out: without it nothing is steered"
    )]
    DefaultLeftOut(Arc<str>),
    /// A router whose VLAN is not the source's.
    #[error("it is in {}, and its bridge's source in {}", vlan_text(*own), vlan_text(*group))]
    OtherVlan {
        /// Its VLAN.
        own: Option<u16>,
        /// The source's VLAN.
        group: Option<u16>,
    },
    /// An address of a router port that cannot be read; the port's other addresses count.
    #[error("it has the address {0:?}, which cannot be read")]
    BadAddress(Arc<str>),
    /// A patch port for a localnet port that leads to no gateway router and is of no secondary
    /// localnet network.
    #[error(
        "it is the patch port of {0}, which belongs to no gateway router and no secondary localnet network"
    )]
    PatchPortWithoutRouter(Arc<str>),
    /// A secondary localnet network on a bridge other than the default network's.
    #[error("it is of a secondary localnet network, and bridge {0} is not the default network's")]
    SecondaryElsewhere(Arc<str>),
    /// The bridge has gateway routers and no uplink.
    #[error(
        "it has no uplink: name one in external_ids:bridge-uplink, or add one port of type system"
    )]
    NoUplink,
    /// `bridge-uplink` names a port that the bridge does not have.
    #[error("external_ids:bridge-uplink names {0}, which is no port of it")]
    UplinkMissing(Arc<str>),
    /// `bridge-uplink` names a port that leads to no network outside.
    #[error(
        "external_ids:bridge-uplink names {0}, which is a patch port or the bridge's own: it leads to no network outside"
    )]
    UplinkInside(Arc<str>),
    /// Several ports could be the uplink.
    #[error("its uplink is one of {0}: name it in external_ids:bridge-uplink")]
    SeveralUplinks(String),
    /// The uplink is a bond made by Open vSwitch.
    #[error("its uplink {0} is an Open vSwitch bond, whose members have numbers of their own")]
    BondedUplink(Arc<str>),
    /// On a DPU, a bridge without a host endpoint.
    #[error(transparent)]
    NoRepresentor(#[from] NoRepresentor),
    /// On a DPU, a bridge whose ports of type system are all taken for representors of the host.
    #[error(
        "it has no uplink beside {0}, which lead to the host: name the uplink in \
         external_ids:bridge-uplink, and look at --host-representor and at phys_port_name"
    )]
    OnlyRepresentors(String),
    /// On a DPU, one port for both ways.
    #[error(
        "{0} is its uplink (by external_ids:bridge-uplink, or by the bridge's name) and the host's \
         representor (by --host-representor): one of them is another port"
    )]
    UplinkIsRepresentor(Arc<str>),
    /// The bridge's address is not known.
    #[error("its Ethernet address is not known (yet)")]
    NoMac,
}

fn vlan_text(vlan: Option<u16>) -> String {
    vlan.map_or_else(|| "no VLAN".to_owned(), |vlan| format!("VLAN {vlan}"))
}
