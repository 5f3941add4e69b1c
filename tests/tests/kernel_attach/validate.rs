//! Invalid frames on a real interface: dropped where that was asked for, and then seen by nobody.

use neighsteer::datapath::{self, Checks, Hook, Mode};
use neighsteer_common::{Check, Validate};
use neighsteer_tests::{
    frames::{HOST_IP6, HOST_MAC, Ipv6, Mac, NODE_IP6, Ndp},
    packet_socket::{PacketReceiver, PacketSocket},
};

use crate::rig::*;

/// A way for frames into the node past a program.
struct Way {
    hook: Hook,
    clsact: bool,
    /// The interface that the program is on, and the one that frames are sent by.
    interface: &'static str,
    outside: &'static str,
}

const WAYS: [Way; 4] = [
    Way {
        hook: Hook::Tc,
        clsact: false,
        interface: UPLINK,
        outside: OUTSIDE,
    },
    Way {
        hook: Hook::Tc,
        clsact: true,
        interface: UPLINK,
        outside: OUTSIDE,
    },
    Way {
        hook: Hook::Xdp,
        clsact: false,
        interface: UPLINK,
        outside: OUTSIDE,
    },
    // Its driver has no XDP: the network stack runs the program.
    Way {
        hook: Hook::Xdp,
        clsact: false,
        interface: "lo",
        outside: "lo",
    },
];

/// An advertisement to the bridge, with this hop limit. Its source address names it.
fn advertisement(hop_limit: u8, index: u16) -> Vec<u8> {
    let mut source = HOST_IP6.segments();
    source[7] = index;
    Ipv6 {
        hop_limit,
        ..Ndp::advertisement(HOST_IP6, true, HOST_MAC).packet(source.into(), NODE_IP6)
    }
    .frame(HOST_MAC, Mac(BRIDGE_MAC))
    .to_bytes()
}

fn checks(rig: &Rig, interface: &str) -> Checks {
    datapath::checks(interface, &rig.bpffs()).unwrap()
}

fn failed(checks: &Checks) -> u64 {
    let of_hop_limit = checks
        .failed
        .iter()
        .filter(|counter| counter.check == Check::HopLimit);
    of_hop_limit.map(|counter| counter.packets).sum()
}

#[test]
fn an_invalid_advertisement_is_dropped_on_every_hook_and_a_valid_one_arrives() {
    let Some(rig) = Rig::new() else { return };
    ip(&["link", "set", "lo", "up"]);
    for way in WAYS {
        let mut options = rig.options(way.hook);
        options.clsact = way.clsact;
        options.interface = way.interface.to_owned();
        let outside = PacketSocket::open(way.outside).unwrap();
        for (validate, arrives) in [
            (Validate::Off, true),
            (Validate::Count, true),
            (Validate::Drop, false),
            (Validate::Count, true),
        ] {
            options.validate = validate;
            let attached = datapath::attach(&options).unwrap();
            let is_generic = attached.mode == Mode::XdpGeneric;
            assert_eq!(is_generic, way.interface == "lo", "{}", attached.mode);
            let what = format!("{} {validate}", attached.mode);
            let before = checks(&rig, way.interface);
            let receiver = PacketReceiver::open(way.interface).unwrap();
            let [invalid, valid] = [advertisement(64, 1), advertisement(255, 2)];
            outside.send(&invalid).unwrap();
            outside.send(&valid).unwrap();
            if arrives {
                assert_eq!(receiver.next().unwrap(), invalid, "{what}");
            }
            // Frames keep their order: nothing came before the valid one.
            assert_eq!(receiver.next().unwrap(), valid, "{what}");
            let now = checks(&rig, way.interface);
            let counted = u64::from(validate != Validate::Off);
            assert_eq!(failed(&now) - failed(&before), counted, "{what}");
            let dropped = u64::from(validate == Validate::Drop);
            assert_eq!(now.dropped - before.dropped, dropped, "{what}");
        }
        // Both frames of each round, the dropped one too.
        let counters = datapath::counters(way.interface, &rig.bpffs()).unwrap();
        let packets: u64 = counters.iter().map(|counter| counter.packets).sum();
        assert_eq!(packets, 8, "{}", way.hook);
        datapath::detach(way.interface, &rig.bpffs()).unwrap();
    }
    assert!(rig.is_clean());
}

#[test]
fn counts_go_on_where_a_program_with_another_setting_takes_the_place() {
    let Some(rig) = Rig::new() else { return };
    let mut options = rig.options(Hook::Tc);
    for (index, validate) in (1..).zip([Validate::Count, Validate::Drop, Validate::Count]) {
        options.validate = validate;
        let attached = datapath::attach(&options).unwrap();
        assert_eq!(attached.replaced, index > 1);
        let receiver = PacketReceiver::open(UPLINK).unwrap();
        send(&advertisement(1, 1));
        send(&advertisement(255, 2));
        while receiver.next().unwrap() != advertisement(255, 2) {}
        assert_eq!(failed(&checks(&rig, UPLINK)), index, "{validate}");
    }
    assert_eq!(checks(&rig, UPLINK).dropped, 1);
}
