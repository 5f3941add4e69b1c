//! The demo as a user runs it.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_demo_keeps_its_promises_on_a_small_node_and_prints_data() {
    the_demo_keeps_its_promises_on("23.03");
}

#[test]
fn the_demo_keeps_its_promises_with_the_newer_versions_too() {
    let report = the_demo_keeps_its_promises_on("25.03");
    let ovn = report["versions"]["ovn"].as_str().unwrap();
    assert!(ovn.starts_with("25.03."), "{report}");
}

fn the_demo_keeps_its_promises_on(ovn: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_neighsteer-lab"))
        .args(["demo", "--udns", "5", "--output", "json", "--ovn", ovn])
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["udns"], 5);
    assert_eq!(report["legacy"]["arp_reply"]["routers_that_learn"], 6);
    assert_eq!(report["steered"]["arp_reply"]["routers_that_learn"], 1);
    assert_eq!(report["steered"]["routers_with_binding"], 6);
    // Progress goes to standard error, line by line where that is no terminal.
    assert!(
        messages.contains(&format!("bringing up OVN {ovn} with 5 UDNs")),
        "{messages}"
    );
    report
}

#[test]
fn a_demo_without_udns_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_neighsteer-lab"))
        .args(["demo", "--udns", "0"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--udns"));
}
