//! Open vSwitch's own ingress qdisc, which it puts on every interface of a bridge with
//! `hw-offload=true`, and the program at the same place.

use std::time::Duration;

use neighsteer::datapath::{Hook, Mode, State};
use neighsteer_common::{Decision, Kind};
use neighsteer_tests::{
    frames::{BRIDGE_MAC, HOST_IP, HOST_MAC, NODE_IP, arp_reply},
    lab::wait_until,
};

use crate::rig::*;

const SHAPE: Shape = Shape {
    followers: 2,
    mac: BRIDGE_MAC,
    gateway_vlan: None,
};
const PATIENCE: Duration = Duration::from_secs(30);
const OFFLOAD: [&str; 1] = ["other_config:hw-offload=true"];

fn reply() -> Vec<u8> {
    arp_reply(HOST_MAC, HOST_IP, BRIDGE_MAC, NODE_IP)
}

fn counted(rig: &Rig) -> u64 {
    let counters = rig.counters();
    let key = (Kind::ArpReply, Decision::SteerArp);
    counters.get(&key).map_or(0, |it| it.0)
}

fn qdisc() -> String {
    run("tc", &["qdisc", "show", "dev", UPLINK])
}

#[tokio::test]
async fn program_and_ingress_qdisc_share_the_uplink_until_vswitchd_starts_anew() {
    let Some(mut rig) = Rig::start(SHAPE, &OFFLOAD).await else {
        return;
    };
    assert!(qdisc().contains("qdisc ingress"), "{}", qdisc());
    let attached = rig.attach(Hook::Tc);
    let mode = if has_tcx() { Mode::Tcx } else { Mode::Clsact };
    assert_eq!(attached.mode, mode);
    rig.receive(&vec![reply(); 5]).await;
    assert_eq!(counted(&rig), 5);
    assert_eq!(rig.steered().await, [(Decision::SteerArp, 5)].into());

    // It takes the qdisc off and puts it on again, and with it go the filters of others.
    rig.switch.daemons_mut().kill_vswitchd();
    rig.switch.daemons_mut().start_vswitchd().unwrap();
    // This waits until it has done so.
    let seen = ["set", "Open_vSwitch", ".", "external_ids:seen=again"];
    rig.switch.daemons().vsctl(&seen).unwrap();
    assert!(qdisc().contains("qdisc ingress"), "{}", qdisc());
    let state = if has_tcx() {
        State::Attached
    } else {
        State::Stale
    };
    assert_eq!(rig.attached(), Some(state));

    // Attached anew, it goes on counting where it was.
    let again = rig.attach(Hook::Tc);
    assert!(again.counters_kept, "{again:?}");
    rig.send(&reply());
    wait_until(PATIENCE, "the sixth frame", || match counted(&rig) {
        6 => Ok(()),
        counted => Err(counted),
    })
    .unwrap();
}
