//! The groups of a node as they are found in the databases of a real OVN, and plans on its bridge.

use std::time::Duration;

use neighsteer::{
    openflow::{OfCtl, Switch as _},
    ovsdb::{Clause, Function, MonitorCondition, MonitorRequest, Remote, Snapshot, TableRequest},
    plan::{Gates, Install, diff, plan, port_changes},
    rows::{Database, MonitoredTable, Rows, monitored},
    topology::{BridgeGroup, Incumbents, Topology, build},
};
use neighsteer_tests::{
    frames::{arp_reply, who_has},
    lab::{
        BRIDGE, BRIDGE_MAC, FlowSet, GATEWAY_IPV4, GATEWAY_MAC, Lab, NODE_IPV4, NODE_IPV6, Network,
    },
};

const PATIENCE: Duration = Duration::from_secs(10);

fn request(monitored: Vec<MonitoredTable>) -> MonitorRequest {
    let table = |it: MonitoredTable| {
        let columns = it.table.columns().iter().copied();
        let request = TableRequest::new(it.table.name(), columns);
        if it.conditions.is_empty() {
            return request;
        }
        let clauses = it.conditions.into_iter().map(|condition| {
            let function = match condition.function {
                "==" => Function::Equal,
                "includes" => Function::Includes,
                other => panic!("{other}"),
            };
            Clause::new(condition.column, function, condition.value)
        });
        request.filter(MonitorCondition::AnyOf(clauses.collect()))
    };
    let tables = monitored.into_iter().map(table);
    tables.fold(MonitorRequest::new(), MonitorRequest::table)
}

async fn rows(lab: &Lab) -> Rows {
    let mut rows = Rows::default();
    for (database, remote) in [
        (Database::OpenVSwitch, lab.ovs_remote()),
        (Database::Northbound, lab.northbound_remote()),
        (Database::Southbound, lab.southbound_remote()),
    ] {
        let tables = monitored(database, &lab.chassis());
        let remotes = Remote::parse_list(&remote).unwrap();
        let request = request(tables.clone());
        let snapshot = Snapshot::fetch(&remotes, database.name(), request, PATIENCE);
        let snapshot = snapshot.await.unwrap();
        for table in tables {
            for (uuid, row) in snapshot.rows(table.table.name()) {
                rows.apply(table.table, uuid, Some(row));
            }
        }
    }
    rows
}

async fn topology(lab: &Lab) -> Topology {
    build(&rows(lab).await, &Incumbents::new())
}

fn names(group: &BridgeGroup) -> (String, Vec<String>) {
    let mut followers: Vec<String> = group
        .followers
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    followers.sort();
    (group.source.name.to_string(), followers)
}

#[tokio::test]
async fn the_groups_of_a_real_node_are_found_as_networks_join() {
    let mut lab = Lab::builder().udns(3).start().unwrap();
    let found = topology(&lab).await;
    assert_eq!(found.skipped, []);
    let group = found.group(BRIDGE).unwrap();
    let routers = |networks: &[u16]| {
        let routers = networks.iter().map(|it| Network(*it).gateway_router());
        (
            Network::DEFAULT.gateway_router(),
            routers.collect::<Vec<_>>(),
        )
    };
    assert_eq!(names(group), routers(&[1, 2, 3]));
    assert_eq!(group.bridge_mac, BRIDGE_MAC);
    assert_eq!(*group.uplink.name, *lab.uplink());
    assert_eq!(group.node_addresses.len(), 2, "{:?}", group.node_addresses);
    assert!(group.node_addresses.contains(&NODE_IPV4.into()));
    assert!(group.node_addresses.contains(&NODE_IPV6.into()));
    let ports = lab.openflow_ports().unwrap();
    for (network, router) in [(0, &group.source), (1, &group.followers[0])] {
        assert_eq!(*router.patch_port, *Network(network).patch_port());
        assert_eq!(*router.external_port, *Network(network).external_port());
        assert_eq!(ports[&*router.patch_port], u32::from(router.ofport.get()));
        assert!(router.datapath.is_some());
    }

    lab.add_udn(4).unwrap();
    let secondary = lab.add_secondary_localnet("office").unwrap();
    let found = topology(&lab).await;
    assert_eq!(found.skipped, []);
    let group = found.group(BRIDGE).unwrap();
    assert_eq!(names(group), routers(&[1, 2, 3, 4]));
    let [port] = group.secondary.as_slice() else {
        panic!("{:?}", group.secondary)
    };
    assert_eq!(*port.name, *secondary.patch_port());
}

#[tokio::test]
async fn the_conditions_keep_pods_and_other_switch_ports_out() {
    let lab = Lab::builder().udns(2).pods([1]).start().unwrap();
    let rows = rows(&lab).await;
    let kinds = rows.switch_ports.values().map(|port| &*port.kind);
    assert!(
        kinds
            .clone()
            .all(|kind| matches!(kind, "router" | "localnet"))
    );
    assert!(kinds.count() > 0);
    // The external and the join side of three routers, and the switch ports that lead to them.
    let bindings = rows.port_bindings.values();
    assert!(bindings.clone().all(|it| &*it.kind == "l3gateway"));
    assert!(bindings.count() >= 3);
    assert_eq!(rows.routers.len(), 3);
    assert!(rows.unreadable.is_empty(), "{:?}", rows.unreadable);
}

#[tokio::test]
async fn a_plan_on_a_real_bridge_steers_replies_to_the_source_alone() {
    let lab = Lab::builder().udns(5).flows(FlowSet::Base).start().unwrap();
    let found = topology(&lab).await;
    let plan = plan(
        found.group(BRIDGE).unwrap(),
        Gates::new(true, true).unwrap(),
        Install::Overlay,
    );
    let socket = lab.management_socket(BRIDGE);
    let switch = OfCtl::new(socket.parent().unwrap());
    let installed = switch.dump_flows(BRIDGE, None).await.unwrap();
    let changes = diff(&plan.flows, &installed);
    switch.change_flows(BRIDGE, &changes).await.unwrap();
    let ports = switch.ports(BRIDGE).await.unwrap();
    let flags = port_changes(&plan, &ports);
    assert_eq!(flags.missing, []);
    switch.set_no_flood(BRIDGE, &flags.no_flood).await.unwrap();
    let no_flood = switch.ports(BRIDGE).await.unwrap();
    assert_eq!(port_changes(&plan, &no_flood).no_flood.len(), 0);

    // Without the entry, NORMAL would flood the reply to the source once more.
    let entry = plan.static_fdb.as_ref().unwrap();
    assert_eq!(
        (&*entry.port, entry.vlan, entry.mac),
        (BRIDGE, 0, BRIDGE_MAC)
    );
    lab.add_static_fdb_entry().unwrap();

    let reply = arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4);
    let trace = lab.trace(&lab.uplink(), &reply).unwrap();
    assert_eq!(
        (trace.priority(), trace.entered),
        (Some(52), 1),
        "{}",
        trace.raw
    );
    let request = who_has(GATEWAY_MAC, GATEWAY_IPV4, NODE_IPV4);
    let trace = lab.trace(&lab.uplink(), &request).unwrap();
    assert_eq!(trace.entered, 1, "{}", trace.raw);
}
