//! The northbound rows of networks, as OVN-Kubernetes makes them on one node.
//!
//! Kept simpler than in a cluster: the pods' switch hangs right on the gateway router, without the
//! cluster router and the join switch between them. Everything from the gateway router outwards is
//! as there: names, external_ids, options, addresses.

use serde_json::{Value, json};

use super::database::{Database, map, named, set};
use super::error::Result;
use super::network::{
    BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_IPV6, NODE_IPV4, NODE_IPV6, Network, PHYSICAL_NETWORK,
    POD_IPV4, POD_IPV6, POD_MAC,
};

/// Networks in one transaction: few enough for the server to stay responsive.
const NETWORKS_PER_TRANSACTION: usize = 100;
const JOIN_MAC: &str = "0a:58:0a:64:00:01";

/// What all routers of a lab share.
#[derive(Debug, Clone)]
pub(crate) struct RouterOptions {
    pub(crate) chassis: String,
    /// `mac_binding_age_threshold` in seconds.
    pub(crate) age_threshold: u32,
    pub(crate) ipv6: bool,
}

/// Adds networks, in transactions of at most a hundred.
pub(crate) fn add_networks(
    northbound: &Database,
    networks: &[Network],
    options: &RouterOptions,
) -> Result<()> {
    for chunk in networks.chunks(NETWORKS_PER_TRANSACTION) {
        let operations = chunk
            .iter()
            .flat_map(|network| network_rows(*network, options))
            .collect();
        northbound.transact(operations)?;
    }
    Ok(())
}

/// Removes a network's router and switches; what hangs on them goes with them.
pub(crate) fn remove_network(northbound: &Database, network: Network) -> Result<()> {
    let delete = |table: &str, name: String| json!({"op": "delete", "table": table, "where": [["name", "==", name]]});
    northbound
        .transact(vec![
            delete("Logical_Router", network.gateway_router()),
            delete("Logical_Switch", network.external_switch()),
            delete("Logical_Switch", network.pod_switch()),
        ])
        .map(drop)
}

/// Adds a secondary localnet network: a switch with a localnet port on the same physical network
/// and one port for a pod, `pod_port`.
pub(crate) fn add_secondary_localnet(
    northbound: &Database,
    names: &SecondaryLocalnet,
) -> Result<()> {
    let localnet = json!({
        "name": names.localnet_port(),
        "type": "localnet",
        "addresses": "unknown",
        "options": map([("network_name", PHYSICAL_NETWORK.to_owned())]),
    });
    let pod = json!({"name": names.pod_port(), "addresses": "unknown"});
    let switch = json!({
        "name": names.switch(),
        "ports": set(&[named("localnet"), named("pod")]),
        "external_ids": map([
            ("k8s.ovn.org/network", names.network()),
            ("k8s.ovn.org/role", "secondary".to_owned()),
            ("k8s.ovn.org/topology", "localnet".to_owned()),
        ]),
    });
    northbound
        .transact(vec![
            insert("Logical_Switch_Port", "localnet", localnet),
            insert("Logical_Switch_Port", "pod", pod),
            json!({"op": "insert", "table": "Logical_Switch", "row": switch}),
        ])
        .map(drop)
}

/// The names of a secondary localnet network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondaryLocalnet {
    pub(crate) name: String,
}

impl SecondaryLocalnet {
    /// The network's name.
    #[must_use]
    pub fn network(&self) -> String {
        format!("cluster_udn_{}", self.name)
    }

    fn prefix(&self) -> String {
        self.network().replace(['-', '/'], ".") + "_"
    }

    fn switch(&self) -> String {
        format!("{}ovn_localnet_switch", self.prefix())
    }

    /// The localnet port.
    #[must_use]
    pub fn localnet_port(&self) -> String {
        format!("{}ovn_localnet_port", self.prefix())
    }

    /// The patch port on the external bridge.
    #[must_use]
    pub fn patch_port(&self) -> String {
        format!("patch-{}-to-br-int", self.localnet_port())
    }

    pub(crate) fn pod_port(&self) -> String {
        format!("{}lab_pod", self.prefix())
    }
}

fn insert(table: &str, uuid_name: &str, row: Value) -> Value {
    json!({"op": "insert", "table": table, "uuid-name": uuid_name, "row": row})
}

/// The external_ids that OVN-Kubernetes puts on routers and switches of a UDN.
fn udn_external_ids(network: Network) -> Vec<(&'static str, String)> {
    if network.is_default() {
        return Vec::new();
    }
    vec![
        ("k8s.ovn.org/network", network.name()),
        ("k8s.ovn.org/role", "primary".to_owned()),
        ("k8s.ovn.org/topology", "layer3".to_owned()),
    ]
}

fn pairs(pairs: &[(&str, String)]) -> Value {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| json!([key, value]))
        .collect();
    json!(["map", pairs])
}

fn network_rows(network: Network, options: &RouterOptions) -> Vec<Value> {
    let id = network.0;
    let mut rows = Vec::new();
    let mut nat = Vec::new();
    let mut routes = Vec::new();
    let mut families = vec![(
        "10.100.0.0/16",
        network.snat_ipv4().to_string(),
        "0.0.0.0/0",
        GATEWAY_IPV4.to_string(),
    )];
    if options.ipv6 {
        families.push((
            "fd10::/64",
            network.snat_ipv6().to_string(),
            "::/0",
            GATEWAY_IPV6.to_string(),
        ));
    }
    for (family, (pods, snat, everything, gateway)) in families.into_iter().enumerate() {
        let name = format!("nat{id}_{family}");
        nat.push(named(&name));
        let row = json!({"type": "snat", "logical_ip": pods, "external_ip": snat});
        rows.push(insert("NAT", &name, row));
        let name = format!("route{id}_{family}");
        routes.push(named(&name));
        let row = json!({"ip_prefix": everything, "nexthop": gateway, "output_port": network.external_port()});
        rows.push(insert("Logical_Router_Static_Route", &name, row));
    }
    let external = format!("external{id}");
    rows.push(insert(
        "Logical_Router_Port",
        &external,
        external_port(network, options),
    ));
    let join = format!("join{id}");
    let mut join_networks = vec![json!("10.100.0.1/16")];
    if options.ipv6 {
        join_networks.push(json!("fd10::1/64"));
    }
    let row =
        json!({"name": network.join_port(), "mac": JOIN_MAC, "networks": set(&join_networks)});
    rows.push(insert("Logical_Router_Port", &join, row));
    let router = json!({
        "name": network.gateway_router(),
        "ports": set(&[named(&external), named(&join)]),
        "nat": set(&nat),
        "static_routes": set(&routes),
        "options": router_options(network, options),
        "external_ids": router_external_ids(network, options),
    });
    rows.push(json!({"op": "insert", "table": "Logical_Router", "row": router}));
    rows.extend(switches(network));
    rows
}

fn external_port(network: Network, options: &RouterOptions) -> Value {
    let mut networks = vec![json!(format!("{NODE_IPV4}/16"))];
    if options.ipv6 {
        networks.push(json!(format!("{NODE_IPV6}/64")));
    }
    let external_ids = if network.is_default() {
        vec![("gateway-physical-ip", "yes".to_owned())]
    } else {
        networks.push(json!(format!("{}/32", network.snat_ipv4())));
        if options.ipv6 {
            networks.push(json!(format!("{}/128", network.snat_ipv6())));
        }
        // No role here, unlike on the router.
        vec![
            ("k8s.ovn.org/network", network.name()),
            ("k8s.ovn.org/topology", "layer3".to_owned()),
        ]
    };
    json!({
        "name": network.external_port(),
        "mac": BRIDGE_MAC.to_string(),
        "networks": set(&networks),
        "external_ids": pairs(&external_ids),
    })
}

fn router_options(network: Network, options: &RouterOptions) -> Value {
    let mut all = vec![
        ("chassis", options.chassis.clone()),
        ("always_learn_from_arp_request", "false".to_owned()),
        ("dynamic_neigh_routers", "false".to_owned()),
        (
            "mac_binding_age_threshold",
            options.age_threshold.to_string(),
        ),
    ];
    if network.is_default() {
        all.push(("snat-ct-zone", "0".to_owned()));
    } else {
        all.push(("disable_garp_rarp", "true".to_owned()));
    }
    pairs(&all)
}

fn router_external_ids(network: Network, options: &RouterOptions) -> Value {
    let mut all = udn_external_ids(network);
    all.push(("physical_ip", NODE_IPV4.to_string()));
    let mut addresses = NODE_IPV4.to_string();
    if options.ipv6 {
        addresses = format!("{addresses},{NODE_IPV6}");
    }
    all.push(("physical_ips", addresses));
    pairs(&all)
}

fn switches(network: Network) -> Vec<Value> {
    let id = network.0;
    let (localnet, to_external) = (format!("localnet{id}"), format!("etor{id}"));
    let (to_join, pod) = (format!("jtor{id}"), format!("pod{id}"));
    let mut external_options = vec![("router-port", network.external_port())];
    if network.is_default() {
        external_options.push(("nat-addresses", "router".to_owned()));
        external_options.push(("exclude-lb-vips-from-garp", "true".to_owned()));
    }
    let port = |uuid_name: &str, row: Value| insert("Logical_Switch_Port", uuid_name, row);
    let switch = |name: String, ports: [Value; 2]| {
        let external_ids = pairs(&udn_external_ids(network));
        json!({"op": "insert", "table": "Logical_Switch",
            "row": {"name": name, "ports": set(&ports), "external_ids": external_ids}})
    };
    vec![
        port(
            &localnet,
            json!({"name": network.localnet_port(), "type": "localnet", "addresses": "unknown",
                "options": map([("network_name", PHYSICAL_NETWORK.to_owned())])}),
        ),
        port(
            &to_external,
            json!({"name": format!("etor-{}", network.gateway_router()), "type": "router",
                "addresses": BRIDGE_MAC.to_string(), "options": pairs(&external_options)}),
        ),
        port(
            &to_join,
            json!({"name": format!("jtor-{}", network.gateway_router()), "type": "router",
                "addresses": "router", "options": map([("router-port", network.join_port())])}),
        ),
        port(
            &pod,
            json!({"name": network.pod_port(),
                "addresses": format!("{} {POD_IPV4} {POD_IPV6}", POD_MAC)}),
        ),
        switch(
            network.external_switch(),
            [named(&localnet), named(&to_external)],
        ),
        switch(network.pod_switch(), [named(&to_join), named(&pod)]),
    ]
}
