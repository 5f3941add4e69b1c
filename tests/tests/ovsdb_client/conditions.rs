//! Which rows a monitor covers.

use neighsteer::ovsdb::{Clause, MonitorCondition, MonitorRequest, Options};
use neighsteer_tests::database::DatabaseServer;

use crate::peer::{Peer, bindings, southbound};

fn ports<'a>(ports: impl IntoIterator<Item = &'a str>) -> MonitorCondition {
    MonitorCondition::AnyOf(
        ports
            .into_iter()
            .map(|port| Clause::equal("logical_port", port))
            .collect(),
    )
}

#[tokio::test]
async fn condition_that_changes_brings_and_takes_rows() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(Options {
        monitor: MonitorRequest::new().table(bindings().filter(ports([]))),
        ..southbound(&server)
    })
    .await;
    let datapath = peer.datapath().await;
    peer.bind(datapath, &["a", "b", "c"]).await;
    // The last one brings no row, and is confirmed as well.
    for (wanted, expected) in [
        (&["a", "b"][..], "ab"),
        (&["b", "c"], "bc"),
        (&[], ""),
        (&["nobody"], ""),
    ] {
        let wanted = ports(wanted.iter().copied());
        let number = peer.client.set_condition("MAC_Binding", wanted).unwrap();
        peer.until(|peer| peer.conditions >= number).await;
        assert_eq!(peer.texts("logical_port"), expected);
    }
    assert!(peer.client.set_condition("Chassis", ports([])).is_err());
}

#[tokio::test]
async fn condition_that_changes_while_away_holds_after_the_return() {
    let mut server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    peer.bind(datapath, &["a", "b"]).await;
    peer.until(|peer| peer.rows.len() == 2).await;
    server.kill().unwrap();
    peer.until(|peer| !peer.errors.is_empty()).await;
    let number = peer
        .client
        .set_condition("MAC_Binding", ports(["b"]))
        .unwrap();
    server.resurrect().unwrap();
    peer.until(|peer| peer.synced == 2).await;
    assert_eq!(peer.conditions, number);
    assert_eq!(peer.texts("logical_port"), "b");
}

#[tokio::test]
async fn of_many_conditions_in_a_row_the_last_one_holds() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    peer.bind(datapath, &["a", "b", "c"]).await;
    let mut last = 0;
    for round in 0..100 {
        let port = ["a", "b", "c"][round % 3];
        last = peer
            .client
            .set_condition("MAC_Binding", ports([port]))
            .unwrap();
        if round % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    peer.until(|peer| peer.conditions >= last).await;
    assert_eq!(peer.texts("logical_port"), "a");
}

#[tokio::test]
async fn five_hundred_ports_are_one_condition() {
    let server = DatabaseServer::start(DatabaseServer::SOUTHBOUND).unwrap();
    let mut peer = Peer::synced(southbound(&server)).await;
    let datapath = peer.datapath().await;
    let names: Vec<String> = (0..1000).map(|number| format!("port-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    peer.bind(datapath, &names).await;
    let number = peer
        .client
        .set_condition("MAC_Binding", ports(names[..501].iter().copied()))
        .unwrap();
    peer.until(|peer| peer.conditions >= number).await;
    assert_eq!(peer.rows.len(), 501);
}
