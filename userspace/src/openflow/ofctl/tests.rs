use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::openflow::Flow;

/// A switch whose program is a shell script, for a bridge `br-ex` that seems to be there.
fn switch_that_runs(script: &str) -> (tempfile::TempDir, OfCtl) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("br-ex.mgmt"), "").unwrap();
    let program = directory.path().join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let switch = OfCtl::new(directory.path()).with_program(program);
    (directory, switch)
}

fn flow() -> Flow {
    "cookie=7,priority=52,arp actions=NORMAL".parse().unwrap()
}

#[tokio::test]
async fn a_missing_program_says_what_to_install() {
    let (_directory, switch) = switch_that_runs("");
    let switch = switch.with_program("/nonexistent/ovs-ofctl");
    let error = switch.ports("br-ex").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run /nonexistent/ovs-ofctl: it is not installed (Debian: openvswitch-common)"
    );
}

#[tokio::test]
async fn a_bridge_that_is_not_there_is_told_from_one_that_refuses() {
    let (directory, switch) = switch_that_runs(
        "echo 'ovs-ofctl: unix:x: failed to connect to socket (Connection refused)' >&2; exit 1",
    );
    let missing = switch.ports("br-none").await.unwrap_err();
    assert!(
        matches!(&missing, SwitchError::SocketMissing { socket, .. }
            if *socket == directory.path().join("br-none.mgmt")),
        "{missing:?}"
    );
    let refused = switch.ports("br-ex").await.unwrap_err();
    assert!(
        matches!(refused, SwitchError::Refused { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_rejected_flow_is_named_with_the_error() {
    let (_directory, switch) = switch_that_runs(
        "cat >/dev/null; cat >&2 <<'END'\n\
         Error OFPBAC_BAD_OUT_GROUP for: OFPT_FLOW_MOD (OF1.3) (xid=0x7): ADD cookie:0x6 actions=output:70,group:9\n\
         Error OFPBFC_MSG_FAILED for: ONFT_BUNDLE_CONTROL (OF1.3) (xid=0xa):\n bundle_id=0 type=COMMIT_REQUEST flags=atomic ordered\n\
         ovs-ofctl: talking to unix:x (Protocol error)\nEND\nexit 1",
    );
    let error = switch.add_flows("br-ex", &[flow()]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bridge br-ex rejected the flow `ADD cookie:0x6 actions=output:70,group:9`: \
         OFPBAC_BAD_OUT_GROUP"
    );
}

#[tokio::test]
async fn a_program_that_hangs_is_given_up_after_the_time_limit() {
    let (_directory, switch) = switch_that_runs("exec sleep 60");
    let switch = switch.with_timeout(Duration::from_millis(50));
    let error = switch.dump_flows("br-ex", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bridge br-ex did not finish to list the flows within 50ms: does ovs-vswitchd hang? see its log"
    );
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_still_has_its_message_shown() {
    let (_directory, switch) = switch_that_runs("echo 'ovs-ofctl: no such thing' >&2; exit 1");
    let many: Vec<Flow> = std::iter::repeat_n(flow(), 10_000).collect();
    let error = switch.add_flows("br-ex", &many).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot change flows on bridge br-ex: ovs-ofctl: no such thing (exit status: 1)"
    );
}

#[tokio::test]
async fn nothing_to_change_runs_nothing() {
    let (_directory, switch) = switch_that_runs("exit 1");
    let nothing = FlowChanges::default();
    switch.change_flows("br-ex", &nothing).await.unwrap();
    switch
        .set_no_flood("br-ex", &BTreeMap::new())
        .await
        .unwrap();
}

#[tokio::test]
async fn every_port_is_tried_although_one_fails() {
    let (directory, switch) = switch_that_runs(
        "echo \"$5 $6\" >>\"$(dirname \"$0\")/log\"\n\
         [ \"$5\" != 3 ] || { echo \"ovs-ofctl: unix:x: couldn't find port \\`3'\" >&2; exit 1; }",
    );
    let ofport = |number| OfPort::from_column(Some(number)).unwrap();
    let ports = (1..=20)
        .map(|number| (ofport(number), number % 2 == 0))
        .collect();
    let error = switch.set_no_flood("br-ex", &ports).await.unwrap_err();
    assert_eq!(error.to_string(), "bridge br-ex has no port 3");
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    let mut tried: Vec<&str> = log.lines().collect();
    tried.sort_unstable();
    assert_eq!(tried.len(), 20);
    assert!(
        tried.contains(&"2 no-flood") && tried.contains(&"5 flood"),
        "{tried:?}"
    );
}

#[test]
fn ports_read_with_their_numbers_and_flags() {
    let text = "OFPST_PORT_DESC reply (xid=0x2):\n \
                2(patch-net0_br-e): addr:5e:a2:d3:ba:31:c7\n     config:     PORT_DOWN NO_FLOOD\n     \
                state:      0\n 1(eth(1)): addr:aa:55:aa:55:00:10\n     config:     0\n \
                LOCAL(br-ex): addr:9e:bc:8e:3e:c3:42\n     config:     NO_FLOOD\n";
    let ports = output::ports(text);
    let ports: Vec<_> = ports
        .iter()
        .map(|port| (port.ofport.get(), port.name.as_str(), port.no_flood))
        .collect();
    assert_eq!(ports, [(1, "eth(1)", false), (2, "patch-net0_br-e", true)]);
}
