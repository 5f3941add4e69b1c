//! Of several who would mirror for one chassis, one does.

use std::{
    net::IpAddr,
    process::{Child, Command, Stdio},
};

use neighsteer::agent::database_locks::lock_name;

use crate::rig::{Rig, STEER};

/// Somebody else who holds the mirror's lock.
struct Holder(Child);

impl Holder {
    fn start(rig: &Rig, how: &str) -> Self {
        let child = Command::new("ovsdb-client")
            .args([how, &rig.lab.southbound_remote()])
            .arg(lock_name("mirror", &rig.lab.chassis()))
            // It holds the lock until its input ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_gone = self.0.wait();
    }
}

fn wait_for_lock(rig: &Rig, state: &str) {
    rig.wait_for_status(state, |status| {
        (status["mirror_lock"] == state).then_some(())
    });
}

/// Waits until the mirror would write, and checks that it has not.
fn only_the_source_has(rig: &Rig, address: IpAddr) {
    rig.wait_for_status("rows to be written", |status| {
        status["mirror"]["br-ex"]["lag_ms"].as_u64()
    });
    rig.wait_for_bindings(address, &[0]);
}

#[test]
fn an_agent_mirrors_only_while_it_has_the_lock_of_its_chassis() {
    let rig = Rig::start(2, &[]);
    let first = Holder::start(&rig, "steal");
    let _agent = rig.agent(&STEER);
    // Whichever of the two came first, the other one has it now.
    rig.wait_for_status("the lock to be somebody else's", |status| {
        ["waiting", "stolen"]
            .iter()
            .find(|state| status["mirror_lock"] == **state)
            .map(drop)
    });
    let output = rig.status_command().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let [one, two] = ["172.18.7.7", "172.18.7.8"].map(|ip| ip.parse().unwrap());
    rig.source_learns("172.18.7.7");
    only_the_source_has(&rig, one);
    drop(first);
    wait_for_lock(&rig, "held");
    rig.wait_for_bindings(one, &[0, 1, 2]);
    let thief = Holder::start(&rig, "steal");
    wait_for_lock(&rig, "stolen");
    rig.source_learns("172.18.7.8");
    only_the_source_has(&rig, two);
    drop(thief);
    wait_for_lock(&rig, "held");
    rig.wait_for_bindings(two, &[0, 1, 2]);
}
