//! Others write to rows of our ports meanwhile.

use std::time::Duration;

use neighsteer::{
    agent::databases::STATIC_MAC_BINDING,
    ovsdb::{Clause, Client, Operation, OperationResult},
    statics::Mode,
};
use neighsteer_tests::{mirroring::follower_port, northbound};

use crate::rig::{Rig, mac, node_ip};

const STRANGE_MAC: &str = "02:66:66:66:66:66";

#[tokio::test]
async fn a_row_that_another_client_inserts_right_before_costs_its_own_row_alone() {
    const FOLLOWERS: usize = 5;
    const NODES: u16 = 40;
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    // The rows are not told of it before the transaction is put together.
    rig.until_due().await;
    let (port, ip) = (&rig.gateways[2].port, node_ip(2).to_string());
    let theirs = northbound::insert(port, &ip, STRANGE_MAC, false);
    let results = rig.write(&[theirs]).await;
    let [OperationResult::Inserted(uuid)] = results[..] else {
        panic!("{results:?}");
    };
    rig.statics.rows.pump();
    assert_eq!(rig.status().in_flight, 1);
    rig.run_until("refusal", |rig| {
        rig.status().counters.errors.duplicate_index > 0
    })
    .await;
    let rows = rig.converge().await;
    let corrected = rows.iter().find(|row| row.uuid == uuid).unwrap();
    assert_eq!(corrected.mac, Some(mac(2, 0)));
    let counters = rig.status().counters;
    assert_eq!(counters.errors.duplicate_index, 1);
    assert_eq!(counters.errors.rows_at_fault, 1);
    assert_eq!(counters.writes.updated, 1);
    assert_eq!(
        counters.writes.inserted,
        (FOLLOWERS * usize::from(NODES)) as u64 - 1
    );
    rig.finish().await;
}

/// One operation on a row of one of our ports for a node's address, a former node's, or none.
fn any_operation(random: &mut fastrand::Rng, followers: usize, nodes: u16) -> Operation {
    let port = follower_port(random.usize(1..=followers));
    let node = random.u16(1..=nodes + 3);
    let mut ip = node_ip(node).to_string();
    match random.u8(..20) {
        // Another spelling of the address, where it has letters.
        0..4 => ip = ip.to_uppercase(),
        4 => ip = "no address".to_owned(),
        _ => {}
    }
    let mac = match random.u8(..4) {
        0 => mac(node, 0).to_string(),
        1 => mac(node, 0).to_string().to_uppercase(),
        2 => "no MAC at all".to_owned(),
        _ => STRANGE_MAC.to_owned(),
    };
    let update = Operation::update(STATIC_MAC_BINDING)
        .filter(Clause::equal("logical_port", &*port))
        .filter(Clause::equal("ip", &*ip));
    match random.u8(..6) {
        0 | 1 => northbound::insert(&port, &ip, &mac, random.bool()),
        2 => update.set("mac", mac).into(),
        3 => update.set("override_dynamic_mac", random.bool()).into(),
        _ => Operation::delete(STATIC_MAC_BINDING)
            .filter(Clause::equal("logical_port", &*port))
            .filter(Clause::equal("ip", &*ip))
            .into(),
    }
}

async fn many(client: Client, operations: usize, followers: usize, nodes: u16, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut refused = 0;
    for _ in 0..operations {
        let operation = any_operation(&mut random, followers, nodes);
        refused += usize::from(client.transact(&[operation]).await.is_err());
    }
    refused
}

#[tokio::test]
async fn after_ten_thousand_operations_of_another_client_and_every_mode_all_is_as_recomputed() {
    const OPERATIONS: usize = 10_000;
    const FOLLOWERS: usize = 10;
    const NODES: u16 = 20;
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let client = northbound::writer(rig.server.remote()).await.unwrap();
    let others = tokio::spawn(many(client, OPERATIONS, FOLLOWERS, NODES, seed));
    let modes = [Mode::Write, Mode::Retain, Mode::Withdraw];
    for mode in modes.iter().cycle() {
        rig.mode = *mode;
        rig.plan();
        rig.run_for(Duration::from_millis(300)).await;
        if others.is_finished() {
            break;
        }
    }
    println!("{} of {OPERATIONS} refused", others.await.unwrap());
    for mode in [Mode::Withdraw, Mode::Write] {
        rig.mode = mode;
        rig.plan();
        rig.finish().await;
    }
    println!("{:?}", rig.status().counters);
}

#[tokio::test]
async fn modes_that_change_amid_writes_end_with_the_rows_of_the_last_one() {
    let mut rig = Rig::start(10, 60).await;
    for mode in [
        Mode::Write,
        Mode::Retain,
        Mode::Write,
        Mode::Withdraw,
        Mode::Write,
    ] {
        rig.mode = mode;
        rig.plan();
        let committed = rig.status().counters.transactions;
        if mode != Mode::Retain {
            rig.run_until_committed(committed + 2).await;
        }
    }
    rig.finish().await;
    rig.mode = Mode::Retain;
    rig.plan();
    // Those that are there are corrected, and none is inserted.
    let gone = Operation::delete(STATIC_MAC_BINDING)
        .filter(Clause::equal("logical_port", &*follower_port(1)))
        .filter(Clause::equal("ip", &*node_ip(1).to_string()));
    rig.write(&[gone.into()]).await;
    rig.nodes.insert(node_ip(2), mac(2, 1));
    rig.plan();
    let inserted = rig.status().counters.writes.inserted;
    rig.run_until("correction", |rig| {
        rig.status().counters.writes.updated == 10
    })
    .await;
    assert_eq!(rig.status().counters.writes.inserted, inserted);
    rig.mode = Mode::Withdraw;
    rig.plan();
    rig.finish().await;
}
