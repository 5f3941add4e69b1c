//! Others write and delete while the mirror runs.

use std::time::Duration;

use neighsteer::{
    agent::databases::MAC_BINDING,
    ovsdb::{Clause, Client, Operation, Uuid},
};
use neighsteer_tests::{
    mirroring::{SOURCE, follower_port},
    southbound::{self, NEIGHBOUR_MAC, now},
};

use crate::rig::{Rig, delete, of_followers, relearn};

#[tokio::test]
async fn followers_rows_that_are_deleted_under_a_live_source_come_back() {
    const FOLLOWERS: usize = 20;
    let mut rig = Rig::start(FOLLOWERS).await;
    rig.learn(&["10.0.0.1"]).await;
    rig.converge().await;
    let all: Vec<_> = (1..=FOLLOWERS)
        .map(|number| delete(&follower_port(number), "10.0.0.1"))
        .collect();
    rig.write(&all).await;
    let rows = rig.converge().await;
    assert_eq!(of_followers(&rows, FOLLOWERS, "10.0.0.1").len(), FOLLOWERS);
}

#[tokio::test]
async fn a_datapath_that_goes_between_plan_and_commit_costs_its_own_row_alone() {
    const FOLLOWERS: usize = 30;
    let mut rig = Rig::start(FOLLOWERS).await;
    // northd deletes a router's datapath with its port; the agent has not heard of it yet.
    let gone = rig.datapaths[7];
    let datapath = Operation::delete("Datapath_Binding").by_uuid(gone).into();
    rig.write(&[datapath]).await;
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    let held_back = |rig: &Rig| rig.status().counters.errors.missing_reference >= 2;
    rig.run_until("refusal of the bad rows", held_back).await;
    let others = |ip: &'static str| {
        move |rows: &[neighsteer::mirror::BindingRow]| of_followers(rows, FOLLOWERS, ip).len()
    };
    let mut rows = rig.rows().await;
    for ip in ["10.0.0.1", "10.0.0.2"] {
        while others(ip)(&rows) < FOLLOWERS - 1 {
            rig.run_for(Duration::from_millis(50)).await;
            rows = rig.rows().await;
        }
    }
    // Then the news arrives, and nothing is left to do.
    let port = follower_port(7);
    rig.group.followers.retain(|it| *it.external_port != *port);
    rig.mirroring.regroup(&rig.group);
    rig.converge().await;
}

#[tokio::test]
async fn a_row_that_another_client_writes_first_is_no_harm() {
    const FOLLOWERS: usize = 10;
    let mut rig = Rig::start(FOLLOWERS).await;
    // Others fill the same rows at the same time: right ones, and wrong ones.
    let (writer, datapaths) = (rig.writer.clone(), rig.datapaths.clone());
    let race = tokio::spawn(async move {
        for (number, datapath) in datapaths.iter().enumerate().skip(1) {
            for ip in ["10.0.0.1", "10.0.0.2"] {
                let mac = if number % 2 == 0 {
                    NEIGHBOUR_MAC
                } else {
                    "02:00:00:00:00:66"
                };
                // Whichever is second is refused.
                let _ = writer
                    .transact(&[row(&follower_port(number), *datapath, ip, mac, now())])
                    .await;
            }
        }
    });
    rig.learn(&["10.0.0.1", "10.0.0.2"]).await;
    rig.converge().await;
    race.await.unwrap();
    rig.converge().await;
}

fn row(port: &str, datapath: Uuid, ip: &str, mac: &str, timestamp: i64) -> Operation {
    Operation::insert(MAC_BINDING)
        .set("logical_port", port)
        .set("datapath", datapath)
        .set("ip", ip)
        .set("mac", mac)
        .set("timestamp", timestamp)
        .into()
}

/// One operation on a row of the source, a follower or a stranger.
fn any_operation(random: &mut fastrand::Rng, datapaths: &[Uuid]) -> Operation {
    let member = random.usize(..datapaths.len());
    let member = if random.bool() { 0 } else { member };
    let port = match (member, random.u8(..20)) {
        (_, 0) => "rtoe-GR_elsewhere".to_owned(),
        (0, _) => SOURCE.to_owned(),
        (number, _) => follower_port(number),
    };
    let ip = match random.u8(..12) {
        // One address in two spellings.
        10 => "fd00::1".to_owned(),
        11 => "FD00:0:0::1".to_owned(),
        number => format!("10.0.0.{number}"),
    };
    let mac = format!("02:00:00:00:00:{:02X}", random.u8(1..5));
    let timestamp = now() - random.i64(0..100_000);
    let update = Operation::update(MAC_BINDING)
        .filter(Clause::equal("logical_port", &*port))
        .filter(Clause::equal("ip", &*ip));
    match random.u8(..6) {
        0 | 1 => row(&port, datapaths[member], &ip, &mac, timestamp),
        2 => update.set("mac", mac).set("timestamp", timestamp).into(),
        3 => update.set("timestamp", timestamp).into(),
        4 => update.set("mac", "no MAC at all").into(),
        _ => delete(&port, &ip),
    }
}

async fn many(client: Client, datapaths: Vec<Uuid>, operations: usize, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut refused = 0;
    for _ in 0..operations {
        let operation = any_operation(&mut random, &datapaths);
        refused += usize::from(client.transact(&[operation]).await.is_err());
    }
    refused
}

#[tokio::test]
async fn after_ten_thousand_operations_of_another_client_all_is_as_computed_from_the_rows() {
    const OPERATIONS: usize = 10_000;
    let mut rig = Rig::start(20).await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let stranger = row(
        "rtoe-GR_away",
        rig.datapaths[0],
        "10.9.9.9",
        NEIGHBOUR_MAC,
        1,
    );
    rig.write(&[stranger]).await;
    let client = southbound::writer(rig.server.remote()).await.unwrap();
    let others = tokio::spawn(many(client, rig.datapaths.clone(), OPERATIONS, seed));
    while !others.is_finished() {
        rig.run_for(Duration::from_millis(20)).await;
    }
    println!("{} of {OPERATIONS} refused", others.await.unwrap());
    // What is not to be mirrored is nobody's business.
    let sources = rig.rows().await;
    let unreadable = sources
        .iter()
        .filter(|row| &*row.port == SOURCE && row.mac.is_none());
    let unreadable: Vec<_> = unreadable
        .map(|row| Operation::delete(MAC_BINDING).by_uuid(row.uuid).into())
        .collect();
    if !unreadable.is_empty() {
        rig.write(&unreadable).await;
    }
    // Two spellings of one address are two rows of the source; the newer one is the truth.
    rig.write(&[delete(SOURCE, "FD00:0:0::1")]).await;
    let doubles: Vec<_> = (1..=20)
        .map(|number| delete(&follower_port(number), "FD00:0:0::1"))
        .collect();
    rig.write(&doubles).await;
    rig.write(&[relearn("10.0.0.1", "02:00:00:00:00:77")]).await;
    let rows = rig.converge().await;
    let stranger = rows
        .iter()
        .find(|row| &*row.port == "rtoe-GR_away")
        .unwrap();
    assert_eq!(stranger.timestamp, 1);
    println!("{:?}", rig.status().counters);
}
