//! What ovs-ofctl prints.

use std::{path::Path, process::Output};

use super::{PortDescription, SwitchError};
use crate::ids::OfPort;

/// Turns a failed run into an error, named with the flow where the bridge names one.
pub(super) fn explain(
    bridge: &str,
    operation: &'static str,
    socket: &Path,
    output: &Output,
) -> SwitchError {
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let bridge = bridge.to_owned();
    if message.contains("(Connection refused)") {
        return SwitchError::Refused {
            bridge,
            socket: socket.to_owned(),
        };
    }
    if let Some((error, flow)) = message.lines().find_map(rejected_flow) {
        return SwitchError::Rejected {
            bridge,
            flow: flow.to_owned(),
            error: error.to_owned(),
        };
    }
    SwitchError::Failed {
        bridge,
        operation,
        message,
        status: output.status,
    }
}

/// The error and the flow of `Error OFPBAC_X for: OFPT_FLOW_MOD (OF1.3) (xid=0x7): ADD …`.
fn rejected_flow(line: &str) -> Option<(&str, &str)> {
    let (error, request) = line.strip_prefix("Error ")?.split_once(" for: ")?;
    let flow = request.strip_prefix("OFPT_FLOW_MOD")?;
    let flow = flow.split_once("): ").map_or(flow, |(_, after)| after);
    let flow = flow.rsplit_once("): ").map_or(flow, |(_, after)| after);
    Some((error, flow))
}

/// Reads `dump-ports-desc`: a line ` 5(patch-x): addr:…` a port, its flags on the next lines. LOCAL
/// has no number and is left out.
pub(super) fn ports(text: &str) -> Vec<PortDescription> {
    let mut ports: Vec<PortDescription> = Vec::new();
    let mut in_port = false;
    for line in text.lines() {
        if let Some(flags) = line.trim_start().strip_prefix("config:") {
            if let (true, Some(port)) = (in_port, ports.last_mut()) {
                port.no_flood = flags.split_whitespace().any(|flag| flag == "NO_FLOOD");
            }
        } else if let Some((head, _)) = line.split_once("): addr:") {
            let port = port_of_heading(head);
            in_port = port.is_some();
            ports.extend(port);
        }
    }
    ports.sort_by_key(|port| port.ofport);
    ports
}

fn port_of_heading(head: &str) -> Option<PortDescription> {
    let (number, name) = head.trim_start().split_once('(')?;
    Some(PortDescription {
        ofport: OfPort::from_column(number.parse().ok())?,
        name: name.to_owned(),
        no_flood: false,
    })
}
