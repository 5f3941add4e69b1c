//! What Kubernetes says about the cluster's nodes: their addresses and their shared MACs. Pure:
//! objects in, inventory out.
//!
//! A node that is wrong in some way keeps its place with what is right about it, so that whoever plans
//! can tell "says nothing that can be used" from "is not there".

mod fields;
pub mod manifest;
mod node;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
mod uplink;

pub use fields::ObjectError;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use crate::{ids::Mac, topology::Prefix};

/// The nodes and uplinks of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// By the node's name.
    pub nodes: BTreeMap<Arc<str>, Node>,
    /// By the object's name, which means nothing else (OKEP-6019: identity is in `spec`).
    pub uplinks: BTreeMap<Arc<str>, UplinkState>,
}

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The annotation `k8s.ovn.org/node-chassis-id`: Open_vSwitch's `external_ids:system-id` there.
    pub chassis: Option<Arc<str>>,
    /// `status.addresses` of type `InternalIP`.
    pub internal_ips: BTreeSet<IpAddr>,
    /// The default network's gateway, from the annotation `k8s.ovn.org/l3-gateway-config`.
    pub gateway: Result<Gateway, Problem>,
    /// The host's address, where its gateway is on a DPU: the annotation
    /// `k8s.ovn.org/primary-dpu-host-addr`, whose IPv6 half has no meaning yet.
    pub dpu_host: Option<Prefix>,
    /// What else is wrong with it, and was left out.
    pub problems: Vec<Problem>,
}

/// A node's gateway of the default network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The MAC that the host and every gateway router of the node share.
    pub mac: Mac,
    /// The node's addresses on the external network, with its prefix lengths.
    pub networks: Vec<Prefix>,
    /// How traffic leaves the node.
    pub mode: GatewayMode,
}

/// `mode` of the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayMode {
    /// `shared`.
    Shared,
    /// `local`.
    Local,
}

/// An UplinkState (`k8s.ovn.org/v1alpha1`): an uplink as one node has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkState {
    /// `spec.uplinkName`.
    pub uplink: Arc<str>,
    /// `spec.nodeName`.
    pub node: Arc<str>,
    /// `status.ovsBridge.name`, once it is known.
    pub bridge: Option<Arc<str>>,
    /// `status.macAddress`.
    pub mac: Result<Mac, Problem>,
    /// `status.ipAddresses`.
    pub addresses: Vec<Prefix>,
    /// What else is wrong with it, and was left out.
    pub problems: Vec<Problem>,
}

/// What cannot be used of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// An annotation or field that is not there (yet).
    #[error("{0} is not there")]
    Missing(&'static str),
    /// `mode` is empty: the node has no gateway.
    #[error("its gateway is disabled")]
    GatewayDisabled,
    /// Something that cannot be read.
    #[error("{what} cannot be read: {problem}")]
    Unreadable {
        /// The annotation or field.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A MAC that no node can have.
    #[error("{0} is no MAC of a node")]
    UnusableMac(Mac),
}
