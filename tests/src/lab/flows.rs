//! The flows that `ovnkube-node` keeps on the external bridge, rendered for the lab's ports.
//!
//! Only what ARP, NDP and a pod's way to the outside need; services, egress IPs and the like are
//! left out. The order of outputs is the newer one: default network first, `NORMAL` or `FLOOD`
//! before the UDNs where it delivers to the default network itself.

use std::fmt::Write as _;

use super::network::{BRIDGE_MAC, NODE_IPV4, NODE_IPV6, Network};

/// Which flows the bridge's manager has installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowSet {
    /// Today's: [`FlowSet::Base`], fan-out (table 0, priorities 10 to 12; table 1, priority 14),
    /// no-flood on the UDNs' patch ports, and a static FDB entry for the bridge's address.
    Legacy,
    /// Egress, conntrack, validation of what comes from OVN, and the catch-all. No fan-out:
    /// whoever steers has to bring flows, no-flood and the FDB entry.
    Base,
}

/// OpenFlow port numbers on the external bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BridgePorts {
    pub(crate) uplink: u32,
    /// The default network's patch port first, then UDNs by ID.
    pub(crate) patches: Vec<(Network, u32)>,
}

const COOKIE: &str = "cookie=0xdeff105";
const HOST_MARK: u32 = 2;
/// (match, source field, node address)
const FAMILIES: [(&str, &str); 2] = [("ip", "nw_src"), ("ipv6", "ipv6_src")];

/// Renders flows in `ovs-ofctl` syntax, one a line.
pub(crate) fn render(set: FlowSet, ports: &BridgePorts) -> String {
    let mut flows = String::new();
    base(&mut flows, ports);
    if set == FlowSet::Legacy {
        fan_out(&mut flows, ports);
    }
    flows
}

fn base(flows: &mut String, ports: &BridgePorts) {
    let (mac, uplink) = (BRIDGE_MAC, ports.uplink);
    let mut add = |table: u8, priority: u16, rest: String| {
        let _ = writeln!(flows, "{COOKIE},table={table},priority={priority},{rest}");
    };
    for (network, port) in &ports.patches {
        add(0, 10, format!("in_port={port},dl_src={mac},actions=NORMAL"));
        add(0, 9, format!("in_port={port},actions=drop"));
        let mark = network.conntrack_mark();
        for (family, source) in FAMILIES {
            let (from, node) = if family == "ip" {
                (network.snat_ipv4().to_string(), NODE_IPV4.to_string())
            } else {
                (network.snat_ipv6().to_string(), NODE_IPV6.to_string())
            };
            let (from, nat) = if network.is_default() {
                (String::new(), String::new())
            } else {
                (format!(",{source}={from}"), format!("nat(src={node}),"))
            };
            add(
                0,
                100,
                format!(
                    "in_port={port},dl_src={mac},{family}{from},actions=ct(commit,zone=64000,\
                     {nat}exec(set_field:{mark:#x}->ct_mark)),output:{uplink}"
                ),
            );
            connections(&mut add, family, mark, &port.to_string());
        }
        if network.is_default() {
            // Above the egress flows: neighbour discovery makes no connection.
            neighbor_discovery(&mut add, &format!("{port},dl_src={mac}"), mark);
        }
    }
    for (family, _) in FAMILIES {
        add(
            0,
            100,
            format!(
                "in_port=LOCAL,{family},actions=ct(commit,zone=64000,\
                 exec(set_field:{HOST_MARK:#x}->ct_mark)),output:{uplink}"
            ),
        );
        connections(&mut add, family, HOST_MARK, "LOCAL");
        add(
            0,
            50,
            format!("{family},dl_dst={mac},actions=ct(zone=64000,nat,table=1)"),
        );
    }
    neighbor_discovery(&mut add, &format!("LOCAL,dl_src={mac}"), HOST_MARK);
    add(1, 10, format!("dl_dst={mac},actions=output:LOCAL"));
    add(1, 0, "actions=NORMAL".to_owned());
    // The catch-all carries no cookie, as upstream's.
    flows.push_str("table=0,priority=0,actions=NORMAL\n");
}

/// Sends packets of a port's own connections back to it.
fn connections(add: &mut impl FnMut(u8, u16, String), family: &str, mark: u32, port: &str) {
    for state in ["est", "rel"] {
        add(
            1,
            100,
            format!("{family},ct_state=+trk+{state},ct_mark={mark:#x},actions=output:{port}"),
        );
    }
}

fn neighbor_discovery(add: &mut impl FnMut(u8, u16, String), from: &str, mark: u32) {
    for kind in [135, 136] {
        add(
            0,
            102,
            format!(
                "in_port={from},icmp6,icmpv6_type={kind},actions=ct(commit,zone=64000,\
                 exec(set_field:{mark:#x}->ct_mark)),NORMAL"
            ),
        );
    }
}

/// The flows that hand inbound ARP and NDP to every gateway router.
fn fan_out(flows: &mut String, ports: &BridgePorts) {
    let (mac, uplink) = (BRIDGE_MAC, ports.uplink);
    let default: String = outputs(ports, |network| network.is_default());
    let udns: String = outputs(ports, |network| !network.is_default());
    let mut add = |table: u8, priority: u16, matched: String, actions: &[&str]| {
        let actions = actions
            .iter()
            .filter(|action| !action.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(",");
        let _ = writeln!(
            flows,
            "{COOKIE},table={table},priority={priority},{matched},actions={actions}"
        );
    };
    add(0, 10, format!("dl_dst={mac}"), &[&default, &udns, "NORMAL"]);
    if !udns.is_empty() {
        let broadcast = format!("in_port={uplink},dl_dst=ff:ff:ff:ff:ff:ff,arp");
        add(0, 11, broadcast, &["NORMAL", &udns]);
        let all_nodes = format!("in_port={uplink},dl_dst=33:33:00:00:00:01,icmp6,icmpv6_type=136");
        add(0, 11, all_nodes, &["NORMAL", &udns]);
    }
    let request = format!("arp,arp_op=1,arp_tpa={NODE_IPV4}");
    add(0, 12, request, &[&default, "NORMAL"]);
    let solicitation = format!("icmp6,icmpv6_type=135,nd_target={NODE_IPV6}");
    add(0, 12, solicitation, &[&default, "NORMAL"]);
    for kind in [134, 136] {
        add(
            1,
            14,
            format!("icmp6,icmpv6_type={kind}"),
            &["FLOOD", &udns],
        );
    }
}

fn outputs(ports: &BridgePorts, wanted: impl Fn(&Network) -> bool) -> String {
    ports
        .patches
        .iter()
        .filter(|(network, _)| wanted(network))
        .map(|(_, port)| format!("output:{port}"))
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports() -> BridgePorts {
        BridgePorts {
            uplink: 1,
            patches: vec![(Network(0), 2), (Network(1), 3), (Network(2), 4)],
        }
    }

    #[test]
    fn legacy_fans_unicast_out_with_the_default_network_first() {
        let flows = render(FlowSet::Legacy, &ports());
        assert!(flows.contains(
            "priority=10,dl_dst=02:42:ac:12:00:03,actions=output:2,output:3,output:4,NORMAL\n"
        ));
        assert!(flows.contains("icmpv6_type=136,actions=FLOOD,output:3,output:4\n"));
    }

    #[test]
    fn base_has_no_flow_that_names_two_patch_ports() {
        let flows = render(FlowSet::Base, &ports());
        assert!(
            flows
                .lines()
                .all(|flow| flow.matches("output:").count() <= 1)
        );
    }

    #[test]
    fn a_node_without_udns_has_no_empty_output() {
        let mut ports = ports();
        ports.patches.truncate(1);
        let flows = render(FlowSet::Legacy, &ports);
        assert!(!flows.contains(",,") && !flows.contains("priority=11"));
    }
}
