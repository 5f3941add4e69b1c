//! How seldom northd is made to compute everything anew.

use neighsteer::agent::databases::STATIC_MAC_BINDING;
use neighsteer_tests::{northbound, static_rows::StaticWriter};

use crate::rig::{LOCK, Rig, changes, mac, node_ip, settings};

#[tokio::test]
async fn a_node_that_flaps_costs_one_transaction_a_window_and_none_when_it_ends_as_it_began() {
    const FOLLOWERS: usize = 20;
    let mut rig = Rig::start(FOLLOWERS, 10).await;
    rig.plan();
    rig.finish().await;
    let committed = rig.history().of_static_rows().len();
    let before = rig.status().counters;
    for flap in 0..50 {
        rig.set_mac(1, 1 - flap % 2);
        rig.statics.rows.pump();
    }
    rig.finish().await;
    assert_eq!(rig.history().of_static_rows().len(), committed);
    assert_eq!(rig.status().counters.transactions, before.transactions);
    assert!(rig.status().counters.windows > before.windows);

    for flap in 0..51 {
        rig.set_mac(1, 1 - flap % 2);
        rig.statics.rows.pump();
    }
    rig.finish().await;
    let history = rig.history();
    let transactions = history.of_static_rows();
    assert_eq!(transactions.len(), committed + 1);
    let last = transactions.last().unwrap();
    assert_eq!(changes(last, STATIC_MAC_BINDING).count(), FOLLOWERS);
    assert_eq!(rig.status().counters.transactions, before.transactions + 1);
}

#[tokio::test]
async fn a_node_that_never_ceases_to_flap_costs_one_transaction_a_window() {
    let mut rig = Rig::start(20, 10).await;
    rig.plan();
    rig.finish().await;
    let committed = rig.history().of_static_rows().len();
    let before = rig.status().counters;
    let mut version = 0;
    while rig.status().counters.windows < before.windows + 4 {
        // Never what is written already, so that each window has something to write.
        version = version % 250 + 1;
        rig.set_mac(1, version);
        rig.run_for(std::time::Duration::from_millis(10)).await;
    }
    rig.finish().await;
    let windows = rig.status().counters.windows - before.windows;
    let transactions = rig.status().counters.transactions - before.transactions;
    let of_history = rig.history().of_static_rows().len() - committed;
    assert_eq!(of_history as u64, transactions);
    assert!(
        (1..=windows).contains(&transactions),
        "{transactions} in {windows}"
    );
}

#[tokio::test]
async fn a_start_against_twenty_thousand_right_rows_writes_none_and_a_new_mac_only_its_own() {
    const FOLLOWERS: usize = 50;
    const NODES: u16 = 400;
    let settings = neighsteer::statics::Settings {
        chunk_rows: 5_000,
        ..settings()
    };
    let mut rig = Rig::start_with(FOLLOWERS, NODES, settings).await;
    for gateway in &rig.gateways {
        let rows = rig.nodes.iter().map(|(ip, mac)| {
            northbound::insert(&gateway.port, &ip.to_string(), &mac.to_string(), true)
        });
        rig.write(&rows.collect::<Vec<_>>()).await;
    }
    let there = rig.history().of_static_rows().len();
    rig.plan();
    rig.finish().await;
    assert_eq!(rig.status().counters.transactions, 0);
    assert_eq!(rig.history().of_static_rows().len(), there);

    rig.set_mac(7, 1);
    rig.finish().await;
    let history = rig.history();
    let transactions = history.of_static_rows();
    assert_eq!(transactions.len(), there + 1);
    let last = transactions.last().unwrap();
    let rows: Vec<_> = changes(last, STATIC_MAC_BINDING).collect();
    assert_eq!(rows.len(), FOLLOWERS);
    for (_, row) in rows {
        assert_eq!(*row, serde_json::json!({"mac": mac(7, 1).to_string()}));
    }

    // The next run of the agent finds all as it left it, and a node gone meanwhile.
    rig.nodes.remove(&node_ip(8));
    rig.statics = StaticWriter::start(
        LOCK,
        rig.readers.clone(),
        rig.state.path(),
        rig.settings.clone(),
    )
    .await
    .unwrap();
    rig.plan();
    rig.finish().await;
    assert_eq!(rig.history().of_static_rows().len(), there + 2);
    assert_eq!(rig.status().counters.writes.total(), FOLLOWERS as u64);
}
