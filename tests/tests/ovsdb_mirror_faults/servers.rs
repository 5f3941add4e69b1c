//! Servers that end, hang and change under the mirror.

use std::{process::Command, time::Duration};

use neighsteer::ovsdb::Operation;
use neighsteer_tests::{
    database::DatabaseServer,
    mirroring::{SOURCE, follower_port},
    southbound,
};

use crate::rig::{Rig, delete, of_followers, relearn};

const FOLLOWERS: usize = 50;

#[tokio::test]
async fn a_server_that_is_killed_amid_writes_and_comes_back_gets_what_is_missing_and_no_more() {
    let mut rig = Rig::start(FOLLOWERS).await;
    for round in 0..5 {
        let ips: Vec<String> = (0..20).map(|ip| format!("10.0.{round}.{ip}")).collect();
        let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
        rig.learn(&ips).await;
        // At another moment of the burst each time.
        rig.run_for(Duration::from_millis(7 * round)).await;
        rig.server.kill().unwrap();
        let lost = rig.lost;
        rig.run_until("lost connection", |rig| rig.lost > lost)
            .await;
        rig.resurrect().await;
        let rows = rig.converge().await;
        let wanted = (round as usize + 1) * 20 * FOLLOWERS;
        let there = rows.iter().filter(|row| &*row.port != SOURCE).count();
        assert_eq!(there, wanted);
    }
    let written = rig.status().counters.writes.total();
    let before = rig.rows().await;
    rig.server.kill().unwrap();
    rig.run_until("lost connection", |rig| !rig.status().synced)
        .await;
    rig.resurrect().await;
    let after = rig.converge().await;
    assert_eq!(
        rig.status().counters.writes.total(),
        written,
        "all was right"
    );
    assert_eq!(before.len(), after.len());
}

#[tokio::test]
async fn a_server_that_hangs_past_the_probe_gets_the_newest_state_when_it_goes_on() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    rig.converge().await;
    // A change that it may or may not have heard of when it stops.
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:11")]).await;
    rig.server.pause().unwrap();
    let lost = rig.lost;
    rig.run_until("probe without an answer", |rig| rig.lost > lost)
        .await;
    rig.server.resume().unwrap();
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:12")]).await;
    let rows = rig.converge().await;
    for row in of_followers(&rows, FOLLOWERS, "10.0.0.1") {
        assert_eq!(row.mac.unwrap().to_string(), "02:00:00:00:00:12");
    }
}

#[tokio::test]
async fn what_changed_while_the_mirror_was_cut_off_is_not_undone_by_what_it_meant_to_write() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    rig.converge().await;
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:21")]).await;
    rig.server.kill().unwrap();
    rig.run_until("lost connection", |rig| rig.lost > 0).await;
    // The mirror does not run while the source changes its mind, and a follower's row goes.
    rig.resurrect().await;
    let gone = delete(&follower_port(3), "10.0.0.2");
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:22"), gone])
        .await;
    let rows = rig.converge().await;
    for row in of_followers(&rows, FOLLOWERS, "10.0.0.1") {
        assert_eq!(row.mac.unwrap().to_string(), "02:00:00:00:00:22");
    }
    assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.0.2").len(), FOLLOWERS);
}

#[tokio::test]
async fn a_schema_that_is_converted_under_the_mirror_ends_nothing() {
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1"]).await;
    rig.converge().await;
    let schema = std::fs::read_to_string(DatabaseServer::SOUTHBOUND).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    schema["version"] = "99.0.0".into();
    schema["cksum"] = serde_json::Value::Null;
    schema.as_object_mut().unwrap().remove("cksum");
    let columns = &mut schema["tables"]["MAC_Binding"]["columns"];
    columns["note"] = serde_json::json!({"type": "string"});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), schema.to_string()).unwrap();
    let output = Command::new("ovsdb-client")
        .arg("convert")
        .arg(format!("unix:{}", rig.server.socket().display()))
        .arg(file.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lost = |rig: &Rig| rig.lost > 0;
    rig.run_until("end of the monitor", lost).await;
    rig.writer = southbound::writer(rig.server.remote()).await.unwrap();
    rig.learn(&["10.0.0.2"]).await;
    let rows = rig.converge().await;
    assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.0.2").len(), FOLLOWERS);
}

#[tokio::test]
async fn a_new_follower_that_comes_while_the_server_is_away_is_filled_when_it_is_back() {
    let mut rig = Rig::start(FOLLOWERS).await;
    let ips: Vec<String> = (0..30).map(|ip| format!("10.0.0.{ip}")).collect();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    rig.learn(&ips).await;
    rig.converge().await;
    let followers = rig.group.followers.clone();
    let without: Vec<Operation> = ips
        .iter()
        .map(|ip| delete(&follower_port(FOLLOWERS), ip))
        .collect();
    rig.group.followers.pop();
    rig.mirroring.regroup(&rig.group);
    rig.converge().await;
    rig.write(&without).await;
    rig.server.kill().unwrap();
    rig.run_until("lost connection", |rig| rig.lost > 0).await;
    rig.group.followers = followers;
    rig.mirroring.regroup(&rig.group);
    rig.run_for(Duration::from_millis(200)).await;
    rig.resurrect().await;
    let rows = rig.converge().await;
    for ip in ips {
        assert_eq!(of_followers(&rows, FOLLOWERS, ip).len(), FOLLOWERS);
    }
}
