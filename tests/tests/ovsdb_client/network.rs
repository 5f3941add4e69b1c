//! Networks that lose packets or end connections. Needs root.

use std::{sync::Arc, time::Duration};

use neighsteer::ovsdb::{Options, SessionError};
use neighsteer_tests::{cable::Cable, database::DatabaseServer};

use crate::{
    peer::{Peer, southbound},
    writer::{self, Writer},
};

/// Runs a client in the namespace at the client's end.
fn at_the_other_end(cable: &Cable, client: impl AsyncFnOnce() + Send) {
    cable
        .client
        .enter(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(client());
        })
        .unwrap();
}

fn server(cable: &Cable) -> DatabaseServer {
    DatabaseServer::builder(DatabaseServer::SOUTHBOUND)
        .inside(&cable.server, cable.address())
        .start()
        .unwrap()
}

fn options(server: &DatabaseServer) -> Options {
    Options {
        remotes: vec![server.tcp_remote()],
        probe_interval: Some(Duration::from_millis(300)),
        dedicated_writer: true,
        connect_timeout: Duration::from_millis(500),
        ..southbound(server)
    }
}

#[test]
fn network_that_is_cut_silently_is_noticed_by_the_probe() {
    let cable = Cable::lay().unwrap();
    let server = server(&cable);
    at_the_other_end(&cable, async || {
        let mut peer = Peer::synced(options(&server)).await;
        let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
        writer.progress().await;
        cable.cut().unwrap();
        peer.until(|peer| !peer.errors.is_empty()).await;
        assert!(
            matches!(*peer.errors[0], SessionError::Silent { .. }),
            "{:?}",
            peer.errors
        );
        cable.mend().unwrap();
        writer.progress().await;
        let written = writer.stop().await;
        writer::check(&mut peer, &written, options(&server)).await;
        assert!(peer.synced >= 2);
    });
}

#[test]
fn network_that_resets_connections_costs_only_a_reconnect() {
    let cable = Cable::lay().unwrap();
    let server = server(&cable);
    at_the_other_end(&cable, async || {
        let mut peer = Peer::synced(options(&server)).await;
        let mut writer = Writer::start(peer.client.clone(), peer.datapath().await);
        for round in 1..=3 {
            writer.progress().await;
            cable.reset().unwrap();
            peer.until(|peer| peer.synced > round).await;
        }
        assert!(
            peer.errors.iter().any(
                |error: &Arc<SessionError>| matches!(&**error, SessionError::Io(error)
                    if error.kind() == std::io::ErrorKind::ConnectionReset)
            ),
            "{:?}",
            peer.errors
        );
        writer.progress().await;
        let written = writer.stop().await;
        writer::check(&mut peer, &written, options(&server)).await;
    });
}
