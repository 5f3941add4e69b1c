//! The shipped object under plain bpftool and tc, without the agent.

use std::{path::Path, time::Duration};

use neighsteer_common::{Decision, Kind};
use neighsteer_tests::{
    frames::{HOST_IP6, HOST_MAC, Ipv6, Mac, NODE_IP6, Ndp},
    kernel,
    lab::wait_until,
};

use crate::rig::*;

#[test]
fn bpftool_loads_the_object_and_prints_the_counters_by_field() {
    let Some(rig) = Rig::new() else { return };
    let (object, pins) = object_and_bpffs(&rig);
    run(
        "bpftool",
        &[
            "prog",
            "loadall",
            &object,
            &format!("{pins}/programs"),
            "pinmaps",
            &format!("{pins}/maps"),
        ],
    );
    for program in ["tc_ingress", "xdp_ingress"] {
        assert!(Path::new(&format!("{pins}/programs/{program}")).exists());
    }
    run("tc", &["qdisc", "add", "dev", UPLINK, "clsact"]);
    run(
        "tc",
        &[
            "filter",
            "add",
            "dev",
            UPLINK,
            "ingress",
            "bpf",
            "da",
            "object-pinned",
            &format!("{pins}/programs/tc_ingress"),
        ],
    );
    send(&arp_reply(BRIDGE_MAC));
    let dumped = dump(&format!("{pins}/maps/COUNTERS"));
    let entry = &dumped[0]["formatted"];
    let key = &entry["key"];
    assert_eq!(key["kind"], Kind::ArpReply as u8, "{dumped}");
    assert_eq!(key["decision"], Decision::Undecided as u8);
    assert_eq!(key["direction"], 0);
    assert!(key["interface_index"].as_u64().unwrap() > 0);
    let packets: u64 = entry["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| {
            let value = &value["value"];
            assert!(value["bytes"].is_u64() && value["last_seen_ns"].is_u64());
            value["packets"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(packets, 1);

    let from_afar = Ipv6 {
        hop_limit: 64,
        ..Ndp::advertisement(HOST_IP6, true, HOST_MAC).packet(HOST_IP6, NODE_IP6)
    };
    let frame = from_afar.frame(HOST_MAC, Mac(BRIDGE_MAC));
    send(&frame.to_bytes());
    let dumped = dump(&format!("{pins}/maps/CHECKS"));
    let values = dumped[0]["formatted"]["values"].as_array().unwrap();
    let sum = |field: &str| -> u64 {
        let of_one = |value: &serde_json::Value| value["value"][field].as_u64();
        values.iter().map(|value| of_one(value).unwrap()).sum()
    };
    assert_eq!(sum("hop_limit_not_255"), 1, "{dumped}");
    for field in ["code_not_zero", "fragmented_ndp", "odd_sender", "dropped"] {
        assert_eq!(sum(field), 0, "{field}: {dumped}");
    }
}

/// What bpftool prints of a map, once there is something in it.
fn dump(pin: &str) -> serde_json::Value {
    let dumped = wait_until(Duration::from_secs(10), "a counted frame", || {
        match run("bpftool", &["-j", "map", "dump", "pinned", pin]) {
            empty if empty.trim() == "[]" => Err(empty),
            dumped => Ok(dumped),
        }
    });
    serde_json::from_str(&dumped.unwrap()).unwrap()
}

#[test]
fn tc_loads_the_object_by_section() {
    let Some(rig) = Rig::new() else { return };
    let (object, _) = object_and_bpffs(&rig);
    run("tc", &["qdisc", "add", "dev", UPLINK, "clsact"]);
    run(
        "tc",
        &[
            "filter",
            "add",
            "dev",
            UPLINK,
            "ingress",
            "bpf",
            "da",
            "obj",
            &object,
            "sec",
            "classifier",
        ],
    );
    let shown = run("tc", &["filter", "show", "dev", UPLINK, "ingress"]);
    assert!(shown.contains("direct-action"), "{shown}");
}

/// The path of the shipped object, and a mounted bpffs.
fn object_and_bpffs(rig: &Rig) -> (String, String) {
    let object = kernel::object(kernel::SHIPPED);
    neighsteer::datapath::bpffs::ensure(&rig.bpffs()).unwrap();
    (
        object.to_str().unwrap().to_owned(),
        rig.bpffs().to_str().unwrap().to_owned(),
    )
}
