//! Beside somebody who steers himself.

use crate::{
    rig::COOKIE,
    seen::{bare_rig, bridge, number, wait_complete, watching_agent},
};

#[test]
fn nothing_of_ours_stays_while_others_steer_and_all_comes_back_when_they_stop() {
    let rig = bare_rig(2);
    let agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    let ours = rig.our_flows();
    let steered = ours
        .iter()
        .find(|flow| flow.contains("priority=52,arp"))
        .unwrap();
    let theirs = steered.replace(COOKIE, "0xdeff105");
    // Exactly where ours is: the manager's version replaces it.
    rig.lab
        .ofctl_on("br-ex", &["add-flow"], &[&theirs])
        .unwrap();
    rig.wait_for_status("standing down", |status| {
        (bridge(status, "br-ex")?["standing_down"] == true).then_some(())
    });
    assert_eq!(rig.our_flows(), Vec::<String>::new());
    assert_eq!(rig.lab.no_flood_ports().unwrap(), Vec::<String>::new());
    assert!(!rig.lab.has_static_fdb_entry().unwrap());
    let there = rig.lab.flows("br-ex").unwrap();
    assert!(
        there
            .iter()
            .any(|flow| flow.contains("priority=52") && flow.contains("0xdeff105")),
        "theirs is left: {there:?}"
    );
    assert!(agent.log().contains("standing down"));
    rig.wait_for_status("no mirror", |status| {
        (status["mirror"] == serde_json::json!({})).then_some(())
    });
    let seven = "172.18.7.7".parse().unwrap();
    rig.source_learns("172.18.7.7");
    assert_eq!(rig.lab.mac_bindings(seven).unwrap().len(), 1);

    let (theirs, _) = theirs.split_once(" actions=").unwrap();
    let theirs = theirs.replace("cookie=0xdeff105,", "cookie=0xdeff105/-1,");
    rig.lab
        .ofctl_on("br-ex", &["--strict", "del-flows"], &[&theirs])
        .unwrap();
    wait_complete(&rig, flows, &[1, 2]);
    rig.wait_for_bindings(seven, &[0, 1, 2]);
    assert_eq!(number(&rig, "flows_lost"), 0, "it was us who took ours off");
}
