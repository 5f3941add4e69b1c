//! A lab that is a DPU, with an agent.

use std::collections::BTreeSet;

use neighsteer_tests::lab::{AgentProcess, Lab, wait_until};
use serde_json::Value;

use crate::rig::{PATIENCE, Rig};

/// A lab that is a DPU, where there is a representor to begin with.
pub fn dpu(udns: u16, representor: &str) -> Rig {
    let rig = Rig::build(Lab::builder(), udns, &[]);
    rig.lab.become_dpu(representor).unwrap();
    rig
}

/// Flags of a DPU's agent, and more of them. Were anything looked for in intervals, none would be over
/// in time.
pub fn agent(rig: &Rig, flags: &[&str]) -> AgentProcess {
    let sysfs = rig.lab.sysfs().display().to_string();
    let mode = [
        "--mode",
        "dpu",
        "--sysfs",
        &sysfs,
        "--check-interval",
        "3600",
    ];
    rig.agent(&[&mode, flags].concat())
}

/// The bridge as `status` has it, once it is steered with the host behind this port.
pub fn wait_until_steered(rig: &Rig, host: &str) -> Value {
    rig.wait_for_status("the bridge to be steered", |status| {
        let group = status["groups"].as_array()?.first()?;
        let steering = status["steering"].as_array()?;
        let bridge = steering.iter().find(|it| it["bridge"] == "br-ex")?;
        let is_steered = bridge["converged"] == true && bridge["flows"] == 2;
        (group["host"] == host && is_steered).then(|| status.clone())
    })
}

/// Waits until the bridge is no group's any more, and returns why.
pub fn wait_until_left_out(rig: &Rig) -> String {
    rig.wait_for_status("the bridge to be left out", |status| {
        let skipped = status["skipped"].as_array()?;
        let bridge = skipped.iter().find(|it| it["object"] == "br-ex")?;
        let steering = status["steering"].as_array()?;
        let steered = steering.iter().find(|it| it["bridge"] == "br-ex")?;
        let gone = status["groups"].as_array()?.is_empty() && steered["flows"] == 0;
        gone.then(|| bridge["reason"].as_str().map(str::to_owned))?
    })
}

/// Waits until the shared address leads to the interface.
pub fn wait_for_entry(rig: &Rig, interface: &str) {
    wait_until(
        PATIENCE,
        format_args!("a static entry to {interface}"),
        || {
            let number = rig
                .lab
                .ofport(interface)
                .map_err(|error| error.to_string())?;
            let entry = rig.lab.static_fdb_entry().unwrap();
            if entry == Some(number.to_string()) {
                Ok(())
            } else {
                Err(format!("{entry:?} instead of {number}"))
            }
        },
    )
    .unwrap();
}

/// Waits until exactly these interfaces have a program that is attached.
pub fn wait_for_attachments(rig: &Rig, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|it| (*it).to_owned()).collect();
    wait_until(PATIENCE, format_args!("programs on {wanted:?}"), || {
        let attached = attached(rig);
        if attached == wanted {
            Ok(())
        } else {
            Err(format!("{attached:?}"))
        }
    })
    .unwrap();
}

/// The interfaces with a program that is attached.
pub fn attached(rig: &Rig) -> BTreeSet<String> {
    let stats = stats(rig);
    let attached = stats.iter().filter(|it| it["state"] == "attached");
    let names = attached.filter_map(|it| it["interface"].as_str());
    names.map(str::to_owned).collect()
}

fn stats(rig: &Rig) -> Vec<Value> {
    let output = rig.datapath(&["stats", "--output", "json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    stats.as_array().cloned().unwrap_or_default()
}

/// Packets of a kind that were counted on an interface, by direction.
pub fn counted(rig: &Rig, interface: &str, kind: &str) -> Vec<(String, u64)> {
    let stats = stats(rig);
    let of = stats.iter().filter(|it| it["interface"] == interface);
    let counters = of.filter_map(|it| it["counters"].as_array()).flatten();
    let counters = counters.filter(|it| it["kind"] == kind);
    let counts = counters.filter_map(|it| {
        let direction = it["direction"].as_str()?.to_owned();
        Some((direction, it["packets"].as_u64()?))
    });
    counts.collect()
}
