mod frames;
mod reach;
mod rules;
mod translation;

use crate::{
    audit::{BridgeAudit, Finding, Observed, PortNames, audit},
    ids::OfPort,
    openflow::{
        PortDescription, parse_dump,
        unixctl::{FdbEntry, FdbPort},
    },
    plan::{BridgePlan, Gates, Install, plan},
    topology::{
        BridgeGroup,
        tests::{BRIDGE_MAC, Network, Node},
    },
};

/// A bridge with the uplink 1, the default network's router at 2, followers at 3 and 4, and what the
/// design wants of it.
pub(super) struct Bridge {
    pub(super) group: BridgeGroup,
    pub(super) plan: BridgePlan,
    pub(super) observed: Observed,
}

pub(super) fn ofport(number: u16) -> OfPort {
    OfPort::from_column(Some(number.into())).unwrap()
}

impl Bridge {
    /// As the agent leaves it on a bridge that nobody else fans out on.
    pub(super) fn steered() -> Self {
        Self::with(|_| {}, &[])
    }

    pub(super) fn with(change: impl Fn(&mut Network), secondary: &[u16]) -> Self {
        let secondary_numbers = secondary.iter().map(|it| i64::from(*it));
        let node = Node::with_two_followers(change, secondary_numbers);
        let rows = node.rows();
        let group = node.topology().group("breth0").unwrap().clone();
        let plan = plan(&group, Gates::new(true, true).unwrap(), Install::Complete);
        let mut observed = Observed {
            names: PortNames::of(&rows, "breth0"),
            ..Observed::default()
        };
        let ports = [1, 2, 3, 4].into_iter().chain(secondary.iter().copied());
        observed.ports = ports
            .map(|number| PortDescription {
                ofport: ofport(number),
                name: String::new(),
                no_flood: number == 3 || number == 4,
            })
            .collect();
        observed.fdb = vec![FdbEntry {
            port: FdbPort::Local,
            vlan: group.gateway_vlan.unwrap_or(0),
            mac: BRIDGE_MAC.parse().unwrap(),
            is_static: true,
        }];
        let mut bridge = Self {
            group,
            plan,
            observed,
        };
        let flows: Vec<String> = bridge.plan.flows.iter().map(ToString::to_string).collect();
        bridge.install(&flows.join("\n"));
        bridge
    }

    /// The flows that the agent adds beside a manager's.
    pub(super) fn overlay(&self) -> Vec<String> {
        let gates = Gates::new(true, true).unwrap();
        let overlay = plan(&self.group, gates, Install::Overlay);
        overlay.flows.iter().map(ToString::to_string).collect()
    }

    /// Leaves the steering flows alone.
    pub(super) fn keep_steering(&mut self) {
        let flows = &mut self.observed.flows;
        flows.retain(|it| crate::plan::is_steering(&it.flow));
    }

    /// Adds flows in the syntax of ovs-ofctl(8).
    pub(super) fn install(&mut self, flows: &str) {
        self.observed.flows.extend(parse_dump(flows).unwrap());
    }

    pub(super) fn audit(&self) -> BridgeAudit {
        audit(&self.group, &self.plan, &self.observed, Vec::new())
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.audit().findings
    }

    /// The findings as people read them.
    pub(super) fn texts(&self) -> Vec<String> {
        self.findings().iter().map(ToString::to_string).collect()
    }

    /// Priority and table of each flow that still fans out.
    pub(super) fn fan_outs(&self) -> Vec<(u8, u16)> {
        let findings = self.findings();
        let fan_outs = findings.iter().filter_map(|finding| match finding {
            Finding::FanOut(it) => Some((it.flow.table, it.flow.priority)),
            _ => None,
        });
        fan_outs.collect()
    }
}
