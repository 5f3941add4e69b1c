//! The flags that make a policy.

use std::net::IpAddr;

use neighsteer_common::Policy;

use crate::ids::Mac;

/// The flags of a policy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PolicyArgs {
    /// The MAC address that the gateway routers share with the bridge; without it, kinds are told
    /// and nothing is decided
    #[arg(long, value_name = "MAC", value_parser = parse_bridge_mac)]
    pub bridge_mac: Option<Mac>,
    /// The gateway VLAN ID, if the node has one
    #[arg(
        long,
        value_name = "ID",
        requires = "bridge_mac",
        value_parser = clap::value_parser!(u16).range(1..=4094)
    )]
    pub vlan: Option<u16>,
    /// An address of this node on the bridge's network: ARP and NDP that announce it from another
    /// MAC address are noted; one IPv4 address and two of IPv6
    #[arg(long, value_name = "IP", requires = "bridge_mac")]
    pub own_address: Vec<IpAddr>,
}

impl PolicyArgs {
    /// The policy that was asked for, if any.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.bridge_mac.map(|mac| Policy {
            bridge_mac: mac.0,
            gateway_vlan: self.vlan,
            node_addresses: self.own_address.iter().copied().collect(),
        })
    }
}

fn parse_bridge_mac(text: &str) -> Result<Mac, String> {
    let mac: Mac = text.parse().map_err(|error| format!("{error}"))?;
    if mac.is_multicast() || mac.is_zero() {
        return Err("a bridge has a unicast address".to_owned());
    }
    Ok(mac)
}
