//! Start, steering, status, clean-up.

use neighsteer_tests::{
    frames::{arp_reply, neighbor_advertisement},
    lab::{
        BRIDGE_MAC, GATEWAY_IPV4, GATEWAY_IPV6, GATEWAY_MAC, NODE_IPV4, NODE_IPV6, Network,
        OvnVersion,
    },
};

use crate::{rig, rig::PATIENCE};

pub fn the_agent_steers_says_so_and_is_cleaned_up_after(version: OvnVersion) {
    let rig = rig(version, 3);
    for network in rig.lab.udns() {
        rig.lab.set_no_flood(network, false).unwrap();
    }
    let flows = rig.lab.flows("br-ex").unwrap().len();
    let mut agent = rig.steering_agent();

    assert_eq!(rig.our_flows().len(), 6);
    let mut no_flood = rig.lab.no_flood_ports().unwrap();
    no_flood.sort();
    assert_eq!(no_flood, [1, 2, 3].map(|udn| Network(udn).patch_port()));
    assert!(rig.lab.has_static_fdb_entry().unwrap());
    for frame in [
        arp_reply(GATEWAY_MAC, GATEWAY_IPV4, BRIDGE_MAC, NODE_IPV4),
        neighbor_advertisement(GATEWAY_MAC, GATEWAY_IPV6, BRIDGE_MAC, NODE_IPV6),
    ] {
        let trace = rig.lab.trace(&rig.lab.uplink(), &frame).unwrap();
        assert_eq!(trace.priority(), Some(52), "{}", trace.raw);
        assert_eq!((trace.entered, trace.learned), (1, 1), "{}", trace.raw);
        let to_source = format!("output:\"{}\"", Network::DEFAULT.patch_port());
        assert!(trace.raw.contains(&to_source), "{}", trace.raw);
        let actions = &trace.datapath_actions;
        assert!(trace.outputs_to("br-ex"), "{actions}");
        assert!(!trace.outputs_to(&rig.lab.uplink()), "{actions}");
    }
    let audit = rig.run(&["audit"]);
    assert_eq!(audit.status.code(), Some(0), "{audit:?}");
    assert_eq!(rig.status()["bad_bindings"], 0, "{}", rig.status());

    assert!(agent.terminate(PATIENCE).unwrap().success());
    let cleaned = rig.run(&["cleanup"]);
    assert!(cleaned.status.success(), "{cleaned:?}");
    assert_eq!(rig.lab.flows("br-ex").unwrap().len(), flows);
    assert_eq!(rig.lab.no_flood_ports().unwrap(), Vec::<String>::new());
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
}
