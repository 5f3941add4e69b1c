//! What is written, and what is refused.

use neighsteer::ovsdb::{
    Clause, ErrorKind, Event, Function, MonitorCondition, Mutator, Operation, OperationResult,
    Options, Outcome, TransactError, Uuid,
};
use neighsteer_tests::database::DatabaseServer;
use tokio::time::timeout;

use crate::peer::{DEADLINE, Peer, binding, southbound};

#[tokio::test]
async fn rows_that_are_written_are_queued_before_the_answer() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let (uuid, insert) = binding(datapath, "rtoe-GR_a", "10.0.0.1");
    let results = peer.client.transact(&[insert]).await.unwrap();
    assert_eq!(results, [OperationResult::Inserted(uuid)]);
    // A deadline of zero: the event is there already, or the test fails.
    let event = timeout(std::time::Duration::ZERO, peer.monitor.next()).await;
    let Ok(Some(Event::Changes(batch))) = event else {
        panic!("{event:?}");
    };
    let row = batch.changes[0].new.as_ref().unwrap();
    assert_eq!(&*row.string("logical_port").unwrap(), "rtoe-GR_a");
    assert_eq!(&*row.string("mac").unwrap(), "02:00:00:00:00:01");
    assert_eq!(row.uuid("datapath").unwrap(), datapath);
    assert_eq!(row.integer("timestamp").unwrap(), 1_700_000_000_000);
}

#[tokio::test]
async fn updates_mutations_and_deletions_reach_a_client_on_tcp() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let writer = Peer::synced(southbound(&server)).await;
    let mut reader = Peer::synced(Options {
        remotes: vec![server.tcp_remote()],
        ..southbound(&server)
    })
    .await;
    let datapath = writer.datapath().await;
    let uuid = writer.bind(datapath, &["rtoe-GR_a"]).await[0];
    reader.until(|peer| peer.rows.len() == 1).await;
    let results = writer
        .client
        .transact(&[
            Operation::update("MAC_Binding")
                .by_uuid(uuid)
                .set("mac", "02:00:00:00:00:02")
                .into(),
            Operation::mutate("MAC_Binding")
                .by_uuid(uuid)
                .change("timestamp", Mutator::Add, 5)
                .into(),
        ])
        .await
        .unwrap();
    assert_eq!(
        results,
        [OperationResult::Count(1), OperationResult::Count(1)]
    );
    reader
        .until(|peer| {
            peer.rows.get(&uuid).is_some_and(|row| {
                &*row.string("mac").unwrap() == "02:00:00:00:00:02"
                    && row.integer("timestamp").unwrap() == 1_700_000_000_005
            })
        })
        .await;
    let delete = Operation::delete("MAC_Binding").by_uuid(uuid);
    writer.client.transact(&[delete.into()]).await.unwrap();
    reader.until(|peer| peer.rows.is_empty()).await;
}

#[tokio::test]
async fn select_and_wait_see_the_rows_that_match() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuids = peer.bind(datapath, &["a", "b"]).await;
    let newer = Clause::new("timestamp", Function::GreaterOrEqual, 1);
    let results = peer
        .client
        .transact(&[
            Operation::wait("MAC_Binding", ["logical_port"])
                .by_uuid(uuids[1])
                .row([("logical_port", "b".into())])
                .into(),
            Operation::select("MAC_Binding", ["_uuid", "ip", "timestamp"])
                .filter(newer)
                .filter(Clause::equal("logical_port", "b"))
                .into(),
        ])
        .await
        .unwrap();
    assert_eq!(results[0], OperationResult::Done);
    let OperationResult::Rows(rows) = &results[1] else {
        panic!("{results:?}");
    };
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].uuid("_uuid").unwrap(), uuids[1]);
    assert_eq!(&*rows[0].string("ip").unwrap(), "10.0.0.1");
    let wait = Operation::wait("MAC_Binding", ["logical_port"])
        .by_uuid(uuids[1])
        .row([("logical_port", "b".into())])
        .until_different();
    let error = peer
        .client
        .transact(&[wait.into(), Operation::comment("not reached")])
        .await
        .unwrap_err();
    let TransactError::Aborted(aborted) = error else {
        panic!("{error:?}");
    };
    let (place, cause) = aborted.cause().unwrap();
    assert_eq!((place, cause.kind), (Some(0), ErrorKind::TimedOut));
    assert_eq!(aborted.operations[1], Outcome::Skipped);
}

#[tokio::test]
async fn duplicate_in_an_index_undoes_everything_and_names_both_rows() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let present = peer.bind(datapath, &["rtoe-GR_a"]).await[0];
    let (good, insert) = binding(datapath, "rtoe-GR_b", "10.0.0.1");
    let (bad, duplicate) = binding(datapath, "rtoe-GR_a", "10.0.0.1");
    let error = peer
        .client
        .transact(&[insert, duplicate])
        .await
        .unwrap_err();
    assert!(error.changed_nothing());
    let TransactError::Aborted(aborted) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        aborted.operations[0],
        Outcome::Undone(OperationResult::Inserted(good))
    );
    let (place, cause) = aborted.cause().unwrap();
    assert_eq!((place, cause.kind), (None, ErrorKind::ConstraintViolation));
    let mut named = cause.rows();
    named.sort_unstable();
    let mut expected = [present, bad];
    expected.sort_unstable();
    assert_eq!(named, expected);
    peer.until(|peer| !peer.rows.is_empty()).await;
    assert_eq!(peer.texts("logical_port"), "rtoe-GR_a");
}

#[tokio::test]
async fn row_that_refers_to_nothing_is_named() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let (bad, insert) = binding(Uuid::random(), "rtoe-GR_a", "10.0.0.1");
    let Err(TransactError::Aborted(aborted)) = peer.client.transact(&[insert]).await else {
        panic!("it was committed");
    };
    let (_, cause) = aborted.cause().unwrap();
    assert_eq!(cause.kind, ErrorKind::ReferentialIntegrity);
    assert!(cause.rows().contains(&bad), "{cause}");
}

#[tokio::test]
async fn insert_under_an_identity_that_exists_is_recognised() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let (_, insert) = binding(datapath, "rtoe-GR_a", "10.0.0.1");
    peer.client
        .transact(std::slice::from_ref(&insert))
        .await
        .unwrap();
    let Err(TransactError::Aborted(aborted)) = peer.client.transact(&[insert]).await else {
        panic!("it was committed twice");
    };
    let (_, cause) = aborted.cause().unwrap();
    assert_eq!(cause.kind, ErrorKind::DuplicateUuid, "{cause}");
}

#[tokio::test]
async fn many_transactions_in_flight_are_executed_in_order() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let uuid = peer.bind(datapath, &["a"]).await[0];
    // More than may be in flight at once. A task's first poll queues its transaction.
    let tasks: Vec<_> = (0..200_i64)
        .map(|number| {
            let client = peer.client.clone();
            tokio::spawn(async move {
                let wait = Operation::wait("MAC_Binding", ["timestamp"])
                    .by_uuid(uuid)
                    .row([("timestamp", (1_700_000_000_000 + number).into())]);
                let add = Operation::mutate("MAC_Binding").by_uuid(uuid).change(
                    "timestamp",
                    Mutator::Add,
                    1,
                );
                client.transact(&[wait.into(), add.into()]).await
            })
        })
        .collect();
    for task in tasks {
        timeout(DEADLINE, task).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn malformed_operation_fails_alone_and_not_the_connection() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let peer = Peer::synced(southbound(&server)).await;
    for operation in [
        Operation::insert("No_Such_Table").into(),
        Operation::insert("MAC_Binding")
            .set("no_such_column", 1)
            .into(),
        Operation::insert("MAC_Binding").set("ip", 1).into(),
        Operation::insert("MAC_Binding").set("ip", f64::NAN).into(),
        Operation::Abort,
    ] {
        let operation: Operation = operation;
        let error = peer
            .client
            .transact(std::slice::from_ref(&operation))
            .await
            .unwrap_err();
        assert!(error.changed_nothing(), "{operation:?}: {error:?}");
    }
    peer.datapath().await;
}

#[tokio::test]
async fn transactions_have_a_connection_of_their_own_where_wanted() {
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(Options {
        dedicated_writer: true,
        ..southbound(&server)
    })
    .await;
    for round in 1..=2_usize {
        let datapath = peer.datapath().await;
        let (good, insert) = binding(datapath, &round.to_string(), "10.0.0.1");
        // A request on the other connection, with an id that a transaction has as well.
        let condition = Clause::new("logical_port", Function::NotEqual, format!("-{round}"));
        let number = peer
            .client
            .set_condition("MAC_Binding", MonitorCondition::AnyOf(vec![condition]))
            .unwrap();
        let results = peer.client.transact(std::slice::from_ref(&insert)).await;
        assert_eq!(results.unwrap(), [OperationResult::Inserted(good)]);
        let error = peer.client.transact(&[insert]).await.unwrap_err();
        assert!(matches!(error, TransactError::Aborted(_)), "{error:?}");
        peer.until(|peer| peer.rows.len() == round && peer.conditions >= number)
            .await;
        server.kill().unwrap();
        peer.until(|peer| peer.errors.len() >= round).await;
        server.resurrect().unwrap();
        peer.until(|peer| peer.synced > round).await;
    }
}
