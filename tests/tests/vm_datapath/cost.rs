//! What steering costs the switch: flows in the kernel and frames that ovs-vswitchd looks at, by
//! headers, by mark, and as it was before. Printed as a table (docs/marks.md).

use neighsteer::{datapath::Hook, plan::SteeringMark};
use neighsteer_tests::frames::{
    Arp, BRIDGE_MAC, HOST_MAC, Mac, NODE_IP, NODE_IP6, Ndp,
    tcp::{tcp_ipv4, tcp_ipv6},
};

use crate::{rig::*, steering::SHAPE};

const FRAMES: usize = 1_000;
const HOSTS: usize = 25;
/// How much may differ by chance: a frame that comes before the kernel has the flow of the one before.
const CHANCE: u64 = 40;

/// What one of many hosts on the link sends: most of it is no neighbour traffic.
fn mixed(index: usize) -> Vec<u8> {
    let host = u8::try_from(index % HOSTS).unwrap();
    let mut mac = HOST_MAC;
    let Mac(bytes) = &mut mac;
    bytes[4] = host;
    let ip = [172, 18, 1, host].into();
    let ip6 = [0xfd00, 0, 0, 0, 0, 0, 1, host.into()].into();
    let to = BRIDGE_MAC;
    let ndp = |message: Ndp| message.packet(ip6, NODE_IP6).frame(mac, to).to_bytes();
    match index / HOSTS % 10 {
        0 => Arp::reply(mac, ip, to, NODE_IP).frame(to).to_bytes(),
        1 => Arp::request(mac, ip, NODE_IP).frame(to).to_bytes(),
        2 => ndp(Ndp::solicitation(NODE_IP6, mac)),
        3 => ndp(Ndp::advertisement(ip6, true, mac)),
        4 => ndp(Ndp::router_advertisement(mac)),
        5 | 6 => tcp_ipv6((mac, ip6), (to, NODE_IP6), 100),
        _ => tcp_ipv4((mac, ip), (to, NODE_IP), 100),
    }
}

/// What a manager has for the uplink above and below the steering flows, in the syntax of ovs-ofctl:
/// an overlay's traffic, conntrack, and what comes out of it.
fn managers_flows() -> Vec<String> {
    [
        format!("priority=205,in_port=UPLINK,udp,dl_dst={BRIDGE_MAC},tp_dst=6081,actions=LOCAL"),
        format!("priority=50,ip,dl_dst={BRIDGE_MAC},actions=ct(zone=64000,table=1)"),
        format!("priority=50,ipv6,dl_dst={BRIDGE_MAC},actions=ct(zone=64000,table=1)"),
        format!("table=1,priority=10,dl_dst={BRIDGE_MAC},actions=LOCAL"),
        "table=1,priority=0,actions=NORMAL".to_owned(),
    ]
    .map(|flow| format!("cookie=0xdeff105,{flow}"))
    .to_vec()
}

/// Two that a service with an external address adds, which look at who is asked for.
fn services_flows() -> Vec<String> {
    [
        "priority=110,in_port=UPLINK,arp,arp_op=1,arp_tpa=172.18.0.200,actions=LOCAL",
        "priority=110,in_port=UPLINK,icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::200,\
         actions=LOCAL",
    ]
    .map(|flow| format!("cookie=0xabc,{flow}"))
    .to_vec()
}

#[tokio::test]
async fn by_mark_the_kernel_has_no_more_flows_than_by_headers() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    let frames: Vec<_> = (0..FRAMES).map(mixed).collect();
    println!("| flows of others | steered | kernel flows | upcalls of {FRAMES} frames |");
    println!("| --- | --- | --- | --- |");
    for (others, services) in [("no service", false), ("a service's, too", true)] {
        let mut costs = Vec::new();
        for steered in ["before", "by headers", "by mark"] {
            match steered {
                "before" => rig.fan_out().await,
                "by headers" => rig.steer_by(None).await,
                _ => rig.steer_by(Some(SteeringMark::DEFAULT)).await,
            }
            rig.add_flows(&managers_flows());
            if services {
                rig.add_flows(&services_flows());
            }
            rig.attach(Hook::Tc);
            let cost = rig.cost(&frames).await;
            println!(
                "| {others} | {steered} | {} | {} |",
                cost.flows, cost.upcalls
            );
            costs.push(cost);
        }
        let [_, by_header, by_mark] = costs[..] else {
            unreachable!("three were measured");
        };
        assert!(by_mark.flows <= by_header.flows, "{costs:?}");
        assert!(by_mark.upcalls <= by_header.upcalls + CHANCE, "{costs:?}");
        if !services {
            // No flow above looks at what kind of ARP or NDP it is.
            assert!(by_mark.flows * 4 < by_header.flows * 3, "{costs:?}");
        }
    }
}
