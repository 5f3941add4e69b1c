//! What a Node object says.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use serde_json::Value;

use super::{
    Gateway, GatewayMode, Node, ObjectError, Problem,
    fields::{add_prefix, address, entries, mac, name, quoted, shorten, unreadable},
};
use crate::topology::Prefix;

const CHASSIS: &str = "k8s.ovn.org/node-chassis-id";
const GATEWAY: &str = "k8s.ovn.org/l3-gateway-config";
const DPU_HOST: &str = "k8s.ovn.org/primary-dpu-host-addr";
const ADDRESSES: &str = "status.addresses";
const INTERNAL_IP: &str = "an InternalIP in status.addresses";
const MAC: &str = "mac-address of k8s.ovn.org/l3-gateway-config";
const NETWORKS: &str = "ip-addresses of k8s.ovn.org/l3-gateway-config";
const MODE: &str = "mode of k8s.ovn.org/l3-gateway-config";

impl Node {
    /// Reads a Node as the API gives it (`kind` and `apiVersion` are not looked at, lists leave them
    /// out). What is wrong costs itself only.
    ///
    /// # Errors
    /// When it has no name.
    pub fn read(object: &Value) -> Result<(Arc<str>, Self), ObjectError> {
        let name = name(object)?;
        let mut problems = Vec::new();
        let internal_ips = internal_ips(object, &mut problems);
        let gateway = gateway(annotation(object, GATEWAY), &mut problems);
        let chassis = match annotation(object, CHASSIS) {
            Some(Value::String(chassis)) if !chassis.is_empty() => Some(Arc::from(&**chassis)),
            // Nothing demands one of a node without a gateway.
            None | Some(Value::String(_) | Value::Null) => {
                if gateway.is_ok() {
                    problems.push(Problem::Missing(CHASSIS));
                }
                None
            }
            Some(other) => {
                problems.push(unreadable(CHASSIS, format!("{} is no text", quoted(other))));
                None
            }
        };
        let dpu_host = dpu_host(annotation(object, DPU_HOST), &mut problems);
        let node = Self {
            chassis,
            internal_ips,
            gateway,
            dpu_host,
            problems,
        };
        Ok((name, node))
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.pointer("/metadata/annotations")?.get(key)
}

fn internal_ips(object: &Value, problems: &mut Vec<Problem>) -> BTreeSet<IpAddr> {
    let mut addresses = BTreeSet::new();
    let mut internal = 0_usize;
    for entry in entries(object.pointer("/status/addresses"), ADDRESSES, problems) {
        if entry.get("type").and_then(Value::as_str) != Some("InternalIP") {
            continue;
        }
        internal += 1;
        match address(entry.get("address")) {
            Ok(address) => drop(addresses.insert(address)),
            Err(problem) => problems.push(unreadable(ADDRESSES, problem)),
        }
    }
    if internal == 0 {
        problems.push(Problem::Missing(INTERNAL_IP));
    }
    addresses
}

/// `{"ipv4":"10.1.1.10/24"}`. Something else there is a problem, and nothing there is none: few nodes
/// have a DPU.
fn dpu_host(annotation: Option<&Value>, problems: &mut Vec<Problem>) -> Option<Prefix> {
    let text = match annotation {
        None | Some(Value::Null) => return None,
        Some(Value::String(text)) => text,
        Some(other) => {
            problems.push(unreadable(
                DPU_HOST,
                format!("{} is no text", quoted(other)),
            ));
            return None;
        }
    };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let text = shorten(text);
            let problem =
                format!("{text} is no JSON such as {{\"ipv4\":\"172.18.0.3/16\"}}: {error}");
            problems.push(unreadable(DPU_HOST, problem));
            return None;
        }
    };
    let mut prefixes = Vec::new();
    match value.get("ipv4") {
        None | Some(Value::Null) => {
            let problem = format!("{} has no ipv4", shorten(text));
            problems.push(unreadable(DPU_HOST, problem));
        }
        Some(entry) => add_prefix(entry, DPU_HOST, &mut prefixes, problems),
    }
    let prefix = prefixes.pop()?;
    if prefix.address.is_ipv6() {
        let problem = format!("{} is no IPv4 address", prefix.address);
        problems.push(unreadable(DPU_HOST, problem));
        return None;
    }
    Some(prefix)
}

/// The default network's gateway. All scalars of the annotation are texts; a configuration that is
/// not by network is the default network's.
fn gateway(annotation: Option<&Value>, problems: &mut Vec<Problem>) -> Result<Gateway, Problem> {
    let text = match annotation {
        None | Some(Value::Null) => return Err(Problem::Missing(GATEWAY)),
        Some(Value::String(text)) => text,
        Some(other) => {
            return Err(unreadable(GATEWAY, format!("{} is no text", quoted(other))));
        }
    };
    let config: Value = serde_json::from_str(text)
        .map_err(|error| unreadable(GATEWAY, format!("{} is no JSON: {error}", shorten(text))))?;
    let config = config.get("default").unwrap_or(&config);
    if !config.is_object() {
        let problem = format!("{} has no configuration", shorten(text));
        return Err(unreadable(GATEWAY, problem));
    }
    let mode = match config.get("mode") {
        None | Some(Value::Null) => return Err(Problem::GatewayDisabled),
        Some(Value::String(mode)) => match &**mode {
            "" => return Err(Problem::GatewayDisabled),
            "shared" => GatewayMode::Shared,
            "local" => GatewayMode::Local,
            other => {
                let problem = format!("{} is neither shared nor local", shorten(other));
                return Err(unreadable(MODE, problem));
            }
        },
        Some(other) => return Err(unreadable(MODE, format!("{} is no text", quoted(other)))),
    };
    let mac = mac(config.get("mac-address"), MAC)?;
    let mut networks = Vec::new();
    let several = entries(config.get("ip-addresses"), NETWORKS, problems);
    for entry in several {
        add_prefix(entry, NETWORKS, &mut networks, problems);
    }
    if several.is_empty() {
        // Written for one address only, and by older versions instead of the list.
        match config.get("ip-address") {
            None | Some(Value::Null) => problems.push(Problem::Missing(NETWORKS)),
            Some(entry) => add_prefix(entry, NETWORKS, &mut networks, problems),
        }
    }
    Ok(Gateway {
        mac,
        networks,
        mode,
    })
}
