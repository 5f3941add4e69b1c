//! The agent on the host of a DPU: it attaches and counts, and no more. It opens no database and has no
//! switch: flows and bindings are on the DPU.

use std::{collections::BTreeMap, fs, future::Future, io, sync::Arc};

use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    AgentError,
    attachments::Attachments,
    config::AgentConfig,
    control::{Call, Command, ControlSocket},
    lock::NodeLock,
    mode::{HostConfig, ModeError},
    status::AgentStatus,
};
use crate::datapath::netlink::{LinkTable, LinkWatch};
use neighsteer_common::{NodeAddresses, Policy};

/// The IPv4 routes of this network namespace.
const ROUTES: &str = "/proc/thread-self/net/route";
/// `RTF_UP`.
const UP: u32 = 1;
/// Commands of clients that may wait.
const CALLS: usize = 16;

/// Why it is not known which interface to look at.
#[derive(Debug, thiserror::Error)]
pub enum NoInterface {
    /// There is no default route.
    #[error(
        "no interface was named and there is no IPv4 default route: name the interface that leads to \
         the DPU by --host-interface"
    )]
    NoDefaultRoute,
    /// The routes cannot be read.
    #[error("cannot read {ROUTES}: name the interface that leads to the DPU by --host-interface")]
    Routes(#[source] io::Error),
}

/// The interfaces that lead to the DPU: those that were named, else that of the default route.
///
/// # Errors
/// Where none was named and there is no such route.
pub fn interfaces(config: &HostConfig) -> Result<Vec<Arc<str>>, NoInterface> {
    if !config.interfaces.is_empty() {
        return Ok(config.interfaces.clone());
    }
    let routes = fs::read_to_string(ROUTES).map_err(NoInterface::Routes)?;
    let interface = default_interface(&routes).ok_or(NoInterface::NoDefaultRoute)?;
    Ok(vec![interface.into()])
}

/// The interface of the default route with the lowest metric, in a text of `/proc/net/route`.
fn default_interface(routes: &str) -> Option<&str> {
    let default = |line| {
        let fields: Vec<&str> = str::split_whitespace(line).collect();
        let [interface, destination, _, flags, _, _, metric, mask, ..] = *fields else {
            return None;
        };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let is_default = destination == "00000000" && mask == "00000000" && flags & UP != 0;
        let metric: u32 = metric.parse().ok()?;
        is_default.then_some((metric, interface))
    };
    let defaults = routes.lines().skip(1).filter_map(default);
    defaults.min_by_key(|(metric, _)| *metric).map(|(_, it)| it)
}

/// Runs the agent there until `shutdown` is ready. Pins stay.
///
/// # Errors
/// Where it cannot start, or a task behind it has ended.
pub(super) async fn run(
    config: AgentConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let _lock = NodeLock::without_switch(&config.state_directory)?;
    let socket = ControlSocket::listen(&config.state_directory)?;
    let mut watch = LinkWatch::start().await?;
    let mut links = watch.table();
    let mut attachments = Attachments::new(&config);
    let host = &config.connection.host;
    attachments.want_only(present(&interfaces(host)?, &links));
    attachments.attach_first().await?;
    let (call_sender, mut calls) = mpsc::channel(CALLS);
    let control_task = tokio::spawn(socket.serve(call_sender));
    let mut check = interval(config.check_interval);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(shutdown);
    let result = loop {
        tokio::select! {
            biased;
            () = &mut shutdown => {
                tracing::info!("stopping; pins stay for the next start");
                break Ok(());
            }
            changed = watch.changed() => {
                if let Err(ended) = changed {
                    break Err(ended.into());
                }
                let now = watch.table();
                for (from, to) in super::host_side::LinkChanges::between(&links, &now).renamed {
                    attachments.renamed(&from, &to);
                }
                links = now;
                look(host, &links, &mut attachments);
            }
            outcome = attachments.finished() => attachments.note(outcome),
            call = calls.recv() => match call {
                Some(call) => answer(call, host, &attachments),
                None => break Err(AgentError::TaskEnded("the control socket's")),
            },
            _ = check.tick() => look(host, &links, &mut attachments),
        }
    };
    control_task.abort();
    result
}

/// Attaches to whatever is there (again). The default route may be another one meanwhile.
fn look(host: &HostConfig, links: &LinkTable, attachments: &mut Attachments) {
    match interfaces(host) {
        Ok(interfaces) => attachments.want_only(present(&interfaces, links)),
        // What is attached stays.
        Err(error) => tracing::debug!(%error, "no interface"),
    }
    attachments.check();
}

/// Those of the interfaces that are there, each with its own address for the gateway's: it is the one
/// that the gateway routers share.
fn present(interfaces: &[Arc<str>], links: &LinkTable) -> BTreeMap<Arc<str>, Policy> {
    let there = links
        .values()
        .filter(|link| interfaces.contains(&link.name));
    there
        .filter_map(|link| {
            let policy = Policy {
                bridge_mac: link.mac?.0,
                gateway_vlan: None,
                node_addresses: NodeAddresses::NONE,
            };
            Some((Arc::clone(&link.name), policy))
        })
        .collect()
}

fn answer(Call { command, answer }: Call, host: &HostConfig, attachments: &Attachments) {
    let result = match command {
        Command::Status => {
            let mut datapath = attachments.status();
            let wanted = interfaces(host).unwrap_or_default();
            datapath.extend(attachments.absent(&wanted));
            let status = AgentStatus::observing(host.mode, datapath);
            serde_json::to_value(status).map_err(|error| error.to_string())
        }
        Command::Nodes => Ok(serde_json::json!({})),
        Command::Pause | Command::Resume => Err(ModeError::NoDatabase.to_string()),
    };
    let value = result.unwrap_or_else(|error| serde_json::json!({ "error": error }));
    // A client that has gone away needs no answer.
    drop(answer.send(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{datapath::netlink::Link, ids::Mac};

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0
eth0\t00000000\t010011AC\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth2\t00000000\t010011AC\t0002\t0\t0\t0\t00000000\t0\t0\t0
eth3\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";

    #[test]
    fn the_default_route_that_is_up_and_cheapest_names_the_interface() {
        assert_eq!(default_interface(ROUTES), Some("eth0"));
        let head = ROUTES.lines().next().unwrap();
        for nothing in ["", head, "Iface\neth0\nx y z\n"] {
            assert_eq!(default_interface(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn an_interface_that_was_named_is_wanted_once_it_is_there_and_has_an_address() {
        let link = |name: &str, mac| Link {
            name: name.into(),
            mac,
        };
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let links = [
            (1, link("lo", None)),
            (2, link("eth0", Some(mac))),
            (3, link("eth1", Some(mac))),
        ]
        .into();
        let named: Vec<Arc<str>> = vec!["eth0".into(), "lo".into(), "later".into()];
        let present = present(&named, &links);
        assert_eq!(present.keys().map(|it| &**it).collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(present["eth0"].bridge_mac, mac.0);
    }
}
