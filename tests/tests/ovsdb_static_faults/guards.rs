//! Router ports that go between plan and commit: on OVN 23.03 a row for one of them stops northd.

use std::sync::Arc;

use neighsteer::{
    agent::static_rows::transactions::operations,
    ovsdb::{Aborted, ErrorKind, Operation, TransactError, Uuid},
    statics::{Batch, BatchId, Guard, Reason, RowOperation, RowWrite},
};
use neighsteer_tests::northbound::{self, Gateway};

use crate::rig::{Rig, mac, node_ip};

const FOLLOWERS: usize = 12;
const NODES: u16 = 40;

#[tokio::test]
async fn a_router_that_goes_between_plan_and_commit_gets_no_row_and_the_others_all_of_theirs() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.lose(3).await;
    rig.lose(7).await;
    let expected = (FOLLOWERS - 2) * usize::from(NODES);
    rig.run_until("rows of the others", |rig| {
        rig.status().counters.writes.inserted == expected as u64
    })
    .await;
    let status = rig.status();
    assert!(status.counters.errors.guard_failed >= 2, "{status:?}");
    for gateway in [3, 7] {
        rig.hear_of_loss(gateway);
    }
    rig.finish().await;
    for gateway in [3, 7] {
        let port = Arc::clone(&rig.gateways[gateway].port);
        // What OVN-Kubernetes wrote is all that there ever was.
        assert_eq!(rig.history().inserted_for(&port), 4);
        assert!(!rig.statics.rows.remembered().contains(&port));
    }
}

#[tokio::test]
async fn a_router_that_goes_amid_writes_loses_the_rows_that_it_had_at_once() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    // Each transaction has rows of all routers.
    rig.run_until_committed(2).await;
    rig.lose(5).await;
    let barred = |rig: &Rig| rig.status().counters.errors.guard_failed > 0;
    rig.run_until("refusal", barred).await;
    rig.hear_of_loss(5);
    let rows = rig.converge().await;
    let port = Arc::clone(&rig.gateways[5].port);
    assert_eq!(rig.of_port(&rows, &port), Vec::<&_>::new());
    assert!(rig.history().inserted_for(&port) > 4, "it had rows of ours");
    assert!(rig.status().counters.urgent_transactions > 0);
    rig.finish().await;
}

#[tokio::test]
async fn a_router_that_is_made_anew_under_its_name_gets_its_rows_once_that_is_known() {
    let mut rig = Rig::start(FOLLOWERS, NODES).await;
    rig.plan();
    rig.lose(2).await;
    let again = Gateway {
        router: Uuid::random(),
        port_row: Uuid::random(),
        port: Arc::clone(&rig.gateways[2].port),
    };
    rig.write(&northbound::add(&again)).await;
    let barred = |rig: &Rig| rig.status().barred_ports == 1;
    rig.run_until("refusal", barred).await;
    rig.targets[2].port_row = Some(again.port_row);
    rig.gateways[2] = again;
    rig.plan();
    rig.finish().await;
}

#[tokio::test]
async fn a_guard_for_a_port_that_is_gone_or_another_one_inserts_nothing() {
    let rig = Rig::start(2, 1).await;
    let batch = |gateways: &[&Gateway], port_row: Option<Uuid>| Batch {
        id: BatchId(0),
        guards: gateways
            .iter()
            .map(|gateway| Guard {
                port_row: port_row.unwrap_or(gateway.port_row),
                port: Arc::clone(&gateway.port),
            })
            .collect(),
        operations: gateways
            .iter()
            .map(|gateway| RowOperation {
                port: Arc::clone(&gateway.port),
                ip: node_ip(1),
                write: RowWrite::Insert { mac: mac(1, 0) },
                reason: Reason::Missing,
            })
            .collect(),
    };
    let refused_at = async |batch: Batch| match rig.writer.transact(&operations(&batch)).await {
        Err(TransactError::Aborted(aborted)) => {
            let Aborted { operations, commit } = &aborted;
            assert_eq!(
                (operations.len(), commit.is_none()),
                (2 * batch.guards.len(), true)
            );
            let (position, error) = aborted.cause().unwrap();
            assert_eq!(error.kind, ErrorKind::TimedOut);
            position.unwrap()
        }
        other => panic!("{other:?}"),
    };
    let before = rig.rows().await;
    let [first, second] = [&rig.gateways[0], &rig.gateways[1]];
    rig.lose(1).await;
    assert_eq!(refused_at(batch(&[first, second], None)).await, 1);
    // The row of another port of that name.
    let again = Gateway {
        router: Uuid::random(),
        port_row: Uuid::random(),
        port: Arc::clone(&second.port),
    };
    rig.write(&northbound::add(&again)).await;
    assert_eq!(refused_at(batch(&[first, second], None)).await, 1);
    // The port under another name.
    let rename = Operation::update("Logical_Router_Port").by_uuid(first.port_row);
    rig.write(&[rename.set("name", "rtoe-GR_renamed").into()])
        .await;
    assert_eq!(refused_at(batch(&[first, &again], None)).await, 0);
    assert_eq!(rig.rows().await.len(), before.len());
    // All is as it was said.
    rig.write(&operations(&batch(&[&again], None))).await;
    assert_eq!(rig.rows().await.len(), before.len() + 1);
}
