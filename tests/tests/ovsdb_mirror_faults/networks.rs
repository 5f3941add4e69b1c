//! A server behind a network that is cut. Needs root.

use neighsteer_tests::{cable::Cable, database::DatabaseServer, mirroring::Mirroring};

use crate::rig::{Rig, of_followers, relearn};

const FOLLOWERS: usize = 20;

/// Runs a test in the namespace at the agent's end.
fn across(test: impl AsyncFnOnce(Rig, &Cable) + Send) {
    let cable = Cable::lay().unwrap();
    let builder = DatabaseServer::builder(DatabaseServer::SOUTHBOUND);
    let server = builder.inside(&cable.server, cable.address()).start();
    let server = server.unwrap();
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let local = vec![server.remote()];
            let tcp = server.tcp_remote();
            let mut rig = Rig::on(server, local, FOLLOWERS).await;
            // The test looks at the database past the network; the mirror goes through it.
            let readers = std::mem::replace(&mut rig.readers, vec![tcp]);
            let mirroring: Mirroring = rig.another_mirror(None).await;
            rig.mirroring = mirroring;
            rig.readers = readers;
            test(rig, &cable).await;
        });
    };
    cable.client.enter(run).unwrap();
}

#[test]
fn what_changes_behind_a_silent_cut_is_made_up_for_when_it_is_mended() {
    across(async |mut rig, cable| {
        rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
        rig.converge().await;
        cable.cut().unwrap();
        rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:11")]).await;
        rig.learn(&["10.0.0.3"]).await;
        rig.run_until("probe without an answer", |rig| rig.lost > 0)
            .await;
        cable.mend().unwrap();
        let rows = rig.converge().await;
        for row in of_followers(&rows, FOLLOWERS, "10.0.0.1") {
            assert_eq!(row.mac.unwrap().to_string(), "02:00:00:00:00:11");
        }
        assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.0.3").len(), FOLLOWERS);
    });
}

#[test]
fn connections_that_are_reset_amid_writes_cost_nothing() {
    across(async |mut rig, cable| {
        for round in 0..3 {
            let ips: Vec<String> = (0..20).map(|ip| format!("10.0.{round}.{ip}")).collect();
            let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
            rig.learn(&ips).await;
            let lost = rig.lost;
            cable.reset().unwrap();
            rig.run_until("lost connection", |rig| rig.lost > lost)
                .await;
            let rows = rig.converge().await;
            for ip in ips {
                assert_eq!(of_followers(&rows, FOLLOWERS, ip).len(), FOLLOWERS);
            }
        }
    });
}
