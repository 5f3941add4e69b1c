//! Flows, port flags and forwarding entries on a real ovs-vswitchd, by way of ovs-ofctl and the
//! control socket.

use std::collections::BTreeMap;

use neighsteer::{
    ids::{Mac, OfPort},
    openflow::{
        Flow, FlowChanges, OfCtl, Switch, SwitchError,
        unixctl::{FdbPort, UnixCtl, UnixCtlError, UnixCtlSession},
    },
    plan::{BridgePlan, COOKIE, Gates, Install, diff, plan, port_changes},
    topology::{AgeThreshold, BridgeGroup, GatewayRouter, HostEndpoint, IngressPort},
};
use neighsteer_tests::{
    dummy_switch::DummySwitch,
    frames::{arp_announcement, arp_reply},
};

const BRIDGE: &str = "breth0";
const BRIDGE_MAC: &str = "02:42:ac:12:00:03";
const NEIGHBOUR: Mac = Mac([2, 0x42, 0xac, 0x12, 0, 1]);

/// Names like OVN's: longer than OpenFlow's 15 bytes, and alike in these.
const PORTS: [(&str, u16); 5] = [
    ("eth0", 1),
    ("patch-breth0_node-1-to-br-int", 2),
    ("patch-breth0_blue_node-1-to-br-int", 3),
    ("patch-breth0_blue2_node-1-to-br-int", 4),
    ("patch-vlan7_ovn_localnet_port-to-br-int", 7),
];

fn bridge() -> (DummySwitch, OfCtl) {
    let vswitch = DummySwitch::start().unwrap();
    vswitch.add_bridge(BRIDGE, BRIDGE_MAC).unwrap();
    vswitch.add_ports(BRIDGE, &PORTS).unwrap();
    let switch = OfCtl::new(vswitch.run_directory());
    (vswitch, switch)
}

async fn control(vswitch: &DummySwitch) -> UnixCtlSession {
    let control = UnixCtl::of_vswitchd(vswitch.run_directory()).unwrap();
    control.connect().await.unwrap()
}

fn ofport(number: u16) -> OfPort {
    OfPort::from_column(Some(number.into())).unwrap()
}

fn mac(text: &str) -> Mac {
    text.parse().unwrap()
}

fn router(name: &str, (patch_port, number): (&str, u16)) -> GatewayRouter {
    GatewayRouter {
        name: name.into(),
        network: None,
        external_port: format!("rtoe-{name}").into(),
        external_mac: Some(mac(BRIDGE_MAC)),
        datapath: None,
        patch_port: patch_port.into(),
        ofport: ofport(number),
        mac_binding_age_threshold: AgeThreshold::default(),
    }
}

fn group(gateway_vlan: Option<u16>) -> BridgeGroup {
    let ingress = |(name, number): (&str, u16)| IngressPort {
        name: name.into(),
        ofport: ofport(number),
    };
    BridgeGroup {
        bridge: BRIDGE.into(),
        bridge_mac: mac(BRIDGE_MAC),
        datapath_type: "dummy".into(),
        host: HostEndpoint::Local,
        uplink: ingress(PORTS[0]),
        secondary: vec![ingress(PORTS[4])],
        source: router("GR_node-1", PORTS[1]),
        followers: vec![
            router("GR_blue_node-1", PORTS[2]),
            router("GR_blue2_node-1", PORTS[3]),
        ],
        gateway_vlan,
        ipv4: true,
        ipv6: true,
        node_addresses: Vec::new(),
    }
}

fn desired(gateway_vlan: Option<u16>) -> BridgePlan {
    plan(
        &group(gateway_vlan),
        Gates::new(true, true).unwrap(),
        Install::Overlay,
    )
}

/// Carries a plan out, and says how many things had to be written.
async fn converge(vswitch: &DummySwitch, switch: &OfCtl, plan: &BridgePlan) -> usize {
    let installed = switch.dump_flows(BRIDGE, None).await.unwrap();
    let changes = diff(&plan.flows, &installed);
    switch.change_flows(BRIDGE, &changes).await.unwrap();
    let ports = switch.ports(BRIDGE).await.unwrap();
    let flags = port_changes(plan, &ports);
    assert_eq!(flags.missing, []);
    switch.set_no_flood(BRIDGE, &flags.no_flood).await.unwrap();
    let mut control = control(vswitch).await;
    let entries = control.fdb_show(BRIDGE).await.unwrap();
    let missing = plan.missing_fdb(&entries);
    if let Some(fdb) = missing {
        let added = control.fdb_add(BRIDGE, &fdb.port, fdb.vlan, fdb.mac).await;
        added.unwrap();
    }
    changes.add.len() + changes.delete.len() + flags.no_flood.len() + usize::from(missing.is_some())
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The ports that a traced frame leaves by, in order.
fn outputs(trace: &str) -> Vec<String> {
    let line = trace
        .lines()
        .find_map(|line| line.strip_prefix("Datapath actions: "));
    let actions = line.unwrap().split(',').map(str::to_owned);
    actions.collect()
}

#[tokio::test]
async fn a_plan_that_was_carried_out_asks_for_nothing_more() {
    for vlan in [None, Some(1024)] {
        let (vswitch, switch) = bridge();
        let plan = desired(vlan);
        assert_eq!(plan.flows.len(), 12);
        assert_eq!(converge(&vswitch, &switch, &plan).await, 12 + 2 + 1);
        assert_eq!(converge(&vswitch, &switch, &plan).await, 0);
        let ours = switch.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap();
        assert_eq!(ours.len(), 12);
    }
}

#[tokio::test]
async fn flows_of_others_stay_whatever_is_written_and_deleted() {
    let (vswitch, switch) = bridge();
    let foreign = "cookie=0xdeff105, priority=50, table=0, ipv6, dl_dst=02:42:ac:12:00:03, \
                   actions=ct(zone=64000,nat,table=1)";
    vswitch
        .ofctl(&["-O", "OpenFlow13", "add-flow"], BRIDGE, &[foreign])
        .unwrap();
    let before = switch.dump_flows(BRIDGE, None).await.unwrap();

    let plan = desired(None);
    converge(&vswitch, &switch, &plan).await;
    let gate_off = neighsteer::plan::plan(&group(None), Gates::default(), Install::Overlay);
    assert_eq!(converge(&vswitch, &switch, &gate_off).await, 12);
    let after = switch.dump_flows(BRIDGE, None).await.unwrap();
    let flows = |dump: &[neighsteer::openflow::InstalledFlow]| {
        dump.iter()
            .map(|it| it.flow.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(flows(&after), flows(&before));
}

#[tokio::test]
async fn deletion_takes_a_flow_with_our_cookie_only() {
    let (vswitch, switch) = bridge();
    let ours = desired(None).flows.remove(0);
    let theirs = Flow {
        cookie: neighsteer::openflow::Cookie(0xdef_f105),
        ..ours.clone()
    };
    switch
        .add_flows(BRIDGE, std::slice::from_ref(&theirs))
        .await
        .unwrap();
    switch
        .delete_flows(BRIDGE, std::slice::from_ref(&ours))
        .await
        .unwrap();
    let left = switch
        .dump_flows(BRIDGE, Some(theirs.cookie))
        .await
        .unwrap();
    assert_eq!(left.len(), 1);
    // And the comparison does not ask for ours to be written over it.
    let installed = switch.dump_flows(BRIDGE, None).await.unwrap();
    let changes = diff(std::slice::from_ref(&ours), &installed);
    assert_eq!(changes.foreign, [theirs]);
    assert!(changes.is_empty());
    drop(vswitch);
}

#[tokio::test]
async fn a_rejected_flow_is_named_and_nothing_of_its_bundle_stays() {
    let (_vswitch, switch) = bridge();
    let good = desired(None).flows.remove(0);
    let bad: Flow = format!("cookie={COOKIE}, priority=7, table=0, actions=group:9")
        .parse()
        .unwrap();
    let changes = FlowChanges {
        add: vec![good, bad],
        ..FlowChanges::default()
    };
    let error = switch.change_flows(BRIDGE, &changes).await.unwrap_err();
    match &error {
        SwitchError::Rejected { flow, error, .. } => {
            assert_eq!(error, "OFPBAC_BAD_OUT_GROUP");
            assert!(flow.contains("group:9"), "{flow}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(switch.dump_flows(BRIDGE, Some(COOKIE)).await.unwrap(), []);
}

#[tokio::test]
async fn no_flood_is_set_and_cleared_by_number_and_holds_back_broadcasts() {
    let (vswitch, switch) = bridge();
    let mut control = control(&vswitch).await;
    let frame = hex(&arp_announcement(NEIGHBOUR, [172, 18, 0, 1].into()));
    let mut receivers = async || {
        let trace = control
            .trace(BRIDGE, "in_port=1", Some(&frame))
            .await
            .unwrap();
        outputs(&trace).len()
    };
    // Every port but the one it came in by, and the host.
    assert_eq!(receivers().await, 5);

    let flags = BTreeMap::from([(ofport(3), true), (ofport(4), true)]);
    switch.set_no_flood(BRIDGE, &flags).await.unwrap();
    assert_eq!(receivers().await, 3);
    let no_flood = |ports: Vec<neighsteer::openflow::PortDescription>| {
        let set = ports.into_iter().filter(|port| port.no_flood);
        set.map(|port| port.ofport.get()).collect::<Vec<_>>()
    };
    assert_eq!(no_flood(switch.ports(BRIDGE).await.unwrap()), [3, 4]);

    // A follower is promoted: its flag is cleared, the other one's stays.
    let flags = BTreeMap::from([(ofport(3), false)]);
    switch.set_no_flood(BRIDGE, &flags).await.unwrap();
    assert_eq!(no_flood(switch.ports(BRIDGE).await.unwrap()), [4]);

    let flags = BTreeMap::from([(ofport(99), true)]);
    let error = switch.set_no_flood(BRIDGE, &flags).await.unwrap_err();
    assert!(
        matches!(error, SwitchError::NoSuchPort { ofport, .. } if ofport.get() == 99),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_steered_reply_reaches_source_and_host_and_a_broadcast_no_follower() {
    let (vswitch, switch) = bridge();
    converge(&vswitch, &switch, &desired(None)).await;
    let mut control = control(&vswitch).await;
    let (from, to) = ([172, 18, 0, 1].into(), [172, 18, 0, 3].into());
    let reply = hex(&arp_reply(NEIGHBOUR, from, mac(BRIDGE_MAC), to));
    for ingress in ["in_port=1", "in_port=7"] {
        let trace = control.trace(BRIDGE, ingress, Some(&reply)).await.unwrap();
        assert!(
            trace.contains("priority 52, cookie 0x6e65696768737472"),
            "{trace}"
        );
        assert_eq!(outputs(&trace).len(), 2, "{trace}");
    }
    // From the source itself it is not steered.
    let trace = control
        .trace(BRIDGE, "in_port=2", Some(&reply))
        .await
        .unwrap();
    assert!(!trace.contains("priority 52"), "{trace}");

    let broadcast = hex(&arp_announcement(NEIGHBOUR, from));
    let trace = control
        .trace(BRIDGE, "in_port=1", Some(&broadcast))
        .await
        .unwrap();
    assert_eq!(
        outputs(&trace).len(),
        3,
        "source, secondary and host: {trace}"
    );
}

#[tokio::test]
async fn a_static_entry_is_added_shown_kept_by_a_flush_and_deleted() {
    let (vswitch, _switch) = bridge();
    let mut control = control(&vswitch).await;
    control
        .fdb_add(BRIDGE, BRIDGE, 5, mac(BRIDGE_MAC))
        .await
        .unwrap();
    control.call("fdb/flush", &[BRIDGE]).await.unwrap();
    let entries = control.fdb_show(BRIDGE).await.unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    assert_eq!((entry.port, entry.vlan), (FdbPort::Local, 5));
    assert!(entry.is_static);
    control.fdb_del(BRIDGE, 5, mac(BRIDGE_MAC)).await.unwrap();
    assert_eq!(control.fdb_show(BRIDGE).await.unwrap(), []);

    let error = control.fdb_show("br-none").await.unwrap_err();
    assert!(matches!(error, UnixCtlError::Command { .. }), "{error:?}");
    // A refused command leaves the connection usable.
    control.fdb_show(BRIDGE).await.unwrap();
}

#[tokio::test]
async fn everything_is_put_back_after_a_restart_of_vswitchd() {
    let (mut vswitch, switch) = bridge();
    let plan = desired(None);
    converge(&vswitch, &switch, &plan).await;

    vswitch.kill_vswitchd();
    let error = switch.dump_flows(BRIDGE, None).await.unwrap_err();
    assert!(matches!(error, SwitchError::Refused { .. }), "{error:?}");

    vswitch.start_vswitchd().unwrap();
    // Bridges come up after the control socket: ovs-vsctl waits for them.
    vswitch
        .vsctl(&["set", "open", ".", "external_ids:started=again"])
        .unwrap();
    assert_eq!(converge(&vswitch, &switch, &plan).await, 12 + 2 + 1);
    assert_eq!(converge(&vswitch, &switch, &plan).await, 0);
}

#[tokio::test]
async fn a_bridge_that_does_not_exist_is_told_from_a_switch_that_is_down() {
    let (_vswitch, switch) = bridge();
    let error = switch.dump_flows("br-none", None).await.unwrap_err();
    assert!(
        matches!(error, SwitchError::SocketMissing { .. }),
        "{error:?}"
    );
}
