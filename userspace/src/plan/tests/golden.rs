//! Every case, as text that is reviewed like code.

use std::fmt::Write as _;

use super::*;

/// The families by the addresses of the source's external port.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("IPv4", &["172.18.0.3/16"]),
    ("IPv6", &["fd00::3/64"]),
    ("dual stack", &["172.18.0.3/16", "fd00::3/64"]),
];
const VLANS: [(&str, i64); 2] = [("", 0), ("_vlan", 1024)];
const SECONDARY: [i64; 3] = [7, 8, 9];

/// Two routers on a bridge of their own, where the first by name is the source.
fn uplink_group(addresses: &[&str], vlan: i64) -> BridgeGroup {
    let mut node = Node::new(&[]);
    node.bridge("br-up", "ens7", &[]);
    node.map("net-br-up", "br-up");
    for (name, ofport) in [("delta", 5), ("coral", 6)] {
        let mut network = Network::user_defined(name, ofport).on_uplink("br-up");
        network.vlan = vlan;
        network.addresses = addresses.iter().copied().map(str::to_owned).collect();
        node.network(&network);
    }
    node.topology().group("br-up").unwrap().clone()
}

fn default_group(addresses: &[&str], vlan: i64, secondary: &[i64]) -> BridgeGroup {
    let change = |network: &mut Network| {
        network.addresses = addresses.iter().copied().map(str::to_owned).collect();
        network.vlan = vlan;
    };
    group(change, secondary)
}

pub(super) fn render(text: &mut String, title: &str, plan: &BridgePlan) {
    let BridgePlan {
        bridge,
        flows,
        no_flood,
        flood,
        static_fdb,
    } = plan;
    let numbers =
        |ports: &BTreeSet<OfPort>| -> Vec<u16> { ports.iter().map(|it| it.get()).collect() };
    writeln!(text, "# {title}").unwrap();
    for flow in flows {
        writeln!(text, "{flow}").unwrap();
    }
    let (no_flood, flood) = (numbers(no_flood), numbers(flood));
    writeln!(text, "no-flood {no_flood:?}, flood {flood:?}").unwrap();
    if let Some(StaticFdb {
        port, vlan, mac, ..
    }) = static_fdb
    {
        writeln!(text, "fdb/add {bridge} {port} {vlan} {mac}").unwrap();
    }
    text.push('\n');
}

/// The cases of one set of flows: families, and on the default network's bridge the number of
/// secondary localnet ports.
fn cases(
    gates: Gates,
    install: Install,
    mark: Option<SteeringMark>,
    vlan: i64,
) -> (String, String) {
    let plan = |group: &BridgeGroup| match mark {
        Some(mark) => plan(group, gates, install).by_mark(group, mark),
        None => plan(group, gates, install),
    };
    let (mut default, mut uplink) = (String::new(), String::new());
    for (family, addresses) in FAMILIES {
        for count in 0..=SECONDARY.len() {
            let group = default_group(addresses, vlan, &SECONDARY[..count]);
            let title = format!("{family}, {count} secondary");
            render(&mut default, &title, &plan(&group));
        }
        let group = uplink_group(addresses, vlan);
        render(&mut uplink, family, &plan(&group));
    }
    (default, uplink)
}

#[test]
fn each_set_of_flows_is_as_it_was_reviewed() {
    let mark = Some(SteeringMark::DEFAULT);
    let sets = [
        ("overlay_on", on(), Install::Overlay, None),
        ("complete_on", on(), Install::Complete, None),
        ("complete_off", Gates::default(), Install::Complete, None),
        ("overlay_mark", on(), Install::Overlay, mark),
        ("complete_mark", on(), Install::Complete, mark),
    ];
    for (set, gates, install, mark) in sets {
        for (suffix, vlan) in VLANS {
            let (default, uplink) = cases(gates, install, mark, vlan);
            insta::assert_snapshot!(format!("default_{set}{suffix}"), default);
            insta::assert_snapshot!(format!("uplink_{set}{suffix}"), uplink);
        }
    }
}

#[test]
fn an_overlay_with_the_gate_off_asks_for_nothing() {
    for (_, vlan) in VLANS {
        for (_, addresses) in FAMILIES {
            let default = default_group(addresses, vlan, &SECONDARY);
            for group in [default, uplink_group(addresses, vlan)] {
                let plan = plan(&group, Gates::default(), Install::Overlay);
                assert_eq!(plan, BridgePlan::empty(&group.bridge));
                assert!(plan.is_empty() && plan.flood.is_empty());
            }
        }
    }
}

#[test]
fn today_a_node_without_user_defined_networks_fans_nothing_out() {
    let alone = Node::new(&[Network::default_network()]).topology();
    let group = alone.group("breth0").unwrap();
    let mut text = String::new();
    let plan = plan(group, Gates::default(), Install::Complete);
    render(&mut text, "no followers", &plan);
    insta::assert_snapshot!("default_complete_off_alone", text);
}
