//! The bridges that gateway routers share: what is behind each, and who steers.

use super::report::Report;
use crate::{
    agent::{
        AgentConfig, Connection, NodeMode, chain,
        marking::{Marks, drops_in_vain},
        model::Model,
    },
    audit,
    openflow::{InstalledFlow, NativeSwitch, Switch as _},
    plan::{COOKIE, Gates, Install, foreign_gate, manager_flows, plan},
    topology::{BridgeGroup, HostEndpoint},
};

/// What bridges should be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Whether they are to be steered now.
    pub(super) steering: bool,
    /// Whether an agent runs.
    pub(super) is_running: bool,
    /// Which flows there are.
    pub(super) install: Install,
}

pub(super) async fn check(
    report: &mut Report,
    model: &Model,
    connection: &Connection,
    asked: Asked,
) {
    let topology = model.topology();
    for left_out in audit::left_out(topology, model.rows()) {
        let check = format!("bridge {}", left_out.bridge);
        for finding in &left_out.findings {
            let advice = "the reason says; `neighsteer topology` shows all that was left out";
            report.error(&check, finding, advice);
        }
    }
    if topology.groups.is_empty() && !report.has_errors() {
        report.error(
            "bridges",
            "no gateway routers of this node share a bridge",
            "`neighsteer topology` says what was left out",
        );
    }
    for bridge in model.unknown_bridges() {
        report.error(
            format!("bridge {bridge}"),
            "a representor is named for it, and it is not there",
            "correct --host-representor",
        );
    }
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    for group in &topology.groups {
        describe(report, group, connection.host.mode);
        let check = format!("steering on {}", group.bridge);
        match switch.dump_flows(&group.bridge, None).await {
            Ok(flows) => owner(report, &check, group, &flows, asked),
            Err(error) => report.error(
                &check,
                chain(&error),
                "look at ovs-vswitchd and at the bridge's management socket",
            ),
        }
    }
}

/// What tc cannot do for a bridge, of what is wanted.
pub(super) fn tc(report: &mut Report, model: &Model, config: &AgentConfig) {
    for group in &model.topology().groups {
        let check = format!("steering by mark on {}", group.bridge);
        match Marks::of(config, false).of_group(model, group) {
            Ok(None) => {}
            Ok(Some(mark)) => report.ok(check, format!("possible: {mark}")),
            Err(reason) => report.error(check, reason, "use `--match header`"),
        }
        if let Some(reason) = drops_in_vain(group, config) {
            let check = format!("dropping on {}", group.bridge);
            report.error(check, reason, "use --datapath xdp, or --validate count");
        }
    }
}

fn describe(report: &mut Report, group: &BridgeGroup, mode: NodeMode) {
    let host = match &group.host {
        HostEndpoint::Local => "its own port".to_owned(),
        HostEndpoint::Representor { name, ofport } => format!("representor {name} (port {ofport})"),
    };
    report.ok(
        format!("bridge {}", group.bridge),
        format!(
            "uplink {}, host behind {host}, address {}, source {}, {} followers",
            group.uplink.name,
            group.bridge_mac,
            group.source.name,
            group.followers.len()
        ),
    );
    let interfaces = std::iter::once(&group.uplink.name).chain(group.host.representor());
    for interface in interfaces {
        if nix::net::if_::if_nametoindex(&**interface).is_err() {
            report.warn(
                format!("bridge {}", group.bridge),
                format!("there is no interface {interface} in this network namespace: no program can be attached to it"),
                "bring it back, or run this where Open vSwitch has its interfaces",
            );
        }
    }
    if !group.ipv4 && mode == NodeMode::Dpu {
        report.error(
            format!("bridge {}", group.bridge),
            "its gateway has no IPv4 address: nothing is steered on it in mode dpu",
            "give the node an IPv4 address on its network",
        );
    }
}

/// Who steers on the bridge, of what is installed.
pub(super) fn owner(
    report: &mut Report,
    check: &str,
    group: &BridgeGroup,
    flows: &[InstalledFlow],
    asked: Asked,
) {
    let steering = asked.steering;
    let Ok(gates) = Gates::new(true, true) else {
        return;
    };
    let wanted = plan(group, gates, Install::Overlay);
    let foreign = foreign_gate(&wanted, flows).len();
    let ours = flows.iter().filter(|it| it.flow.cookie == COOKIE).count();
    let manager = match manager_flows(flows) {
        Some(flows) => format!("; OVN-Kubernetes manages the bridge ({flows})"),
        None => String::new(),
    };
    if foreign > 0 && steering {
        report.warn(
            check,
            format!("{foreign} flows of somebody else stand where ours would{manager}"),
            "turn the gate off here or there: the agent stands down beside them",
        );
    } else if foreign > 0 {
        let found = format!("{foreign} flows of somebody else steer{manager}");
        report.ok(check, found);
    } else if ours == 0 && steering {
        report.warn(
            check,
            format!("no flow of ours{manager}"),
            match asked.is_running {
                true => "look at `neighsteer status` and at the agent's log",
                false => "start the agent; then look at `neighsteer status`",
            },
        );
    } else if ours > 0 && !steering && asked.install == Install::Overlay {
        report.warn(
            check,
            format!("{ours} flows of ours, and the gate is off or paused{manager}"),
            match asked.is_running {
                true => "with `--flows complete` these are today's flows: ask with it, too; else look at `neighsteer status`",
                false => "start the agent, which takes them off, or run `neighsteer cleanup`",
            },
        );
    } else {
        report.ok(check, format!("{ours} flows of ours{manager}"));
    }
}
