//! The rules of the design, one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{FanOut, Finding, Lookups, Observed, TrafficKind, region::Region};
use crate::{
    ids::OfPort,
    openflow::{
        Action, Flow, FlowKey, Port, Protocol,
        unixctl::{FdbEntry, FdbPort},
    },
    plan::{BridgePlan, COOKIE, StaticFdb, is_steering},
    topology::{BridgeGroup, GatewayRouter},
};

/// Flows of the plan that are not installed, and steering flows that do something else. Whose an
/// installed flow is does not matter: a manager may well ship the design itself.
pub(super) fn flows(group: &BridgeGroup, plan: &BridgePlan, observed: &Observed) -> Vec<Finding> {
    let installed = observed.flows.iter().map(|it| (it.flow.key(), &it.flow));
    let installed: BTreeMap<FlowKey, &Flow> = installed.collect();
    let mut findings = Vec::new();
    let mut wanted_keys = BTreeSet::new();
    for wanted in &plan.flows {
        let key = wanted.key();
        match installed.get(&key) {
            None => findings.push(Finding::MissingFlow {
                flow: wanted.clone(),
            }),
            Some(there) if there.actions == wanted.actions => {}
            Some(there) if is_steering(wanted) => {
                findings.push(wrong_source(group, there, observed));
            }
            Some(there) => findings.push(Finding::OtherActions {
                flow: (*there).clone(),
                wanted: wanted.actions_text(),
            }),
        }
        wanted_keys.insert(key);
    }
    for (key, flow) in &installed {
        if !is_steering(flow) || wanted_keys.contains(key) {
            continue;
        }
        let elsewhere = outputs(flow).any(|port| {
            let number = match port {
                Port::Number(number) => number,
                Port::Local => return false,
            };
            number != group.source.ofport && observed.names.patches().contains(&number)
        });
        if elsewhere {
            findings.push(wrong_source(group, flow, observed));
        } else if flow.cookie == COOKIE {
            findings.push(Finding::StrayFlow {
                flow: (*flow).clone(),
            });
        }
    }
    findings
}

fn outputs(flow: &Flow) -> impl Iterator<Item = Port> {
    flow.actions.iter().filter_map(|action| match action {
        Action::Output(port) => Some(*port),
        _ => None,
    })
}

fn wrong_source(group: &BridgeGroup, flow: &Flow, observed: &Observed) -> Finding {
    let names = flow.actions.iter().map(|action| match action {
        Action::Output(port) => observed.names.name(*port),
        other => other.to_string().into(),
    });
    Finding::WrongSource {
        flow: flow.clone(),
        outputs: names.collect(),
        source: Arc::clone(&group.source.patch_port),
    }
}

/// No-flood is on every follower's port, and neither on the source's nor on a secondary network's.
pub(super) fn flood_flags(group: &BridgeGroup, observed: &Observed) -> Vec<Finding> {
    let ports = observed.ports.iter().map(|it| (it.ofport, it.no_flood));
    let flags: BTreeMap<OfPort, bool> = ports.collect();
    let missing = |port: &Arc<str>, ofport| Finding::PortMissing {
        port: Arc::clone(port),
        ofport,
    };
    let of_router = |router: &GatewayRouter| {
        (
            Arc::clone(&router.name),
            Arc::clone(&router.patch_port),
            router.ofport,
        )
    };
    let mut findings = Vec::new();
    let (router, port, ofport) = of_router(&group.source);
    match flags.get(&ofport) {
        Some(false) => {}
        Some(true) => findings.push(Finding::SourceNoFlood {
            router,
            port,
            ofport,
        }),
        None => findings.push(missing(&port, ofport)),
    }
    for follower in &group.followers {
        let (router, port, ofport) = of_router(follower);
        match flags.get(&ofport) {
            Some(true) => {}
            Some(false) => findings.push(Finding::FollowerFloods {
                router,
                port,
                ofport,
            }),
            None => findings.push(missing(&port, ofport)),
        }
    }
    for ingress in group.ingress_ports() {
        let is_uplink = ingress.ofport == group.uplink.ofport;
        match flags.get(&ingress.ofport) {
            Some(true) if !is_uplink => findings.push(Finding::SecondaryNoFlood {
                port: Arc::clone(&ingress.name),
                ofport: ingress.ofport,
            }),
            Some(_) => {}
            None => findings.push(missing(&ingress.name, ingress.ofport)),
        }
    }
    findings
}

/// The static entry is there and leads where the plan says.
pub(super) fn forwarding_entry(wanted: &StaticFdb, observed: &Observed) -> Option<Finding> {
    let names = &observed.names;
    let is_about =
        |entry: &&FdbEntry| entry.is_static && (entry.vlan, entry.mac) == (wanted.vlan, wanted.mac);
    let StaticFdb {
        port, vlan, mac, ..
    } = wanted;
    let (mac, vlan, port) = (*mac, *vlan, Arc::clone(port));
    let Some(entry) = observed.fdb.iter().find(is_about) else {
        return Some(Finding::FdbMissing { mac, vlan, port });
    };
    let leads_to = match entry.port {
        FdbPort::Local => Some(Port::Local),
        FdbPort::Number(number) => Some(Port::Number(number)),
        FdbPort::Other => None,
    };
    if leads_to.is_some() && leads_to == names.port(&port) {
        return None;
    }
    let leads_to = leads_to.map_or_else(|| "a port that is gone".into(), |it| names.name(it));
    Some(Finding::FdbElsewhere {
        mac,
        vlan,
        port,
        leads_to,
    })
}

/// Every router of the group has the bridge's address. One that cannot be read is no finding: the
/// router port's row says nothing of it.
pub(super) fn addresses(group: &BridgeGroup) -> Vec<Finding> {
    let routers = std::iter::once(&group.source).chain(&group.followers);
    routers
        .filter_map(|router| {
            let mac = router.external_mac?;
            (mac != group.bridge_mac).then(|| Finding::MacDiffers {
                router: Arc::clone(&router.name),
                port: Arc::clone(&router.external_port),
                mac,
                bridge_mac: group.bridge_mac,
            })
        })
        .collect()
}

/// Steering flows that are installed and do nothing, since one flow above takes all that they would.
/// One that fans out is a finding already.
pub(super) fn shadowed(
    plan: &BridgePlan,
    observed: &Observed,
    fan_outs: &[FanOut],
) -> Vec<Finding> {
    let flows = || observed.flows.iter().map(|it| &it.flow);
    let mut findings = Vec::new();
    for wanted in plan.flows.iter().filter(|flow| is_steering(flow)) {
        let mut installed = flows().filter(|it| is_steering(it) && it.matches == wanted.matches);
        let Some(flow) = installed.next() else {
            continue;
        };
        let region = Region {
            fields: flow.matches.clone(),
            multicast: false,
        };
        let mut above = flows().filter(|it| {
            (it.table == 0 && it.priority > flow.priority)
                && region.is_covered_by(&it.matches)
                && !fan_outs.iter().any(|fan_out| fan_out.flow == **it)
        });
        findings.extend(above.next().map(|by| Finding::Shadowed {
            flow: flow.clone(),
            by: by.clone(),
        }));
    }
    findings
}

/// Each of the measured frames is seen by the source and by no other router: whatever the flows look
/// like, this is what they come to. Where another finding says why not, that is enough.
pub(super) fn receivers(lookups: &[Lookups], findings: &[Finding]) -> Vec<Finding> {
    let explains = |finding: &Finding, frame| match finding {
        Finding::MissingFlow { flow } => is_steering(flow),
        Finding::FanOut(fan_out) => fan_out.traffic.contains(&frame),
        Finding::Shadowed { flow, .. } => match frame {
            TrafficKind::UnicastArp => flow.matches.protocol == Some(Protocol::Arp),
            TrafficKind::UnicastNa => flow.matches.icmpv6_type == Some(136),
            _ => false,
        },
        Finding::WrongSource { .. }
        | Finding::FollowerFloods { .. }
        | Finding::SourceNoFlood { .. }
        | Finding::PortMissing { .. }
        // `NORMAL` floods, or follows an entry that it learned from a follower.
        | Finding::FdbMissing { .. }
        | Finding::FdbElsewhere { .. } => true,
        _ => false,
    };
    lookups
        .iter()
        .filter(|it| !it.over_limit && (!it.source || it.routers > 1))
        .filter(|it| !findings.iter().any(|finding| explains(finding, it.frame)))
        .map(|it| Finding::WrongReceivers {
            frame: it.frame,
            source: it.source,
            followers: it.routers.saturating_sub(it.source.into()),
        })
        .collect()
}
