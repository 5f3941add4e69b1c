//! Bridges of every kind with the flows of the design on them.

use std::{collections::BTreeMap, sync::Arc};

use neighsteer::{
    ids::OfPort,
    openflow::{
        Cookie, NativeSwitch, Switch as _,
        unixctl::{UnixCtl, UnixCtlSession},
    },
    plan::{self, BridgePlan, Gates, Install, SteeringMark},
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, HostEndpoint, IngressPort},
};
use neighsteer_tests::{
    dummy_switch::DummySwitch,
    frames::{BRIDGE_MAC, NODE_IP, NODE_IP6, hex},
    lab::Trace,
};

use crate::manager;

pub const GATEWAY_VLAN: u16 = 5;
/// The most secondary localnet ports that a default group has here.
const SECONDARY: u16 = 3;

/// What is installed on a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flows {
    /// The whole design, on a bridge that had no flow.
    Complete,
    /// Our flows over those that OVN-Kubernetes has today.
    Overlay,
    /// OVN-Kubernetes' flows of today alone.
    Today,
    /// The same by our plan: complete, with the gate off.
    GateOff,
}

/// One bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    pub flows: Flows,
    /// By which the uplink is steered; `None` = by headers.
    pub mark: Option<SteeringMark>,
    pub group: BridgeGroup,
}

/// How often each port gets a frame, by name; the bridge's own name is LOCAL.
pub type Receivers = BTreeMap<Arc<str>, usize>;

fn ofport(number: u16) -> OfPort {
    OfPort::from_column(Some(number.into())).unwrap()
}

fn ingress(bridge: &str, name: &str, number: u16) -> IngressPort {
    IngressPort {
        name: format!("{bridge}_{name}").into(),
        ofport: ofport(number),
    }
}

fn router(bridge: &str, network: Option<&str>, number: u16) -> GatewayRouter {
    let name = network.unwrap_or("default");
    GatewayRouter {
        name: format!("GR_{name}").into(),
        network: network.map(Arc::from),
        external_port: format!("rtoe-GR_{name}").into(),
        external_mac: Some(BRIDGE_MAC),
        datapath: None,
        patch_port: format!("{bridge}_{name}").into(),
        ofport: ofport(number),
        mac_binding_age_threshold: AgeThreshold::default(),
    }
}

impl Bridge {
    fn new(bridge: &str, flows: Flows, source: Option<&str>, vlan: bool, secondary: u16) -> Self {
        let secondary = 0..secondary;
        let group = BridgeGroup {
            bridge: bridge.into(),
            bridge_mac: BRIDGE_MAC,
            datapath_type: "dummy".into(),
            host: HostEndpoint::Local,
            uplink: ingress(bridge, "uplink", 1),
            secondary: secondary
                .map(|index| ingress(bridge, &format!("localnet{index}"), 7 + index))
                .collect(),
            source: router(bridge, source, 2),
            followers: [("blue", 3), ("green", 4)]
                .map(|(network, number)| router(bridge, Some(network), number))
                .to_vec(),
            gateway_vlan: vlan.then_some(GATEWAY_VLAN),
            ipv4: true,
            ipv6: true,
            node_addresses: vec![NODE_IP.into(), NODE_IP6.into()],
        };
        Self {
            flows,
            mark: None,
            group,
        }
    }

    /// The same bridge under another name, steered by mark.
    pub fn by_mark(&self, mark: SteeringMark) -> Self {
        let name = format!("m{}", self.name());
        let group = &self.group;
        let source = group.source.network.as_deref();
        let secondary = u16::try_from(group.secondary.len()).unwrap();
        let vlan = group.gateway_vlan.is_some();
        Self {
            mark: Some(mark),
            ..Self::new(&name, self.flows, source, vlan, secondary)
        }
    }

    pub fn name(&self) -> &str {
        &self.group.bridge
    }

    /// Every port that the frames of these tests can leave by, with its number; LOCAL aside.
    fn ports(&self) -> Vec<(Arc<str>, OfPort)> {
        let group = &self.group;
        let routers = std::iter::once(&group.source).chain(&group.followers);
        let patches = routers.map(|it| (Arc::clone(&it.patch_port), it.ofport));
        let ingress = group.ingress_ports();
        ingress
            .map(|it| (Arc::clone(&it.name), it.ofport))
            .chain(patches)
            .collect()
    }

    /// How often the followers together get a frame.
    pub fn copies_to_followers(&self, receivers: &Receivers) -> usize {
        let followers = self.group.followers.iter();
        followers
            .filter_map(|it| receivers.get(&it.patch_port))
            .sum()
    }

    /// Source, host, uplink and secondary ports once each, but for the port that a frame came in by.
    pub fn everybody_but_followers(&self, came_in_by: OfPort) -> Receivers {
        let followers: Vec<OfPort> = self.group.followers.iter().map(|it| it.ofport).collect();
        let others = self
            .ports()
            .into_iter()
            .filter(|(_, ofport)| *ofport != came_in_by && !followers.contains(ofport));
        let local = (Arc::clone(&self.group.bridge), 1);
        others.map(|(name, _)| (name, 1)).chain([local]).collect()
    }

    /// Source and host once each.
    pub fn source_and_host(&self) -> Receivers {
        let source = Arc::clone(&self.group.source.patch_port);
        [(source, 1), (Arc::clone(&self.group.bridge), 1)].into()
    }

    fn plan(&self) -> Option<BridgePlan> {
        let on = Gates::new(true, true).unwrap();
        let (gates, install) = match self.flows {
            Flows::Complete => (on, Install::Complete),
            Flows::Overlay => (on, Install::Overlay),
            Flows::GateOff => (Gates::default(), Install::Complete),
            Flows::Today => return None,
        };
        let plan = plan::plan(&self.group, gates, install);
        Some(match self.mark {
            Some(mark) => plan.by_mark(&self.group, mark),
            None => plan,
        })
    }
}

/// The default network's bridge with 0 to 3 secondary localnet ports and an uplink's own, each with
/// and without a gateway VLAN.
pub fn every_kind(flows: Flows) -> Vec<Bridge> {
    let set = match flows {
        Flows::Complete => "all",
        Flows::Overlay => "over",
        Flows::Today => "old",
        Flows::GateOff => "off",
    };
    let mut bridges = Vec::new();
    for (vlan, suffix) in [(false, ""), (true, "v")] {
        for secondary in 0..=SECONDARY {
            let name = format!("{set}{secondary}{suffix}");
            bridges.push(Bridge::new(&name, flows, None, vlan, secondary));
        }
        let name = format!("{set}up{suffix}");
        bridges.push(Bridge::new(&name, flows, Some("amber"), vlan, 0));
    }
    bridges
}

/// Every kind of bridge with our flows, installed in both ways.
pub fn ours() -> Vec<Bridge> {
    [Flows::Complete, Flows::Overlay].map(every_kind).concat()
}

/// A switch with bridges, and a connection for traces.
pub struct Lab {
    pub bridges: Vec<Bridge>,
    switch: DummySwitch,
    session: UnixCtlSession,
}

impl Lab {
    /// `None` where Open vSwitch is not installed.
    pub async fn start(bridges: Vec<Bridge>) -> Option<Self> {
        let switch = DummySwitch::start_or_skip().unwrap()?;
        let control = UnixCtl::of_vswitchd(switch.run_directory()).unwrap();
        let session = control.connect().await.unwrap();
        let mut lab = Self {
            bridges,
            switch,
            session,
        };
        for bridge in lab.bridges.clone() {
            lab.make(&bridge).await;
        }
        Some(lab)
    }

    async fn make(&mut self, bridge: &Bridge) {
        let name = bridge.name();
        self.switch
            .add_bridge(name, &BRIDGE_MAC.to_string())
            .unwrap();
        let ports = bridge.ports();
        let ports: Vec<(&str, u16)> = ports.iter().map(|it| (&*it.0, it.1.get())).collect();
        self.switch.add_ports(name, &ports).unwrap();
        if let Some(vlan) = bridge.group.gateway_vlan {
            let tag = format!("tag={vlan}");
            self.switch.vsctl(&["set", "port", name, &tag]).unwrap();
        }
        // No catch-all of the bridge's own.
        self.switch.ofctl(&["del-flows"], name, &[]).unwrap();
        if matches!(bridge.flows, Flows::Overlay | Flows::Today) {
            self.put_todays_flows(bridge).await;
        }
        if let Some(plan) = bridge.plan() {
            self.carry_out(&plan).await;
        }
    }

    async fn put_todays_flows(&mut self, bridge: &Bridge) {
        let name = bridge.name();
        // ovs-ofctl and not our own client, which writes no conntrack action.
        let file = self.switch.run_directory().join(format!("{name}.flows"));
        std::fs::write(&file, manager::flows(&bridge.group).join("\n")).unwrap();
        let file = file.to_str().unwrap();
        self.switch
            .ofctl(&["-O", "OpenFlow13", "add-flows"], name, &[file])
            .unwrap();
        for port in manager::no_flood_ports(&bridge.group) {
            self.switch
                .ofctl(&["mod-port"], name, &[&port.to_string(), "no-flood"])
                .unwrap();
        }
        self.session
            .fdb_add(
                name,
                name,
                bridge.group.gateway_vlan.unwrap_or(0),
                BRIDGE_MAC,
            )
            .await
            .unwrap();
    }

    /// What the agent does, by the same client.
    async fn carry_out(&mut self, plan: &BridgePlan) {
        let native = NativeSwitch::new(self.switch.run_directory());
        let installed = native.dump_flows(&plan.bridge, None).await.unwrap();
        assert_eq!(plan::foreign_gate(plan, &installed), Vec::<String>::new());
        let changes = plan::diff(&plan.flows, &installed);
        native.change_flows(&plan.bridge, &changes).await.unwrap();
        let ports = native.ports(&plan.bridge).await.unwrap();
        let flags = plan::port_changes(plan, &ports);
        native
            .set_no_flood(&plan.bridge, &flags.no_flood)
            .await
            .unwrap();
        let entries = self.session.fdb_show(&plan.bridge).await.unwrap();
        if let Some(fdb) = plan.missing_fdb(&entries) {
            self.session
                .fdb_add(&plan.bridge, &fdb.port, fdb.vlan, fdb.mac)
                .await
                .unwrap();
        }
        let installed = native.dump_flows(&plan.bridge, None).await.unwrap();
        let changes = plan::diff(&plan.flows, &installed);
        assert!(
            changes.is_empty() && changes.foreign.is_empty(),
            "{changes:?}"
        );
        let foreign = installed
            .iter()
            .any(|it| it.flow.cookie == Cookie(0xdef_f105));
        assert_eq!(plan::manager_flows(&installed).is_some(), foreign);
    }

    /// A frame's way through a bridge, and who gets it.
    pub async fn trace(
        &mut self,
        bridge: &Bridge,
        in_port: OfPort,
        frame: &[u8],
    ) -> (Trace, Receivers) {
        let in_port = format!("in_port={in_port}");
        self.trace_flow(bridge, &in_port, frame).await
    }

    /// The same of a frame that comes in by the uplink with the bridge's mark.
    pub async fn trace_marked(&mut self, bridge: &Bridge, frame: &[u8]) -> (Trace, Receivers) {
        let (uplink, mark) = (bridge.group.uplink.ofport, bridge.mark.unwrap());
        let flow = format!("in_port={uplink},pkt_mark={mark}");
        self.trace_flow(bridge, &flow, frame).await
    }

    async fn trace_flow(
        &mut self,
        bridge: &Bridge,
        flow: &str,
        frame: &[u8],
    ) -> (Trace, Receivers) {
        let arguments = ["--names", bridge.name(), flow, &hex(frame)];
        let text = self
            .session
            .call("ofproto/trace", &arguments)
            .await
            .unwrap();
        let receivers = receivers(bridge, &text);
        (Trace::parse(bridge.name(), text), receivers)
    }

    /// Lets a frame come in by a port, as from the wire.
    pub async fn receive(&mut self, port: &str, frame: &[u8]) {
        self.session
            .call("netdev-dummy/receive", &[port, &hex(frame)])
            .await
            .unwrap();
    }

    /// Forgets what was learned; static entries stay.
    pub async fn forget(&mut self, bridge: &Bridge) {
        let flushed = self.session.call("fdb/flush", &[bridge.name()]).await;
        flushed.unwrap();
    }

    pub async fn fdb(&mut self, bridge: &Bridge) -> Vec<neighsteer::openflow::unixctl::FdbEntry> {
        self.session.fdb_show(bridge.name()).await.unwrap()
    }
}

/// The ports among the datapath's actions. Arguments of other actions are in parentheses.
fn receivers(bridge: &Bridge, text: &str) -> Receivers {
    let mut known: Receivers = bridge
        .ports()
        .into_iter()
        .map(|(name, _)| (name, 0))
        .collect();
    known.insert(Arc::clone(&bridge.group.bridge), 0);
    let lines = text.lines();
    for actions in lines.filter_map(|line| line.trim().strip_prefix("Datapath actions: ")) {
        let mut depth = 0_usize;
        let outside = actions.chars().filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => return depth == 0,
            }
            false
        });
        for action in outside.collect::<String>().split(',') {
            if let Some(copies) = known.get_mut(action.trim_matches('"')) {
                *copies += 1;
            }
        }
    }
    known.retain(|_, copies| *copies > 0);
    known
}
