//! Where the host is on a bridge: behind the bridge's own port, or on a DPU behind the representor of
//! one of its functions (OKEP-6691, "Generalizing for DPU mode").

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use serde::Serialize;

use super::{IngressPort, SkipReason, bridge::BridgeView, build::Member};
use crate::{
    ids::{Mac, OfPort},
    representor::Representors,
};

/// The port of a bridge that the host is behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEndpoint {
    /// The bridge's own port.
    #[default]
    Local,
    /// A representor. Nothing that comes by it is from outside the node: it is no external-ingress
    /// port.
    Representor {
        /// The interface.
        name: Arc<str>,
        /// Its number on the bridge.
        ofport: OfPort,
    },
}

impl HostEndpoint {
    /// The representor's name, where it is one.
    #[must_use]
    pub const fn representor(&self) -> Option<&Arc<str>> {
        match self {
            Self::Local => None,
            Self::Representor { name, .. } => Some(name),
        }
    }
}

/// What is known of the host, on its DPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dpu {
    /// Which interfaces lead to it.
    pub representors: Representors,
    /// The address that its Node object has for it (`k8s.ovn.org/primary-dpu-host-addr`); without one,
    /// the IPv4 addresses that OVN has.
    pub address: Option<Ipv4Addr>,
}

/// The half of a group that the host decides.
pub(super) struct HostSide {
    pub(super) endpoint: HostEndpoint,
    pub(super) bridge_mac: Mac,
    pub(super) uplink: IngressPort,
    /// Whether anything is done for IPv6: the gateway of a DPU has IPv4 only.
    pub(super) ipv6: bool,
}

impl HostSide {
    /// On a DPU the address that the gateway routers share is the host's, which the bridge's own port
    /// does not have: OVN knows it.
    pub(super) fn of(
        view: &BridgeView<'_>,
        source: &Member<'_>,
        dpu: Option<&Dpu>,
    ) -> Result<Self, SkipReason> {
        let Some(Dpu { representors, .. }) = dpu else {
            return Ok(Self {
                endpoint: HostEndpoint::Local,
                bridge_mac: view.mac()?,
                uplink: view.uplink(|_| false)?,
                ipv6: true,
            });
        };
        let is_default = source.router.network.is_none();
        let outside = view.outside_ports();
        let name = representors.host_of(&view.bridge.name, is_default, &outside)?;
        let IngressPort { name, ofport } = view.numbered(name)?;
        let mac = source.router.external_mac;
        let is_hosts = |mac: &Mac| !mac.is_zero() && !mac.is_multicast();
        let faces_host = |name: &str| representors.faces_host(name);
        let uplink = view.uplink(faces_host).map_err(|reason| {
            let taken = outside.iter().copied().filter(|name| faces_host(name));
            match reason {
                SkipReason::NoUplink => {
                    SkipReason::OnlyRepresentors(taken.collect::<Vec<_>>().join(", "))
                }
                reason => reason,
            }
        })?;
        if uplink.name == name {
            return Err(SkipReason::UplinkIsRepresentor(name));
        }
        Ok(Self {
            endpoint: HostEndpoint::Representor { name, ofport },
            bridge_mac: mac.filter(is_hosts).ok_or(SkipReason::NoMac)?,
            uplink,
            ipv6: false,
        })
    }
}

/// The node's addresses as a DPU has them, of those that OVN has.
pub(super) fn dpu_addresses(dpu: &Dpu, is_default: bool, ovn: Vec<IpAddr>) -> Vec<IpAddr> {
    match dpu.address.filter(|_| is_default) {
        Some(address) => vec![address.into()],
        None => ovn.into_iter().filter(IpAddr::is_ipv4).collect(),
    }
}
