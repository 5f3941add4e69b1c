//! What is on the bridges, waited for.

use std::collections::BTreeSet;

use neighsteer_tests::lab::{AgentProcess, Network, wait_until};

use crate::rig::{COOKIE, PATIENCE, Rig, STEER};

/// An agent that finds out by events alone: its periodic check comes after the test.
pub fn watching_agent(rig: &Rig) -> AgentProcess {
    let agent = rig.agent(&[&STEER[..], &["--check-interval", "600"]].concat());
    rig.wait_for_status("a watched bridge that has all", |status| {
        let bridge = bridge(status, "br-ex")?;
        (status["settled"] == true && bridge["watched"] == true && bridge["flows"] != 0)
            .then_some(())
    });
    agent
}

/// A bridge's part of the status.
pub fn bridge<'a>(status: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    let bridges = status["steering"].as_array()?;
    bridges.iter().find(|bridge| bridge["bridge"] == name)
}

/// A number of br-ex in the status.
pub fn number(rig: &Rig, key: &str) -> u64 {
    rig.wait_for_status(key, |status| bridge(status, "br-ex")?[key].as_u64())
}

/// Everything of ours on br-ex: flows, no-flood on exactly these networks' ports, static entry.
pub fn complete(rig: &Rig, flows: usize, followers: &[u16]) -> Result<(), String> {
    let all = rig.lab.flows("br-ex").map_err(|error| error.to_string())?;
    let ours: Vec<_> = all.iter().filter(|flow| flow.contains(COOKIE)).collect();
    let wanted: BTreeSet<String> = followers
        .iter()
        .map(|id| Network(*id).patch_port())
        .collect();
    let no_flood = rig
        .lab
        .no_flood_ports()
        .map_err(|error| error.to_string())?;
    let no_flood: BTreeSet<String> = no_flood.into_iter().collect();
    let entry = rig
        .lab
        .has_static_fdb_entry()
        .map_err(|error| error.to_string())?;
    if ours.len() == flows && no_flood == wanted && entry {
        return Ok(());
    }
    Err(format!("{ours:?} {no_flood:?} {entry}"))
}

pub fn wait_complete(rig: &Rig, flows: usize, followers: &[u16]) {
    wait_until(PATIENCE, "flows, flags and entry", || {
        complete(rig, flows, followers)
    })
    .unwrap();
}

/// Nothing of ours on br-ex.
pub fn wait_bare(rig: &Rig) {
    wait_until(PATIENCE, "a bridge without anything of ours", || {
        let all = rig.lab.flows("br-ex").map_err(|error| error.to_string())?;
        let ours = all.iter().filter(|flow| flow.contains(COOKIE)).count();
        let no_flood = rig
            .lab
            .no_flood_ports()
            .map_err(|error| error.to_string())?;
        let entry = rig
            .lab
            .has_static_fdb_entry()
            .map_err(|error| error.to_string())?;
        if ours == 0 && no_flood.is_empty() && !entry {
            return Ok(());
        }
        Err(format!("{ours} {no_flood:?} {entry}"))
    })
    .unwrap();
}

/// A lab whose followers' flags are clear, so that all that is set is ours.
pub fn bare_rig(udns: u16) -> Rig {
    let rig = Rig::start(udns, &[]);
    for network in rig.lab.udns() {
        rig.lab.set_no_flood(network, false).unwrap();
    }
    rig
}
