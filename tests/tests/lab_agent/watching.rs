//! `neighsteer bindings`: what a watching process sees, and rows that a group takes along.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use neighsteer_tests::lab::{Daemon, Network, UPLINK_BRIDGE, wait_until};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::rig::{PATIENCE, Rig};

const HOST: &str = "172.18.7.7";
const WATCH: [&str; 4] = ["bindings", "--watch", "--output", "json"];

/// A watching process; dropping it kills it.
struct Watching {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Watching {
    fn start(rig: &Rig) -> Self {
        let path = |name: &str| rig.lab.directory().join(name);
        let (stdout, stderr) = (path("watch.out"), path("watch.err"));
        let file = |path: &Path| File::create(path).unwrap();
        let mut command = rig.command(&WATCH);
        command.stdout(file(&stdout)).stderr(file(&stderr));
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// The records so far; a line that is still being written is left for later.
    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.stdout).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    fn wait(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) {
        wait_until(PATIENCE, what, || {
            let records = self.records();
            if wanted(&records) {
                Ok(())
            } else {
                Err(format!("{records:#?}\n{}", self.said()))
            }
        })
        .unwrap();
    }

    fn wait_to_hear(&self, what: &str) {
        wait_until(PATIENCE, what, || {
            let said = self.said();
            said.contains(what).then_some(()).ok_or(said)
        })
        .unwrap();
    }

    fn ended(&mut self) -> Option<i32> {
        ended(&mut self.child)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The exit code of a process that is about to end.
fn ended(child: &mut Child) -> Option<i32> {
    let status = wait_until(PATIENCE, "its end", || {
        child.try_wait().unwrap().ok_or("it runs".to_owned())
    });
    status.unwrap().code()
}

fn about<'a>(records: &'a [Value], ip: &str) -> Vec<&'a Value> {
    records.iter().filter(|it| it["ip"] == ip).collect()
}

/// Whether the last word about a neighbour is that so many followers, which are all, have it.
fn all_have(records: &[Value], ip: &str, followers: u64) -> bool {
    about(records, ip).last().is_some_and(|last| {
        last["event"] != "gone"
            && last["followers"]["right"] == followers
            && last["followers"]["total"] == followers
    })
}

#[test]
fn whoever_watches_sees_bindings_come_and_go_through_new_groups_and_lost_connections() {
    let mut rig = Rig::start(2, &[]);
    let _agent = rig.steering_agent();
    let mut watching = Watching::start(&rig);
    watching.wait("the bridge as it is", |records| {
        let first = records.first();
        first.is_some_and(|it| it["event"] == "group" && it["follower_count"] == 2)
    });

    rig.source_learns(HOST);
    watching.wait("both followers right", |records| all_have(records, HOST, 2));
    let records = watching.records();
    let first = about(&records, HOST)[0];
    assert_eq!(first["event"], "learnt");
    assert_eq!(first["bridge"], "br-ex");
    assert_eq!(first["mac"], "02:aa:00:00:00:09");

    rig.lab.delete_mac_binding(Network::DEFAULT, HOST).unwrap();
    watching.wait("its end", |records| {
        about(records, HOST)
            .last()
            .is_some_and(|last| last["event"] == "gone" && last["followers"]["keeping"] == 2)
    });

    rig.lab.add_udn(3).unwrap();
    watching.wait("a third follower", |records| {
        records.iter().any(|it| it["follower_count"] == 3)
    });
    rig.source_learns("172.18.7.8");
    watching.wait("all three right", |records| {
        all_have(records, "172.18.7.8", 3)
    });

    rig.lab.kill_daemon(Daemon::Southbound).unwrap();
    watching.wait_to_hear("lost OVN_Southbound");
    rig.lab.start_daemon(Daemon::Southbound).unwrap();
    watching.wait_to_hear("OVN_Southbound is back");
    rig.source_learns("172.18.7.9");
    watching.wait("all three right once more", |records| {
        all_have(records, "172.18.7.9", 3)
    });
    let said = watching.said();
    assert_eq!(said.matches("lost OVN_Southbound").count(), 1, "{said}");

    let pid = Pid::from_raw(i32::try_from(watching.child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(watching.ended(), Some(0), "{}", watching.said());
}

#[test]
fn a_watch_ends_when_it_is_interrupted_or_nobody_reads_although_nothing_happens() {
    let rig = Rig::start(1, &[]);
    for interrupted in [true, false] {
        let mut command = rig.command(&["bindings", "--watch"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("br-ex bindings of rtoe-GR_"), "{line}");
        if interrupted {
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
            kill(pid, Signal::SIGINT).unwrap();
        } else {
            drop(reader);
        }
        assert_eq!(ended(&mut child), Some(0));
    }
}

#[test]
fn a_group_that_moves_to_another_bridge_keeps_its_rows_and_they_are_said_to_be_learned_elsewhere() {
    let rig = Rig::start(3, &[]);
    let _agent = rig.steering_agent();
    rig.source_learns(HOST);
    rig.wait_for_bindings(HOST.parse().unwrap(), &[0, 1, 2, 3]);
    let before = rig.lab.mac_bindings(HOST.parse().unwrap()).unwrap();

    rig.lab.move_to_uplink(&[2, 3]).unwrap();
    rig.wait_for_status("the mirror of the other bridge", |status| {
        let mirror = &status["mirror"][UPLINK_BRIDGE];
        (mirror["synced"] == true && mirror["followers"] == 1).then_some(())
    });
    let report = wait_until(Duration::from_secs(60), "the report", || {
        let output = rig.run(&["bindings", "--output", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let bridges = report.as_array().map_or(0, Vec::len);
        if bridges == 2 {
            Ok(report)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    })
    .unwrap();
    let of_bridge = |bridge: &str| {
        let mut bridges = report.as_array().unwrap().iter();
        bridges.find(|it| it["bridge"] == bridge).unwrap()
    };
    let moved = of_bridge(UPLINK_BRIDGE);
    assert_eq!(moved["source"], Network(2).external_port(), "{moved}");
    let binding = moved["bindings"].as_array().unwrap().iter();
    let binding = binding.clone().find(|it| it["ip"] == HOST).unwrap();
    assert_eq!(binding["learned_on"], "br-ex", "{report:#}");
    let followers = moved["followers"].as_array().unwrap();
    assert_eq!(followers.len(), 1, "{moved}");
    assert_eq!(followers[0]["port"], Network(3).external_port());
    let learned = followers[0]["learned_elsewhere"].as_array().unwrap();
    assert!(
        learned
            .iter()
            .any(|it| it["ip"] == HOST && it["bridge"] == "br-ex"),
        "{report:#}"
    );
    assert_eq!(of_bridge("br-ex")["learned_elsewhere"], 0, "{report:#}");

    // Whoever moved has the very rows that it had.
    let after = rig.lab.mac_bindings(HOST.parse().unwrap()).unwrap();
    let uuids = |rows: &[neighsteer_tests::lab::MacBinding]| -> Vec<String> {
        rows.iter().map(|row| row.uuid.clone()).collect()
    };
    assert_eq!(uuids(&before), uuids(&after));
}
