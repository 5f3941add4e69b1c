//! What breaks under the agent.

use std::fs;

use neighsteer_tests::lab::wait_until;

use crate::{
    rig::{PATIENCE, STEER},
    seen::{bare_rig, bridge, number, wait_complete, watching_agent},
};

#[test]
fn a_bridge_that_is_deleted_under_the_agent_ends_nothing_else() {
    let rig = bare_rig(1);
    let mut agent = watching_agent(&rig);
    rig.lab.vsctl(["del-br", "br-ex"]).unwrap();
    rig.wait_for_status("a node without the bridge", |status| {
        (status["settled"] == true && bridge(status, "br-ex").is_none()).then_some(())
    });
    assert_eq!(agent.try_wait().unwrap(), None, "{}", agent.log());
    let state = fs::read_to_string(rig.lab.state_directory().join("state.json")).unwrap();
    assert!(!state.contains("patch-"), "{state}");
}

#[test]
fn a_management_socket_that_is_missing_is_named_and_waited_for() {
    let rig = bare_rig(1);
    let socket = rig.lab.management_socket("br-ex");
    let away = socket.with_extension("away");
    fs::rename(&socket, &away).unwrap();
    let _agent = rig.agent(&STEER);
    let error = rig.wait_for_status("an error", |status| {
        let bridge = bridge(status, "br-ex")?;
        (bridge["converged"] == false && bridge["watched"] == false)
            .then(|| bridge["last_error"].as_str().map(str::to_owned))?
    });
    assert!(
        error.contains("br-ex.mgmt") && error.contains("does the bridge exist"),
        "{error}"
    );
    fs::rename(&away, &socket).unwrap();
    let flows = wait_until(PATIENCE, "all in place", || match number(&rig, "flows") {
        0 => Err("no flows"),
        flows => Ok(usize::try_from(flows).unwrap()),
    })
    .unwrap();
    wait_complete(&rig, flows, &[1]);
}

#[test]
fn a_second_agent_with_another_state_directory_is_refused_and_told_who_the_first_is() {
    let rig = bare_rig(1);
    let agent = watching_agent(&rig);
    let other = tempfile::tempdir().unwrap();
    let mut command = rig.lab.neighsteer(&["agent"]).unwrap();
    let mut flags = rig.lab.agent_flags();
    let value = flags.iter().position(|flag| flag == "--state-dir").unwrap() + 1;
    flags[value] = other.path().display().to_string();
    let output = command.args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let holder = format!("pid {}", agent.pid());
    assert!(
        stderr.contains(&holder) && stderr.contains("another agent runs on this node"),
        "{stderr}"
    );
}

#[test]
fn the_complete_set_is_refused_on_a_bridge_that_ovn_kubernetes_manages() {
    let rig = bare_rig(1);
    let output = rig.run(&[&["agent", "--flows", "complete"], &STEER[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let flows = rig.lab.flows("br-ex").unwrap();
    let theirs = flows.iter().filter(|flow| flow.contains("0xdeff105"));
    let says = format!(
        "br-ex is managed by OVN-Kubernetes ({} flows with cookie 0xdeff105",
        theirs.count()
    );
    assert!(stderr.contains(&says), "{says} in {stderr}");
    assert_eq!(rig.our_flows(), Vec::<String>::new());
}
