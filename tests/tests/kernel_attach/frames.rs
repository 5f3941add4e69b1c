//! What the programs see of frames on a real interface.

use neighsteer::datapath::{self, Hook, Mode, Warning};
use neighsteer_common::{Decision, Kind, Policy};

use crate::rig::*;

const CUSTOMER: u16 = 0x8100;
const SERVICE: u16 = 0x88a8;

/// Tags as `(TPID, TCI)`, the outermost first.
type Tags = &'static [(u16, u16)];

/// Decisions with gateway VLAN 5, and without one.
const TAGGED: [(Tags, Decision, Decision); 8] = [
    (&[], Decision::Normal, Decision::SteerArp),
    (&[(CUSTOMER, 5)], Decision::SteerArp, Decision::SteerArp),
    (&[(SERVICE, 0xe005)], Decision::SteerArp, Decision::SteerArp),
    (&[(CUSTOMER, 0)], Decision::Normal, Decision::SteerArp),
    (&[(CUSTOMER, 0xe000)], Decision::Normal, Decision::SteerArp),
    (&[(CUSTOMER, 7)], Decision::Normal, Decision::SteerArp),
    (
        &[(SERVICE, 5), (CUSTOMER, 7)],
        Decision::SteerArp,
        Decision::SteerArp,
    ),
    (
        &[(SERVICE, 7), (CUSTOMER, 5)],
        Decision::Normal,
        Decision::SteerArp,
    ),
];

#[test]
fn tags_count_the_same_on_every_hook() {
    let Some(rig) = Rig::new() else { return };
    for (hook, clsact) in [(Hook::Tc, false), (Hook::Tc, true), (Hook::Xdp, false)] {
        for (gateway_vlan, column) in [(Some(5), 0), (None, 1)] {
            let mut options = rig.options(hook);
            options.clsact = clsact;
            options.policy = Some(Policy {
                gateway_vlan,
                ..POLICY
            });
            datapath::attach(&options).unwrap();
            for (tags, with_vlan, without) in TAGGED {
                let decision = if column == 0 { with_vlan } else { without };
                let before = rig.packets(Kind::ArpReply, decision);
                send(&arp_reply_behind(BRIDGE_MAC, tags));
                rig.expect(Kind::ArpReply, decision, before + 1);
            }
            let all = rig.all_packets();
            // Behind three tags there is no ARP; the frame after it shows that it was not counted.
            send(&arp_reply_behind(
                BRIDGE_MAC,
                &[(CUSTOMER, 5), (CUSTOMER, 5), (CUSTOMER, 5)],
            ));
            send(&arp_reply(BROADCAST));
            rig.expect(Kind::ArpReply, Decision::Flood, 1);
            assert_eq!(rig.all_packets(), all + 1, "{hook} {gateway_vlan:?}");
            rig.detach();
        }
    }
}

#[test]
fn bytes_count_the_tag_that_was_taken_off() {
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        rig.attach(hook);
        send(&arp_reply_behind(BRIDGE_MAC, &[(CUSTOMER, 5)]));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        assert_eq!(rig.counters()[0].bytes, 46, "{hook}");
        rig.detach();
    }
}

#[test]
fn headers_outside_the_linear_part_are_read() {
    let Some(rig) = Rig::new() else { return };
    // A packet socket puts all but the Ethernet header of a frame above one page into fragments.
    let mut arp = arp_reply(BRIDGE_MAC);
    arp.resize(6000, 0);
    let mut ndp = [BRIDGE_MAC, SENDER_MAC].concat();
    ndp.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0x17, 0x50, 0, 255]);
    ndp.extend([0xfd; 32]);
    // Two destination options of 2,048 bytes, then a Neighbor Advertisement.
    for next in [60, 58] {
        ndp.extend([next, 255]);
        ndp.extend([0; 2046]);
    }
    ndp[20] = 60;
    ndp.extend([136, 0, 0, 0]);
    ndp.resize(6000, 0);
    for (hook, clsact) in [(Hook::Tc, false), (Hook::Tc, true), (Hook::Xdp, false)] {
        let mut options = rig.options(hook);
        options.clsact = clsact;
        datapath::attach(&options).unwrap();
        send(&arp);
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        send(&ndp);
        rig.expect(Kind::NeighborAdvertisement, Decision::SteerNa, 1);
        let bytes: u64 = rig.counters().iter().map(|counter| counter.bytes).sum();
        assert_eq!(bytes, 12_000, "{hook}");
        rig.detach();
    }
}

#[test]
fn xdp_says_that_stripped_tags_escape_it_and_where_it_runs() {
    let Some(rig) = Rig::new() else { return };
    run("ethtool", &["-K", UPLINK, "rxvlan", "off"]);
    let attached = rig.attach(Hook::Xdp);
    assert_eq!(attached.mode, Mode::XdpNative);
    assert_eq!(attached.warnings, []);
    run("ethtool", &["-K", UPLINK, "rxvlan", "on"]);
    let attached = rig.attach(Hook::Xdp);
    assert_eq!(
        attached.warnings,
        [Warning::RxVlanOffload {
            interface: UPLINK.to_owned()
        }]
    );
    assert_eq!(rig.attach(Hook::Tc).warnings, []);
}

#[test]
fn where_the_driver_has_no_xdp_the_stack_runs_it() {
    let Some(rig) = Rig::new() else { return };
    let mut options = rig.options(Hook::Xdp);
    options.interface = "lo".to_owned();
    let attached = datapath::attach(&options).unwrap();
    assert_eq!(attached.mode, Mode::XdpGeneric);
    assert!(matches!(
        attached.warnings[..],
        [Warning::GenericXdp { .. }, ..]
    ));
    let again = datapath::attach(&options).unwrap();
    assert_eq!(again.mode, Mode::XdpGeneric);
    assert!(again.replaced);
    assert!(datapath::detach("lo", &rig.bpffs()).unwrap());
}

#[test]
fn later_programs_and_the_stack_get_every_frame() {
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        rig.attach(hook);
        let before = received();
        send(&arp_reply(BRIDGE_MAC));
        send(&arp_reply(BROADCAST));
        rig.expect(Kind::ArpReply, Decision::Flood, 1);
        assert_eq!(received(), before + 2, "{hook}");
        rig.detach();
    }
}

/// Frames that the uplink gave to the stack and that were not dropped on the way.
fn received() -> u64 {
    let shown = run("ip", &["-j", "-s", "link", "show", UPLINK]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let rx = &shown[0]["stats64"]["rx"];
    rx["packets"].as_u64().unwrap() - rx["dropped"].as_u64().unwrap()
}
