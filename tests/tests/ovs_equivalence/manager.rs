//! What ovnkube-node has on a bridge today, where it bears on ARP and NDP: written down a second
//! time, apart from the plan, and in the older order of outputs that nodes in the field have.

use neighsteer::{ids::OfPort, topology::BridgeGroup};

const COOKIE: &str = "cookie=0xdeff105";

/// Flows in the syntax of ovs-ofctl.
pub fn flows(group: &BridgeGroup) -> Vec<String> {
    let (mac, uplink) = (group.bridge_mac, group.uplink.ofport);
    let default = group
        .source
        .network
        .is_none()
        .then_some(group.source.ofport);
    let vlan = group
        .gateway_vlan
        .map_or(String::new(), |id| format!("dl_vlan={id},"));
    let outputs = |ports: &[OfPort]| -> String {
        ports.iter().map(|port| format!("output:{port},")).collect()
    };
    let mut flows = Vec::new();
    let mut add = |rest: String| flows.push(format!("{COOKIE},{rest}"));
    let patches = patches(group);
    for patch in &patches {
        add(format!(
            "priority=10,in_port={patch},dl_src={mac},actions=NORMAL"
        ));
        add(format!("priority=9,in_port={patch},actions=drop"));
    }
    let all = outputs(&patches);
    add(format!(
        "priority=10,{vlan}dl_dst={mac},actions={all}NORMAL"
    ));
    let user_defined: Vec<OfPort> = patches
        .iter()
        .copied()
        .filter(|port| Some(*port) != default)
        .collect();
    if let Some(default) = default {
        for address in &group.node_addresses {
            let kind = if address.is_ipv4() {
                format!("arp,arp_op=1,arp_tpa={address}")
            } else {
                format!("icmp6,icmpv6_type=135,nd_target={address}")
            };
            add(format!(
                "priority=12,{vlan}{kind},actions=output:{default},NORMAL"
            ));
        }
        for kind in [
            "dl_dst=ff:ff:ff:ff:ff:ff,arp",
            "dl_dst=33:33:00:00:00:01,icmp6,icmpv6_type=136",
        ] {
            add(format!(
                "priority=11,in_port={uplink},{vlan}{kind},actions={all}NORMAL"
            ));
        }
    }
    for family in ["ip", "ipv6"] {
        add(format!(
            "priority=50,{family},dl_dst={mac},actions=ct(zone=64000,nat,table=1)"
        ));
    }
    let user_defined = outputs(&user_defined);
    for kind in [134, 136] {
        add(format!(
            "table=1,priority=14,icmp6,icmpv6_type={kind},actions={user_defined}FLOOD"
        ));
    }
    add(format!(
        "table=1,priority=10,{vlan}dl_dst={mac},actions=LOCAL"
    ));
    add("table=1,priority=0,actions=NORMAL".to_owned());
    flows.push("priority=0,actions=NORMAL".to_owned());
    flows
}

/// It sets the flag on the default network's bridge alone.
pub fn no_flood_ports(group: &BridgeGroup) -> Vec<OfPort> {
    let is_default = group.source.network.is_none();
    let followers = group.followers.iter().filter(|_| is_default);
    followers.map(|it| it.ofport).collect()
}

fn patches(group: &BridgeGroup) -> Vec<OfPort> {
    let routers = std::iter::once(&group.source).chain(&group.followers);
    routers.map(|it| it.ofport).collect()
}
