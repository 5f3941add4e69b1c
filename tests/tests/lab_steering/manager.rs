//! Beside a manager that replaces all flows, as ovnkube-node does.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use neighsteer_tests::lab::{FlowSet, wait_until};

use crate::{
    gaps::Gaps,
    rig::{COOKIE, PATIENCE, Rig},
    seen::{bare_rig, number, wait_complete, watching_agent},
};

const ROUNDS: u32 = 12;

/// Replaces all flows every second; `more` flows besides today's set.
fn beside_a_manager(rig: &Rig, more: usize) {
    rig.lab.set_flows(FlowSet::Legacy).unwrap();
    let mut flows = String::new();
    for flow in rig.lab.flows("br-ex").unwrap() {
        // What the dump adds and add-flow does not take is nothing: it is its own syntax.
        if flow.contains("actions=") {
            writeln!(flows, "{flow}").unwrap();
        }
    }
    for index in 0..more {
        let (high, low) = (index >> 8, index & 0xff);
        writeln!(
            flows,
            "cookie=0x1234,priority=110,ip,nw_dst=10.96.{high}.{low},actions=ct(zone=64003,table=6)"
        )
        .unwrap();
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, flows.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let replace = || {
        rig.lab
            .ofctl_on("br-ex", &["--bundle", "replace-flows"], &[&path])
            .unwrap();
    };
    replace();
    let theirs = rig.lab.flows("br-ex").unwrap();

    let agent = watching_agent(rig);
    let added = number(rig, "flows_added");
    let gaps = Gaps::watch(&rig.lab, "br-ex");
    let (cpu, start) = (agent.cpu().unwrap(), Instant::now());
    for round in 1..=ROUNDS {
        replace();
        let lost = u64::from(round) * added;
        rig.wait_for_status("flows that were lost and put back", |status| {
            let bridge = crate::seen::bridge(status, "br-ex")?;
            (bridge["flows_lost"].as_u64()? >= lost
                && bridge["flows_added"].as_u64()? >= lost + added)
                .then_some(())
        });
        // The pace of the manager, not a wait for something to be true.
        std::thread::sleep(
            (start + Duration::from_secs(1) * round).saturating_duration_since(Instant::now()),
        );
    }
    let (cpu, elapsed) = (agent.cpu().unwrap() - cpu, start.elapsed());
    let report = gaps.finish();
    report.print(&format!("manager with {} flows", theirs.len()));
    println!(
        "agent's CPU (this build): {:.2} %",
        100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64()
    );
    assert_eq!(report.missing, 0);
    assert_eq!(report.gaps.len() as u64, u64::from(ROUNDS) * added);
    let without_ours = || {
        let mut flows = rig.lab.flows("br-ex").unwrap();
        flows.retain(|flow| !flow.contains(COOKIE));
        flows.sort();
        flows
    };
    let mut theirs = theirs;
    theirs.sort();
    assert_eq!(without_ours(), theirs, "the manager's own flows stay");
    wait_until(PATIENCE, "our flows at the end", || {
        let ours = rig.our_flows().len() as u64;
        if ours == added { Ok(()) } else { Err(ours) }
    })
    .unwrap();
}

#[test]
fn beside_a_manager_that_replaces_all_flows_every_second_ours_come_back_and_its_own_stay() {
    beside_a_manager(&bare_rig(5), 0);
}

#[test]
fn beside_a_manager_with_five_thousand_flows_ours_come_back_and_its_own_stay() {
    beside_a_manager(&bare_rig(5), 5_000);
}

#[test]
fn a_manager_that_finds_nothing_to_replace_but_ours_makes_no_endless_passes() {
    let rig = bare_rig(2);
    let _agent = watching_agent(&rig);
    let flows = number(&rig, "flows");
    rig.lab.set_flows(FlowSet::Base).unwrap();
    rig.wait_for_status("the comparison after the repair", |status| {
        let bridge = crate::seen::bridge(status, "br-ex")?;
        (bridge["flows_lost"] == flows && bridge["flows_added"] == 2 * flows).then_some(())
    });
    let settled = wait_until(PATIENCE, "checks that come to an end", || {
        let before = number(&rig, "checks");
        std::thread::sleep(Duration::from_millis(600));
        let after = number(&rig, "checks");
        if before == after {
            Ok(after)
        } else {
            Err(format!("{before} {after}"))
        }
    })
    .unwrap();
    wait_complete(&rig, usize::try_from(flows).unwrap(), &[1, 2]);
    assert!(settled < 10, "{settled} passes");
}
