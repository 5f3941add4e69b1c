//! Attach, replace, take over, detach.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use neighsteer::datapath::{self, AttachError, AttachOptions, Hook, Mode, State};
use neighsteer_common::{Decision, Kind, Policy};
use neighsteer_tests::{lab::wait_until, vm};
use nix::sched::{CloneFlags, unshare};

use crate::{errors::nothing_is_attached, rig::*};

#[test]
fn attaching_mounts_bpffs_pins_everything_and_counts() {
    let Some(rig) = Rig::new() else { return };
    assert!(!rig.bpffs().exists());
    let attached = rig.attach(Hook::Tc);
    assert!(!attached.replaced && !attached.counters_kept);
    assert_eq!(attached.mode, tc_mode());
    for pin in pin_names(attached.mode) {
        assert!(rig.pins().join(pin).exists(), "{pin}");
    }
    assert_eq!(entries(&rig.pins()), pin_names(attached.mode).len());

    send(&arp_reply(BRIDGE_MAC));
    send(&arp_reply(BROADCAST));
    rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
    rig.expect(Kind::ArpReply, Decision::Flood, 1);
    let counters = rig.counters();
    assert_eq!(counters.len(), 2);
    for counter in counters {
        assert_eq!(counter.interface_index, attached.interface_index);
        assert_eq!(counter.bytes, 42);
        let age = datapath::read::now_ns() - counter.last_seen_ns;
        assert!(age < 60_000_000_000, "{age} ns");
    }
    let attachments = datapath::attachments(&rig.bpffs()).unwrap();
    assert_eq!(attachments.len(), 1);
    assert_eq!(attachments[0].interface, UPLINK);
    assert_eq!(attachments[0].state, State::Attached);
    assert_eq!(attachments[0].mode, Some(attached.mode));
    assert_eq!(attachments[0].program_id, Some(attached.program_id));
}

#[test]
fn detaching_leaves_nothing() {
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        for clsact in [false, true] {
            let mut options = rig.options(hook);
            options.clsact = clsact;
            datapath::attach(&options).unwrap();
            assert!(rig.detach());
            assert!(rig.is_clean(), "{hook}");
            let shown = run("bpftool", &["net", "show", "dev", UPLINK]);
            for program in ["tc_ingress", "xdp_ingress"] {
                assert!(!shown.contains(program), "{hook}: {shown}");
            }
            assert!(!run("ip", &["-d", "link", "show", UPLINK]).contains("xdp"));
            assert!(!run("tc", &["filter", "show", "dev", UPLINK, "ingress"]).contains("bpf"));
            assert!(!rig.detach(), "a second time there is nothing");
        }
    }
}

#[test]
fn a_second_attach_replaces_the_program_and_keeps_the_counters() {
    let Some(rig) = Rig::new() else { return };
    for (hook, clsact, mode) in [
        (Hook::Tc, false, tc_mode()),
        (Hook::Tc, true, Mode::Clsact),
        (Hook::Xdp, false, Mode::XdpNative),
    ] {
        let mut options = rig.options(hook);
        options.clsact = clsact;
        let first = datapath::attach(&options).unwrap();
        assert_eq!(first.mode, mode);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);

        options.policy = Some(Policy {
            bridge_mac: SENDER_MAC,
            ..POLICY
        });
        let second = datapath::attach(&options).unwrap();
        assert!(second.replaced && second.counters_kept);
        assert_eq!(second.mode, mode);
        assert_ne!(second.program_id, first.program_id);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::Normal, 1);
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        assert_eq!(rig.all_packets(), 2, "{mode} counts each frame once");
        assert_eq!(entries(&rig.pins()), pin_names(mode).len());
        rig.detach();
    }
}

#[test]
fn no_frame_is_missed_or_counted_twice_while_programs_are_replaced() {
    let Some(rig) = Rig::new() else { return };
    for (hook, clsact) in [(Hook::Tc, false), (Hook::Tc, true), (Hook::Xdp, false)] {
        let mut options = rig.options(hook);
        options.clsact = clsact;
        datapath::attach(&options).unwrap();
        let stop = AtomicBool::new(false);
        let sender = sender();
        let sent = thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let frame = arp_reply(BRIDGE_MAC);
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    sent += u64::from(sender.try_send(&frame).unwrap());
                    // An emulated processor does little else while frames come without a pause.
                    if let Some(pause) = vm::pause() {
                        thread::sleep(pause);
                    }
                }
                sent
            });
            for _ in 0..vm::cases(5).max(2) {
                assert!(datapath::attach(&options).unwrap().replaced);
            }
            stop.store(true, Ordering::Relaxed);
            sending.join().unwrap()
        });
        assert!(sent > 0);
        rig.expect(Kind::ArpReply, Decision::SteerArp, sent);
        rig.detach();
    }
}

#[test]
fn changing_the_hook_leaves_one_program() {
    let Some(rig) = Rig::new() else { return };
    let steps = [
        (Hook::Tc, false, tc_mode()),
        (Hook::Xdp, false, Mode::XdpNative),
        (Hook::Tc, true, Mode::Clsact),
        (Hook::Xdp, false, Mode::XdpNative),
        (Hook::Tc, false, tc_mode()),
        (Hook::Tc, true, Mode::Clsact),
        (Hook::Tc, false, tc_mode()),
    ];
    for (sent, (hook, clsact, mode)) in (1..).zip(steps) {
        let mut options = rig.options(hook);
        options.clsact = clsact;
        assert_eq!(datapath::attach(&options).unwrap().mode, mode);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, sent);
    }
    assert_eq!(rig.all_packets(), 7);
}

#[test]
fn the_pins_of_an_interface_that_is_gone_are_replaced() {
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        let first = rig.attach(hook);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        ip(&["link", "del", UPLINK]);
        assert_eq!(
            datapath::attachments(&rig.bpffs()).unwrap()[0].state,
            State::Stale
        );
        rig.make_pair();
        let second = rig.attach(hook);
        assert!(!second.replaced);
        assert_ne!(second.interface_index, first.interface_index);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 2);
        assert_eq!(rig.counters().len(), 2, "one for each interface index");
        rig.detach();
    }
}

#[test]
fn a_program_attached_under_a_former_name_is_replaced_and_not_doubled() {
    const RENAMED: &str = "renamed";
    let rename = |from: &str, to: &str| {
        ip(&["link", "set", from, "down"]);
        ip(&["link", "set", from, "name", to]);
        ip(&["link", "set", to, "up"]);
    };
    let Some(rig) = Rig::new() else { return };
    for hook in [Hook::Tc, Hook::Xdp] {
        // Pins of an interface that is gone may have the name already.
        let options = AttachOptions {
            interface: RENAMED.to_owned(),
            ..rig.options(hook)
        };
        ip(&[
            "link", "add", RENAMED, "type", "veth", "peer", "name", "other",
        ]);
        datapath::attach(&options).unwrap();
        ip(&["link", "del", RENAMED]);

        rig.attach(hook);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        rename(UPLINK, RENAMED);
        let attached = datapath::attach(&options).unwrap();
        assert!(attached.replaced);
        send(&arp_reply(BRIDGE_MAC));
        let counted = || {
            let counters = datapath::counters(RENAMED, &rig.bpffs()).unwrap();
            let packets: u64 = counters.iter().map(|counter| counter.packets).sum();
            // A filter has no link by which its counters would be found under the new name.
            let expected = 1 + u64::from(attached.mode != Mode::Clsact);
            (packets == expected)
                .then_some(())
                .ok_or(packets.to_string())
        };
        wait_until(DEADLINE, "each frame to count once", counted).unwrap();
        assert!(datapath::detach(RENAMED, &rig.bpffs()).unwrap());
        rig.detach();
        assert!(rig.is_clean());
        rename(RENAMED, UPLINK);
        nothing_is_attached();
    }
}

#[test]
fn the_link_of_an_interface_in_another_namespace_is_not_taken_away() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Xdp);
    // Interfaces of the same names and with the same indexes.
    let _held = fs::File::open("/proc/thread-self/ns/net").unwrap();
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    rig.make_pair();
    for hook in [Hook::Tc, Hook::Xdp] {
        let error = datapath::attach(&rig.options(hook)).unwrap_err();
        assert!(
            matches!(error, AttachError::AttachedElsewhere { .. }),
            "{error}"
        );
    }
    let mode = Mode::XdpNative;
    assert_eq!(entries(&rig.pins()), pin_names(mode).len());
    assert!(rig.detach());
}

#[test]
fn what_a_killed_process_leaves_is_taken_over() {
    let Some(rig) = Rig::new() else { return };
    // The pins that are there between two steps of an attachment.
    let pins = rig.pins();
    for hook in [Hook::Tc, Hook::Xdp] {
        let attached = rig.attach(hook);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
        let _ = fs::remove_file(pins.join("link"));
        fs::rename(pins.join("program"), pins.join("program-next")).unwrap();
        assert!(rig.attach(hook).counters_kept);
        send(&arp_reply(BRIDGE_MAC));
        rig.expect(Kind::ArpReply, Decision::SteerArp, 2);
        assert_eq!(entries(&pins), pin_names(attached.mode).len());
        rig.detach();
    }

    // A filter outlives every pin.
    let mut options = rig.options(Hook::Tc);
    options.clsact = true;
    datapath::attach(&options).unwrap();
    fs::remove_dir_all(&pins).unwrap();
    let attached = datapath::attach(&options).unwrap();
    assert!(attached.replaced && !attached.counters_kept);
    send(&arp_reply(BRIDGE_MAC));
    rig.expect(Kind::ArpReply, Decision::SteerArp, 1);
}
