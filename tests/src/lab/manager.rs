//! A manager of the external bridge's flows: `ovnkube-node`'s whole set, put back again and again.

use std::fmt::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Lab;
use super::command::run_with_input;
use super::error::{LabError, Result};
use super::flows::{BridgePorts, FlowSet, render};
use super::network::{BRIDGE, BRIDGE_MAC, NODE_IPV4};

const COOKIE: &str = "cookie=0xdeff105";
const SERVICES_IPV4: &str = "10.96.0.0/16";
const SERVICES_IPV6: &str = "fd00:10:96::/112";
/// The cluster's pod network.
const PODS_IPV4: &str = "10.128.0.0/14";
/// Flows that one service of type NodePort takes.
const FLOWS_A_SERVICE: usize = 2;

impl Lab {
    /// Today's whole set of flows: [`FlowSet::Legacy`], and services, egress addresses, hairpin
    /// and encapsulation (priorities 9 to 700, tables 0 to 7), with as many services as it takes to
    /// have `at_least` flows. One flow a line, as `ovs-ofctl` takes them.
    ///
    /// # Errors
    /// When a port is missing.
    pub fn manager_flows(&self, at_least: usize) -> Result<String> {
        let ports = self.bridge_ports()?;
        let mut flows = render(FlowSet::Legacy, &ports);
        others(&mut flows, &ports);
        let missing = at_least.saturating_sub(flows.lines().count());
        for service in 0..missing.div_ceil(FLOWS_A_SERVICE) {
            node_port(&mut flows, &ports, service);
        }
        Ok(flows)
    }

    /// Starts a manager that replaces all flows of the bridge with these, now and then every
    /// `interval`: flows of others go each time.
    ///
    /// # Errors
    /// When Open vSwitch refuses the flows.
    pub fn manager(&self, flows: String, interval: Duration) -> Result<Manager> {
        self.replace_flows(&flows)?;
        let remote = self.management_remote(BRIDGE);
        let environment = self.environment();
        let program = self.programs.path("ovs-ofctl");
        let (stop, stopped) = channel();
        let replace = move || {
            let mut command = std::process::Command::new(&program);
            command.envs(environment.clone());
            command.args(["--bundle", "replace-flows", &remote, "-"]);
            run_with_input(&mut command, &flows)
        };
        let thread = thread::Builder::new()
            .name("manager".to_owned())
            .spawn(move || {
                // Once before the thread began.
                let mut times = 1;
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    replace()?;
                    times += 1;
                }
                Ok(times)
            })
            .map_err(LabError::io("start", "the manager's thread"))?;
        Ok(Manager {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// A manager at work; dropping it ends it.
#[derive(Debug)]
pub struct Manager {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<u32>>>,
}

impl Manager {
    /// Ends it; how often it has replaced the flows, the first time included.
    ///
    /// # Errors
    /// When Open vSwitch refused a replacement.
    pub fn stop(mut self) -> Result<u32> {
        self.end()
    }

    fn end(&mut self) -> Result<u32> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(LabError::Choice("the manager's thread is gone".to_owned())),
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.thread.is_some() {
            drop(self.end());
        }
    }
}

fn others(flows: &mut String, ports: &BridgePorts) {
    let (mac, uplink) = (BRIDGE_MAC, ports.uplink);
    let mut add = |table: u8, priority: u16, rest: &str| {
        let _ = writeln!(flows, "{COOKIE},table={table},priority={priority},{rest}");
    };
    for (network, port) in &ports.patches {
        let from = format!("in_port={port}");
        add(
            0,
            700,
            &format!("{from},icmp,icmp_type=3,icmp_code=4,nw_dst=172.18.0.9,actions=drop"),
        );
        add(
            0,
            700,
            &format!("{from},icmp6,icmpv6_type=2,ipv6_dst=fd00:18::9,actions=drop"),
        );
        add(
            0,
            650,
            &format!("{from},dl_src={mac},udp,tp_dst=3784,actions=output:{uplink}"),
        );
        add(
            0,
            500,
            &format!(
                "{from},ip,nw_dst=169.254.0.2,nw_src={NODE_IPV4},actions=ct(commit,zone=64001,nat(dst={NODE_IPV4}),table=4)"
            ),
        );
        add(
            0,
            500,
            &format!(
                "{from},ip,nw_src={SERVICES_IPV4},nw_dst=169.254.0.0/17,actions=ct(zone=64001,nat,table=3)"
            ),
        );
        add(
            0,
            115,
            &format!("{from},ip,nw_dst={SERVICES_IPV4},actions=drop"),
        );
        add(
            0,
            115,
            &format!("{from},ipv6,ipv6_dst={SERVICES_IPV6},actions=drop"),
        );
        let egress = format!(
            "ct(commit,zone=64000,nat(src=172.18.0.200),exec(set_field:{:#x}->ct_mark)),output:{uplink}",
            network.conntrack_mark()
        );
        add(
            0,
            105,
            &format!("{from},dl_src={mac},pkt_mark=0xc351,ip,actions={egress}"),
        );
        add(
            0,
            103,
            &format!("{from},ip,nw_src={PODS_IPV4},actions=drop"),
        );
    }
    let Some((_, default)) = ports.patches.first() else {
        return;
    };
    add(
        0,
        500,
        "in_port=LOCAL,ip,nw_dst=169.254.0.1,actions=ct(zone=64002,nat,table=5)",
    );
    add(
        0,
        500,
        &format!(
            "in_port=LOCAL,ip,nw_dst={SERVICES_IPV4},actions=ct(commit,zone=64001,nat(src=169.254.0.2),table=2)"
        ),
    );
    add(
        0,
        500,
        &format!(
            "in_port=LOCAL,ipv6,ipv6_dst={SERVICES_IPV6},actions=ct(commit,zone=64001,nat(src=fd69::2),table=2)"
        ),
    );
    add(
        0,
        300,
        &format!("in_port={uplink},ip,nw_dst=10.128.7.0/24,actions=output:{default}"),
    );
    add(
        0,
        205,
        &format!("in_port={uplink},dl_dst={mac},udp,tp_dst=6081,actions=output:LOCAL"),
    );
    add(
        0,
        200,
        &format!("in_port={uplink},udp,tp_dst=6081,actions=NORMAL"),
    );
    add(
        0,
        200,
        &format!("in_port=LOCAL,udp,tp_dst=6081,actions=output:{uplink}"),
    );
    add(
        0,
        110,
        &format!("in_port={uplink},ip,nw_frag=yes,actions=ct(table=0,zone=64004)"),
    );
    add(
        1,
        13,
        &format!("in_port={uplink},udp,tp_dst=3784,actions=output:{default},output:LOCAL"),
    );
    add(2, 200, "actions=drop");
    add(
        2,
        100,
        &format!("actions=set_field:{mac}->eth_dst,output:{default}"),
    );
    add(
        3,
        0,
        &format!(
            "actions=move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[],set_field:{mac}->eth_dst,output:LOCAL"
        ),
    );
    add(
        4,
        0,
        "ip,actions=ct(commit,zone=64002,nat(src=169.254.0.1),table=3)",
    );
    add(5, 0, "ip,actions=ct(commit,zone=64001,nat,table=2)");
    add(6, 100, &format!("actions=output:{default}"));
    add(7, 100, &format!("actions=output:{uplink}"));
}

/// The way in and the way back of one service's port.
fn node_port(flows: &mut String, ports: &BridgePorts, service: usize) {
    let Some((_, default)) = ports.patches.first() else {
        return;
    };
    let (mac, uplink) = (BRIDGE_MAC, ports.uplink);
    // 30000 to 32767 is the range of node ports; what is beyond counts as another protocol's.
    let (number, protocol) = (
        30_000 + service % 2_768,
        ["tcp", "udp", "sctp"].get(service / 2_768),
    );
    let (Some(protocol), cookie) = (protocol, 0x5e00_0000_0000 + service) else {
        return;
    };
    let start = format!("cookie={cookie:#x},table=0,priority=110");
    let _ = writeln!(
        flows,
        "{start},in_port={uplink},{protocol},nw_dst={NODE_IPV4},tp_dst={number},\
         actions=ct(commit,zone=64003,nat(dst={NODE_IPV4}),table=6)"
    );
    let _ = writeln!(
        flows,
        "{start},in_port={default},dl_src={mac},{protocol},nw_src={NODE_IPV4},tp_src={number},\
         actions=ct(commit,zone=64003,nat,table=7)"
    );
}
