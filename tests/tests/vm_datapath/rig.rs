//! A bridge with an uplink, a source and followers, in a network namespace of the test's own.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use neighsteer::{
    datapath::{self, AttachOptions, Attached, Counter, Direction, Hook},
    ids::OfPort,
    openflow::{
        Cookie, NativeSwitch, Switch as _,
        unixctl::{UnixCtl, UnixCtlSession},
    },
    plan::{self, BridgePlan, COOKIE, Gates, Install, SteeringMark},
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, HostEndpoint, IngressPort},
};
use neighsteer_common::{Decision, Kind, NodeAddresses, Policy, Validate};
pub use neighsteer_tests::tools::{ip, run};
use neighsteer_tests::{
    frames::{Mac, NODE_IP, NODE_IP6},
    lab::wait_until,
    packet_socket::PacketSocket,
    vm::{self, KernelSwitch},
};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, CpuSet, sched_setaffinity, unshare},
    unistd::Pid,
};
use tokio::time::{Instant, sleep};

pub const BRIDGE: &str = "br-ex";
pub const INTEGRATION: &str = "br-int";
/// Every frame that a router gets leaves by this port of the integration bridge.
pub const SINK: &str = "sink";
pub const UPLINK: &str = "uplink";
/// The other end of the uplink.
pub const OUTSIDE: &str = "outside";
/// The gateway router that gets what is steered.
pub const SOURCE: &str = "default";

/// A frame to this address comes after those under test, and is counted by a flow of its own.
const LAST: Mac = Mac([0x02, 0, 0, 0, 0, 0xfe]);
const LAST_PRIORITY: u16 = 60;
const LAST_COOKIE: Cookie = Cookie(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// How a bridge is to be.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub followers: u16,
    pub mac: Mac,
    pub gateway_vlan: Option<u16>,
}

/// What frames cost the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Flows in the kernel for them.
    pub flows: usize,
    /// How many ovs-vswitchd had to look at.
    pub upcalls: u64,
}

pub struct Rig {
    pub switch: KernelSwitch,
    pub shape: Shape,
    /// By which frames of the uplink are steered; `None` = by headers.
    mark: Option<SteeringMark>,
    native: NativeSwitch,
    control: UnixCtlSession,
    ports: BTreeMap<String, OfPort>,
    outside: PacketSocket,
    last: u64,
    /// Holds the mount point of this test's bpffs.
    directory: tempfile::TempDir,
}

impl Rig {
    /// `None` outside of a virtual machine. `settings` are those of the Open_vSwitch table.
    pub async fn start(shape: Shape, settings: &[&str]) -> Option<Self> {
        if vm::is_elsewhere() {
            return None;
        }
        make_namespaces();
        // Looked for changes and counters so often, and kept for so long.
        let often = [
            "other_config:max-revalidator=50",
            "other_config:max-idle=600000",
            // However slow the machine is and however few frames they take.
            "other_config:min-revalidate-pps=0",
        ];
        let switch = KernelSwitch::start(&[&often, settings].concat()).unwrap();
        switch
            .add_bridge(BRIDGE, &shape.mac.to_string(), &[UPLINK])
            .unwrap();
        switch
            .add_bridge(INTEGRATION, "02:00:00:00:00:01", &[])
            .unwrap();
        let daemons = switch.daemons();
        let sink = ["set", "interface", SINK, "type=internal"];
        let add = ["add-port", INTEGRATION, SINK, "--"];
        daemons.vsctl(&[&add[..], &sink].concat()).unwrap();
        let routers = [SOURCE.to_owned()].into_iter();
        let pairs: Vec<_> = routers
            .chain((1..=shape.followers).map(|it| format!("udn{it}")))
            .map(|router| (format!("patch-{router}"), format!("peer-{router}")))
            .collect();
        switch.add_patches([BRIDGE, INTEGRATION], &pairs).unwrap();
        for interface in [BRIDGE, SINK] {
            ip(&["link", "set", interface, "up"]);
        }
        let native = NativeSwitch::new(daemons.run_directory());
        let mut ports = BTreeMap::new();
        let columns = ["--bare", "--columns=name,ofport", "list", "interface"];
        let listed = daemons.vsctl(&columns).unwrap();
        let mut lines = listed.lines().filter(|line| !line.is_empty());
        while let (Some(name), Some(number)) = (lines.next(), lines.next()) {
            if let Some(ofport) = OfPort::from_column(number.parse().ok()) {
                ports.insert(name.to_owned(), ofport);
            }
        }
        let control = UnixCtl::of_vswitchd(daemons.run_directory()).unwrap();
        let mut rig = Self {
            control: control.connect().await.unwrap(),
            outside: PacketSocket::open(OUTSIDE).unwrap(),
            directory: tempfile::Builder::new()
                .prefix("neighsteer-")
                .tempdir()
                .unwrap(),
            switch,
            shape,
            mark: None,
            native,
            ports,
            last: 0,
        };
        rig.lead_routers_to_the_sink();
        rig.steer(shape).await;
        Some(rig)
    }

    fn lead_routers_to_the_sink(&self) {
        let sink = self.ports[SINK];
        let flows: String = self
            .ports
            .iter()
            .filter(|(name, _)| name.starts_with("peer-"))
            .map(|(_, port)| format!("priority=1,in_port={port},actions=output:{sink}\n"))
            .collect();
        let file = self.directory.path().join("flows");
        fs::write(&file, flows).unwrap();
        let daemons = self.switch.daemons();
        // A bridge that was just made may take its socket away once more.
        wait_until(PATIENCE, "the bridge to take flows", || {
            daemons.ofctl(&["del-flows"], INTEGRATION, &[])
        })
        .unwrap();
        daemons
            .ofctl(&["add-flows"], INTEGRATION, &[file.to_str().unwrap()])
            .unwrap();
    }

    /// Puts the design's flows, flags and forwarding entry on the bridge, and nothing else.
    pub async fn steer(&mut self, shape: Shape) {
        self.shape = shape;
        let plan = self.plan(Gates::new(true, true).unwrap());
        self.put(plan).await;
    }

    /// The same by a mark, or by headers, for all that is steered from now on.
    pub async fn steer_by(&mut self, mark: Option<SteeringMark>) {
        self.mark = mark;
        self.steer(self.shape).await;
    }

    /// Today's flows, which hand ARP and NDP to every router, instead of the design's.
    pub async fn fan_out(&mut self) {
        self.mark = None;
        let plan = self.plan(Gates::default());
        self.put(plan).await;
    }

    /// As the agent does on a bridge that is steered in another way so far: in one bundle.
    pub async fn change_to(&mut self, mark: Option<SteeringMark>) {
        self.mark = mark;
        let plan = self.plan(Gates::new(true, true).unwrap());
        let installed = self.native.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap();
        let changes = plan::diff(&plan.flows, &installed);
        assert!(!changes.is_empty());
        self.native.change_flows(BRIDGE, &changes).await.unwrap();
    }

    fn plan(&self, gates: Gates) -> BridgePlan {
        let group = self.group();
        let plan = plan::plan(&group, gates, Install::Complete);
        match self.mark {
            Some(mark) => plan.by_mark(&group, mark),
            None => plan,
        }
    }

    /// Flows of others, in the syntax of ovs-ofctl; `UPLINK` stands for the uplink's number.
    pub fn add_flows(&self, flows: &[String]) {
        let uplink = self.ports[UPLINK].to_string();
        for flow in flows {
            let flow = flow.replace("UPLINK", &uplink);
            let daemons = self.switch.daemons();
            daemons.ofctl(&["add-flow"], BRIDGE, &[&flow]).unwrap();
        }
    }

    async fn put(&mut self, plan: BridgePlan) {
        self.switch
            .daemons()
            .ofctl(&["del-flows"], BRIDGE, &[])
            .unwrap();
        let last = format!(
            "cookie={LAST_COOKIE},priority={LAST_PRIORITY},in_port={},dl_dst={LAST},actions=drop",
            self.ports[UPLINK]
        );
        self.switch
            .daemons()
            .ofctl(&["add-flow"], BRIDGE, &[&last])
            .unwrap();
        self.last = 0;
        let changes = plan::diff(&plan.flows, &[]);
        self.native.change_flows(BRIDGE, &changes).await.unwrap();
        let ports = self.native.ports(BRIDGE).await.unwrap();
        let flags = plan::port_changes(&plan, &ports);
        self.native
            .set_no_flood(BRIDGE, &flags.no_flood)
            .await
            .unwrap();
        let entries = self.control.fdb_show(BRIDGE).await.unwrap();
        if let Some(fdb) = plan.missing_fdb(&entries) {
            self.control
                .fdb_add(BRIDGE, &fdb.port, fdb.vlan, fdb.mac)
                .await
                .unwrap();
        }
    }

    fn group(&self) -> BridgeGroup {
        let router = |name: &str| GatewayRouter {
            name: format!("GR_{name}").into(),
            network: (name != SOURCE).then(|| name.into()),
            external_port: format!("rtoe-GR_{name}").into(),
            external_mac: Some(self.shape.mac),
            datapath: None,
            patch_port: format!("patch-{name}").into(),
            ofport: self.ports[&format!("patch-{name}")],
            mac_binding_age_threshold: AgeThreshold::default(),
        };
        BridgeGroup {
            bridge: BRIDGE.into(),
            bridge_mac: self.shape.mac,
            datapath_type: "system".into(),
            host: HostEndpoint::Local,
            uplink: IngressPort {
                name: UPLINK.into(),
                ofport: self.ports[UPLINK],
            },
            secondary: Vec::new(),
            source: router(SOURCE),
            followers: (1..=self.shape.followers)
                .map(|it| router(&format!("udn{it}")))
                .collect(),
            gateway_vlan: self.shape.gateway_vlan,
            ipv4: true,
            ipv6: true,
            node_addresses: vec![NODE_IP.into(), NODE_IP6.into()],
        }
    }

    /// Lets frames come in by the uplink, one after the other, and waits until the switch has dealt
    /// with all of them. The kernel has no flow left then: each frame, or the first of some that are
    /// alike, is read by ovs-vswitchd.
    pub async fn receive(&mut self, frames: &[Vec<u8>]) {
        self.receive_all(frames).await;
        // Their counters go into the bridge's flows.
        self.control.call("revalidator/purge", &[]).await.unwrap();
    }

    /// As [`Rig::receive`], but leaves the kernel the flows that it has.
    pub async fn receive_by_known_flows(&mut self, frames: &[Vec<u8>]) {
        self.receive_all(frames).await;
        // Until the counters of every flow in the kernel have been read from now on: a look that is
        // under way may be past some.
        for _ in 0..2 {
            self.control.call("revalidator/wait", &[]).await.unwrap();
        }
    }

    /// One processor sends, and so one of the switch's threads takes what the kernel does not know:
    /// the order of frames is kept.
    async fn receive_all(&mut self, frames: &[Vec<u8>]) {
        let mut last = [LAST.0, [0x02, 0, 0, 0, 0, 1]].concat();
        last.extend([0x88, 0xb5]);
        last.resize(60, 0);
        for frame in frames.iter().chain([&last]) {
            self.outside.send(frame).unwrap();
        }
        self.last += 1;
        let deadline = Instant::now() + vm::patience(PATIENCE);
        // Flows get into the kernel later than their first frames are counted, in the order of these.
        while !self.kernel_flows().await.contains(&format!("dst={LAST}")) {
            assert!(Instant::now() < deadline, "no flow for the last frame");
            sleep(Duration::from_millis(5)).await;
        }
        loop {
            let flows = self.native.dump_flows(BRIDGE, Some(LAST_COOKIE)).await;
            let counted: u64 = flows.unwrap().iter().map(|it| it.packets).sum();
            if counted >= self.last {
                return;
            }
            let seen = format!("{counted} of {} frames that come last", self.last);
            assert!(Instant::now() < deadline, "{seen}");
            // A flow that was there before is counted by the kernel.
            self.control.call("revalidator/wait", &[]).await.unwrap();
        }
    }

    /// Frames that were steered by the mark.
    pub async fn marked(&self) -> u64 {
        let flows = self.native.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap();
        let marked = flows.iter().filter(|it| it.flow.matches.pkt_mark.is_some());
        marked.map(|it| it.packets).sum()
    }

    /// Frames that were steered by their headers, by what their flow steers.
    pub async fn steered(&self) -> BTreeMap<Decision, u64> {
        let flows = self.native.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap();
        let mut steered = BTreeMap::new();
        for installed in flows {
            let matches = &installed.flow.matches;
            let by_header = plan::is_steering(&installed.flow) && matches.pkt_mark.is_none();
            if by_header && installed.packets > 0 {
                let decision = match matches.icmpv6_type {
                    None => Decision::SteerArp,
                    Some(134) => Decision::SteerRa,
                    Some(135) => Decision::SteerNs,
                    Some(136) => Decision::SteerNa,
                    Some(other) => panic!("ICMPv6 type {other} is steered"),
                };
                *steered.entry(decision).or_default() += installed.packets;
            }
        }
        steered
    }

    /// Frames that routers have got so far, by router.
    pub async fn received(&self) -> BTreeMap<String, u64> {
        let flows = self.native.dump_flows(INTEGRATION, None).await.unwrap();
        let name = |number: &str| {
            let ports = self.ports.iter();
            let mut ports =
                ports.filter_map(|(name, port)| Some((name.strip_prefix("peer-")?, port)));
            let found = ports.find(|(_, port)| port.to_string() == number);
            found.map(|(name, _)| name.to_owned())
        };
        flows
            .into_iter()
            .filter(|it| it.packets > 0)
            .filter_map(|it| {
                let port = it.flow.matches.in_port?.to_string();
                Some((name(&port)?, it.packets))
            })
            .collect()
    }

    /// Frames that the kernel got from the switch on an interface of the switch's own.
    pub fn delivered(interface: &str) -> u64 {
        let file = format!("/sys/class/net/{interface}/statistics/rx_packets");
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    /// Lets a frame come in by the uplink.
    pub fn send(&self, frame: &[u8]) {
        self.outside.send(frame).unwrap();
    }

    /// The kernel's own flows.
    pub async fn kernel_flows(&mut self) -> String {
        self.control
            .call("dpctl/dump-flows", &["--names"])
            .await
            .unwrap()
    }

    fn bpffs(&self) -> PathBuf {
        self.directory.path().join("bpf")
    }

    /// Attaches the program to the uplink.
    pub fn attach(&self, hook: Hook) -> Attached {
        self.attach_to(hook, Validate::default())
    }

    /// Attaches it with another setting of what becomes of invalid frames.
    pub fn attach_to(&self, hook: Hook, validate: Validate) -> Attached {
        datapath::attach(&AttachOptions {
            interface: UPLINK.to_owned(),
            direction: Direction::Ingress,
            hook,
            policy: Some(Policy {
                bridge_mac: self.shape.mac.0,
                gateway_vlan: self.shape.gateway_vlan,
                node_addresses: NodeAddresses::NONE,
            }),
            tag: None,
            steering_mark: self.mark.map(SteeringMark::get),
            validate,
            bpffs: self.bpffs(),
            clsact: false,
        })
        .unwrap()
    }

    /// Takes the program off the uplink.
    pub fn detach(&self) {
        assert!(datapath::detach(UPLINK, &self.bpffs()).unwrap());
    }

    /// What frames cost that come in by the uplink, when the kernel knows none of them at first.
    ///
    /// They come one after another, as on a link that is not full: the kernel's flow for a frame is
    /// mostly there before the next one that it takes.
    pub async fn cost(&mut self, frames: &[Vec<u8>]) -> Cost {
        self.receive(&[]).await;
        let before = self.missed().await;
        for frame in frames {
            self.send(frame);
            sleep(Duration::from_millis(1)).await;
        }
        self.receive_by_known_flows(&[]).await;
        // The frame that comes last is not one of them.
        let upcalls = self.missed().await - before - 1;
        let flows = self.kernel_flows().await;
        let by_uplink = format!("in_port({UPLINK})");
        let last = format!("dst={LAST}");
        let flows = flows
            .lines()
            .filter(|line| line.contains(&by_uplink) || line.contains("recirc_id(0x"))
            .filter(|line| !line.contains(&last))
            .count();
        Cost { flows, upcalls }
    }

    /// Frames so far that the kernel had no flow for.
    async fn missed(&mut self) -> u64 {
        let shown = self.control.call("dpctl/show", &[]).await.unwrap();
        let (_, missed) = shown.split_once("missed:").unwrap();
        let digits = missed.split_whitespace().next().unwrap();
        digits.parse().unwrap()
    }

    /// Whether the program is attached, as it is read back.
    pub fn attached(&self) -> Option<datapath::State> {
        let attachments = datapath::attachments(&self.bpffs()).unwrap();
        attachments.first().map(|it| it.state)
    }

    /// What the program has counted.
    pub fn counters(&self) -> BTreeMap<(Kind, Decision), (u64, u64)> {
        let counters = datapath::counters(UPLINK, &self.bpffs()).unwrap();
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for Counter {
            kind,
            decision,
            packets,
            bytes,
            ..
        } in counters
        {
            let sum = sums.entry((kind, decision)).or_default();
            *sum = (sum.0 + packets, sum.1 + bytes);
        }
        sums
    }
}

/// What has become more, and by how much.
pub fn growth<K: Clone + Ord>(
    before: &BTreeMap<K, u64>,
    now: &BTreeMap<K, u64>,
) -> BTreeMap<K, u64> {
    now.iter()
        .map(|(key, count)| (key.clone(), count - before.get(key).unwrap_or(&0)))
        .filter(|(_, more)| *more > 0)
        .collect()
}

/// A veth pair that nothing but the test uses.
fn make_namespaces() {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    // One that shows this namespace's interfaces.
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none).unwrap();
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    ip(&[
        "link", "add", OUTSIDE, "mtu", "9000", "type", "veth", "peer", "name", UPLINK, "mtu",
        "9000",
    ]);
    for interface in [OUTSIDE, UPLINK] {
        ip(&["link", "set", interface, "up"]);
    }
    let mut first = CpuSet::new();
    first.set(0).unwrap();
    sched_setaffinity(Pid::from_raw(0), &first).unwrap();
}

/// Whether the kernel has TCX.
pub fn has_tcx() -> bool {
    let kernel = vm::kernel().unwrap_or_default();
    kernel != "6.1"
}
