//! A clustered database remembers its last transactions.

use neighsteer::ovsdb::Operation;
use neighsteer_tests::database::DatabaseServer;

use crate::peer::{Peer, southbound};

#[tokio::test]
async fn cluster_member_that_restarts_loses_nothing_and_repeats_nothing() {
    let mut server = DatabaseServer::start_clustered(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuids = peer.bind(datapath, &["a", "b", "c"]).await;
    peer.until(|peer| peer.rows.len() == 3).await;
    for round in 0..3_i64 {
        server.kill().unwrap();
        let errors = peer.errors.len();
        peer.until(|peer| peer.errors.len() > errors).await;
        server.resurrect().unwrap();
        let synced = peer.synced;
        // `take` checks every change against what was known.
        peer.until(|peer| peer.synced > synced).await;
        assert_eq!(peer.rows.len(), 3);
        let update = Operation::update("MAC_Binding")
            .by_uuid(uuids[1])
            .set("timestamp", round);
        // A server that has just been elected may answer before it is ready to write.
        while peer
            .client
            .transact(&[update.clone().into()])
            .await
            .is_err()
        {
            peer.take().await;
        }
        peer.until(|peer| peer.rows[&uuids[1]].integer("timestamp") == Ok(round))
            .await;
    }
}
