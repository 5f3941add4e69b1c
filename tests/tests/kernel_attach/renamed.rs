//! Interfaces that got each other's names while nobody looked.

use std::{fs, path::Path, thread};

use neighsteer::datapath::{self, AttachError, AttachOptions, Attached, Hook, Mode, State, pins};
use neighsteer_tests::{lab::wait_until, packet_socket::PacketSocket};

use crate::rig::*;

const NAMES: [&str; 3] = ["p0", "p1", "p.2"];

/// Whose programs have a link, by which they are found under another name.
fn hooks() -> &'static [Hook] {
    match tc_mode() {
        Mode::Clsact => &[Hook::Xdp],
        _ => &[Hook::Tc, Hook::Xdp],
    }
}

/// The other end of the pair, whose name stays.
fn outside(number: usize) -> String {
    format!("outside{number}")
}

fn make(names: &[&str]) {
    for (number, name) in names.iter().enumerate() {
        let outside = outside(number);
        ip(&[
            "link", "add", &outside, "type", "veth", "peer", "name", name,
        ]);
        for end in [name, outside.as_str()] {
            ip(&["link", "set", end, "up"]);
        }
    }
}

fn delete(names: &[&str]) {
    for number in 0..names.len() {
        ip(&["link", "del", &outside(number)]);
    }
}

fn rename(from: &str, to: &str) {
    ip(&["link", "set", from, "down"]);
    ip(&["link", "set", from, "name", to]);
    ip(&["link", "set", to, "up"]);
}

/// Gives each the name of the next, and the last the first one's.
fn rotate(names: &[&str]) {
    let last = names.len() - 1;
    rename(names[last], "tmpx");
    for at in (0..last).rev() {
        rename(names[at], names[at + 1]);
    }
    rename("tmpx", names[0]);
}

fn options(bpffs: &Path, interface: &str, hook: Hook) -> AttachOptions {
    AttachOptions {
        interface: interface.to_owned(),
        direction: datapath::Direction::Ingress,
        hook,
        policy: Some(POLICY),
        tag: None,
        steering_mark: None,
        validate: neighsteer_common::Validate::default(),
        bpffs: bpffs.to_owned(),
        clsact: false,
    }
}

fn attach(bpffs: &Path, interface: &str, hook: Hook) -> Attached {
    datapath::attach(&options(bpffs, interface, hook))
        .unwrap_or_else(|error| panic!("{interface}: {}", chain(&error)))
}

fn goes_on(attached: &Attached) -> bool {
    attached.replaced && attached.counters_kept
}

fn send_by(number: usize, frames: usize) {
    let socket = PacketSocket::open(&outside(number)).unwrap();
    for _ in 0..frames {
        socket.send(&arp_reply(BRIDGE_MAC)).unwrap();
    }
}

/// Waits until an interface has counted so many frames, which it must not pass.
fn expect(bpffs: &Path, interface: &str, expected: usize) {
    let probe = || {
        let counters = datapath::counters(interface, bpffs).unwrap();
        let packets: u64 = counters.iter().map(|counter| counter.packets).sum();
        (packets == expected as u64)
            .then_some(())
            .ok_or(packets.to_string())
    };
    wait_until(DEADLINE, format!("{expected} frames by {interface}"), probe)
        .unwrap_or_else(|error| panic!("{error}"));
}

fn nothing_is_attached(names: &[&str]) {
    for name in names {
        let shown = run("bpftool", &["net", "show", "dev", name]);
        assert!(!shown.contains("ingress"), "{shown}");
    }
}

/// Attaches to all; each counts as many frames as its number, and one.
fn attach_and_count(bpffs: &Path, names: &[&str], hook: Hook) {
    for (number, name) in names.iter().enumerate() {
        attach(bpffs, name, hook);
        send_by(number, number + 1);
        expect(bpffs, name, number + 1);
    }
}

#[test]
fn pins_go_round_with_the_names_and_the_counters_go_on() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    for hook in hooks() {
        for names in [&NAMES[..2], &NAMES] {
            make(names);
            attach_and_count(&bpffs, names, *hook);
            rotate(names);
            // At a time, as the agent does.
            thread::scope(|scope| {
                for name in names {
                    let bpffs = &bpffs;
                    scope.spawn(move || assert!(goes_on(&attach(bpffs, name, *hook)), "{name}"));
                }
            });
            for number in 0..names.len() {
                send_by(number, 1);
                expect(&bpffs, names[(number + 1) % names.len()], number + 2);
            }
            assert_eq!(entries(&rig.version()), names.len());
            for name in names {
                assert!(datapath::detach(name, &bpffs).unwrap(), "{name}");
            }
            assert!(rig.is_clean());
            nothing_is_attached(names);
            delete(names);
        }
    }
}

#[test]
fn what_went_round_is_detached_without_being_attached_again() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    for hook in hooks() {
        make(&NAMES);
        attach_and_count(&bpffs, &NAMES, *hook);
        rotate(&NAMES);
        for (left, name) in (0..NAMES.len()).rev().zip(NAMES) {
            assert!(datapath::detach(name, &bpffs).unwrap(), "{name}");
            nothing_is_attached(&[name]);
            assert_eq!(entries(&rig.version()), left);
        }
        assert!(rig.is_clean());
        delete(&NAMES);
    }
}

#[test]
fn a_name_that_moved_on_is_free_for_the_next() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    for hook in hooks() {
        make(&NAMES[..2]);
        attach_and_count(&bpffs, &NAMES[..2], *hook);
        rename("p1", "pz");
        rename("p0", "p1");
        assert!(goes_on(&attach(&bpffs, "p1", *hook)));
        send_by(0, 1);
        send_by(1, 1);
        expect(&bpffs, "p1", 2);
        expect(&bpffs, "pz", 3);
        let attachments = datapath::attachments(&bpffs).unwrap();
        let states = attachments
            .iter()
            .map(|it| (it.interface.as_str(), it.state));
        let expected = [("p1", State::Attached), ("pz", State::Attached)];
        assert_eq!(states.collect::<Vec<_>>(), expected);
        for name in ["p1", "pz"] {
            assert!(datapath::detach(name, &bpffs).unwrap());
            nothing_is_attached(&[name]);
        }
        assert!(rig.is_clean());
        delete(&NAMES[..2]);
    }
}

#[test]
fn a_new_interface_of_a_former_name_takes_no_pins_away() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    for hook in hooks() {
        make(&["p0"]);
        attach_and_count(&bpffs, &["p0"], *hook);
        rename("p0", "pz");
        ip(&["link", "add", "p0", "type", "veth", "peer", "name", "other"]);
        assert!(!datapath::detach("p0", &bpffs).unwrap(), "it has none");
        let attachments = datapath::attachments(&bpffs).unwrap();
        assert_eq!(attachments[0].state, State::Stale);
        assert_eq!(attachments[0].renamed.as_deref(), Some("pz"));
        let all = pins::interfaces_of_every_version(&bpffs).unwrap();
        assert_eq!(Vec::from_iter(all), ["pz"]);
        let attached = attach(&bpffs, "p0", *hook);
        assert!(!attached.replaced && !attached.counters_kept);
        expect(&bpffs, "p0", 0);
        send_by(0, 1);
        expect(&bpffs, "pz", 2);
        for name in ["p0", "pz"] {
            assert!(datapath::detach(name, &bpffs).unwrap());
        }
        assert!(rig.is_clean());
        ip(&["link", "del", "p0"]);
        delete(&["pz"]);
    }
}

#[test]
fn pins_that_a_killed_process_left_aside_are_found_again() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    let put_aside = |name: &str| {
        let aside = rig.version().join(format!("%aside-{name}"));
        fs::rename(rig.version().join(name), aside).unwrap();
    };
    for hook in hooks() {
        make(&NAMES[..2]);
        attach_and_count(&bpffs, &NAMES[..2], *hook);
        rotate(&NAMES[..2]);
        put_aside("p0");
        for name in ["p0", "p1"] {
            assert!(goes_on(&attach(&bpffs, name, *hook)), "{name}");
        }
        send_by(0, 1);
        expect(&bpffs, "p1", 2);
        expect(&bpffs, "p0", 2);
        assert_eq!(entries(&rig.version()), 2);

        // Cleanup detaches all that are listed.
        put_aside("p0");
        let all = pins::interfaces_of_every_version(&bpffs).unwrap();
        assert_eq!(Vec::from_iter(all), ["p0", "p1"]);
        assert!(datapath::detach("p0", &bpffs).unwrap());
        nothing_is_attached(&["p0"]);
        put_aside("p1");
        delete(&NAMES[..2]);
        let all = pins::interfaces_of_every_version(&bpffs).unwrap();
        assert_eq!(Vec::from_iter(all), ["p1"]);
        assert!(datapath::detach("p1", &bpffs).unwrap());
        assert!(rig.is_clean());
    }
}

#[test]
fn what_cannot_give_way_is_named_and_keeps_no_other_from_being_attached_or_detached() {
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    make(&NAMES);
    for name in ["p0", "p1"] {
        attach(&bpffs, name, Hook::Xdp);
    }
    ip(&["link", "del", "outside1"]);
    fs::create_dir(rig.version().join("p1/unmovable")).unwrap();
    rename("p0", "p1");
    let error = datapath::attach(&options(&bpffs, "p1", Hook::Xdp)).unwrap_err();
    assert!(matches!(error, AttachError::Renamed(_)), "{error}");
    assert!(error.to_string().contains("p1/unmovable"), "{error}");
    attach(&bpffs, "p.2", Hook::Xdp);
    assert!(datapath::detach("p.2", &bpffs).unwrap());
    let error = datapath::detach("p1", &bpffs).unwrap_err();
    assert!(error.to_string().contains("p1/unmovable"), "{error}");
    nothing_is_attached(&["p1"]);
    assert!(!rig.version().join("p0").exists());
    fs::remove_dir(rig.version().join("p1/unmovable")).unwrap();
    datapath::detach("p1", &bpffs).unwrap();
    assert!(rig.is_clean());
}

#[test]
fn three_capabilities_are_enough_where_names_went_round() {
    if let Some(bpffs) = bpffs_of_three_capabilities() {
        for hook in hooks() {
            let names = NAMES.map(|name| format!("{name}-{hook}"));
            for name in &names {
                assert!(goes_on(&attach(bpffs.as_ref(), name, *hook)), "{name}");
            }
        }
        return;
    }
    let Some(rig) = Rig::new() else { return };
    let bpffs = rig.bpffs();
    let names: Vec<_> = hooks()
        .iter()
        .map(|hook| NAMES.map(|name| format!("{name}-{hook}")))
        .collect();
    let all: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    make(&all);
    for (hook, names) in hooks().iter().zip(&names) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in &names {
            attach(&bpffs, name, *hook);
        }
        rotate(&names);
    }
    again_with_three_capabilities(
        "renamed::three_capabilities_are_enough_where_names_went_round",
        &bpffs,
    );
    for name in &all {
        assert!(datapath::detach(name, &bpffs).unwrap(), "{name}");
    }
    assert!(rig.is_clean());
}
