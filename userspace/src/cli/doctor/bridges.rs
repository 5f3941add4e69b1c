//! The bridges that gateway routers share: what is behind each, and who steers.

use super::report::Report;
use crate::{
    agent::{Connection, NodeMode, chain, model::Model},
    audit,
    cli::agent::HookArg,
    openflow::{InstalledFlow, NativeSwitch, Switch as _},
    plan::{COOKIE, Gates, Install, SteeringMark, foreign_gate, manager_flows, plan},
    topology::{BridgeGroup, HostEndpoint},
};

pub(super) async fn check(
    report: &mut Report,
    model: &Model,
    connection: &Connection,
    steering: bool,
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
    let switch = NativeSwitch::new(&connection.ovs_run_directory);
    for group in &topology.groups {
        describe(report, group, connection.host.mode);
        let check = format!("steering on {}", group.bridge);
        match switch.dump_flows(&group.bridge, None).await {
            Ok(flows) => owner(report, &check, group, &flows, steering),
            Err(error) => report.error(
                &check,
                chain(&error),
                "look at ovs-vswitchd and at the bridge's management socket",
            ),
        }
    }
}

/// Whether frames of each bridge can be steered by mark, where that is wanted.
pub(super) fn marks(
    report: &mut Report,
    model: &Model,
    mark: Option<SteeringMark>,
    datapath: HookArg,
) {
    if mark.is_some() && !matches!(datapath, HookArg::Tc) {
        report.error(
            "steering by mark",
            "--match mark needs --datapath tc, which gives frames the mark",
            "use `--match header`, or `--datapath tc`",
        );
    }
    for group in &model.topology().groups {
        let check = format!("steering by mark on {}", group.bridge);
        match model.mark_for(group, mark) {
            Ok(None) => {}
            Ok(Some(mark)) => report.ok(check, format!("possible: {mark}")),
            Err(reason) => report.error(check, reason, "use `--match header`"),
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
    steering: bool,
) {
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
            "nothing before the agent has started; then look at `neighsteer status`",
        );
    } else if ours > 0 && !steering {
        report.warn(
            check,
            format!("{ours} flows of ours, and the gate is off{manager}"),
            "start the agent, which takes them off, or run `neighsteer cleanup`",
        );
    } else {
        report.ok(check, format!("{ours} flows of ours{manager}"));
    }
}
