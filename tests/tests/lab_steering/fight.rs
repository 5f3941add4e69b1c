//! Against somebody who takes our flows away as fast as he can.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use crate::{
    rig::COOKIE,
    seen::{bare_rig, bridge, number, wait_complete, watching_agent},
};

/// Of the other's deletions.
const PACE: Duration = Duration::from_millis(50);

#[test]
fn in_a_fight_repairs_slow_down_losses_are_counted_and_quiet_ends_it() {
    let rig = bare_rig(1);
    let agent = watching_agent(&rig);
    let flows = usize::try_from(number(&rig, "flows")).unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let cookie = format!("cookie={COOKIE}/-1");
    std::thread::scope(|scope| {
        let lab = &rig.lab;
        scope.spawn(move || {
            // Ends with its other end, which goes by a panic as well.
            while stopped.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                lab.ofctl_on("br-ex", &["del-flows"], &[&cookie]).unwrap();
            }
        });
        let _ends_with_the_scope = stop;
        rig.wait_for_status("a fight", |status| {
            let bridge = bridge(status, "br-ex")?;
            (bridge["contended"] == true).then_some(())
        });
        let lost = number(&rig, "flows_lost");
        rig.wait_for_status("more losses", |status| {
            (bridge(status, "br-ex")?["flows_lost"].as_u64()? > lost).then_some(())
        });
    });
    let words = "more than five times a second";
    assert_eq!(agent.log().matches(words).count(), 1, "said once");
    assert!(agent.log().contains("WARN"));
    wait_complete(&rig, flows, &[1]);
    rig.wait_for_status("the end of the fight", |status| {
        (bridge(status, "br-ex")?["contended"] == false).then_some(())
    });
}
